"""A simulated telemetry network with one hidden fault: who is there, what is wrong, and which ways are left.

draw.py makes networks, alarms.py what the alarms say about their faults, answers.py the answers of the tools.
../episodes.py keeps networks in files.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.detectors.incidents.faults import STOPPING, Form, Hypothesis
from watchkeeper.detectors.incidents.tools import Symptom
from watchkeeper.detectors.incidents.topology import Topology, Way

SIZE_MIN, SIZE_MAX = 4, 200


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong. `size` is seconds for a latency or a clock, a share for a loss, a ratio for a rate, else 1."""

    form: Form
    device: str
    location: str
    size: float

    @property
    def type(self) -> str:
        """The fault type of the form."""
        return self.form.fault_type


@dataclass(frozen=True, slots=True)
class Network:
    """The whole truth, hidden from the agent. `rtt_s` and `lost` are those of each link, by its name."""

    topology: Topology
    rtt_s: dict[str, float]
    lost: dict[str, float]
    fault: Fault
    symptoms: tuple[Symptom, ...]

    def way(self, device: str) -> Way | None:
        """The devices from the broker to this one as packets go now, both included; None when none get through."""
        return way_under(self.topology, self.fault, device)

    def route(self, source: str, destination: str) -> Way | None:
        """The devices from one to another as packets go now; None when the source or the destination is cut off."""
        to_source, onward = self.way(source), self.way(destination)
        return None if to_source is None or onward is None else joined(to_source, onward)

    def reachable(self, device: str) -> bool:
        """Whether packets get to this device and back."""
        return self.way(device) is not None


def way_under(topology: Topology, fault: Fault, device: str) -> Way | None:
    """The way from the broker to a device with this fault, around it where there is a standby link."""
    usual = topology.path(device)
    if fault.form not in STOPPING or fault.device not in usual:
        return usual
    return Hypothesis(fault.form, fault.device).around(topology).get(device)


def joined(to_source: Way, onward: Way) -> Way:
    """From the end of one way to the end of another: back to the last device that both have, then onwards.

    >>> joined(("broker", "gw-1", "a"), ("broker", "gw-1", "b"))
    ('a', 'gw-1', 'b')
    """
    common = next((i for i, (a, b) in enumerate(zip(to_source, onward, strict=False)) if a != b), None)
    shared = min(len(to_source), len(onward)) if common is None else common
    return (*reversed(to_source[shared - 1 :]), *onward[shared:])
