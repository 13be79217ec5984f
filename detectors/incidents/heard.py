"""What has been heard of a device by one moment: reports about it, when it last sent anything, how its link does.

Read by the live tools (live_tools.py, route.py). Reports are samples of the stream `link`
(docs/messages.md); everything else is in the fleet's newest values and in the link statistics.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.detectors.link.constants import HOLES
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.batch import F8
from watchkeeper.streams.messages import COLUMN, KIND_OF_WORD, Kind

# A report older than this says nothing about now; devices report every few seconds.
FRESH_S = 6.5
# A device that was heard this recently is there.
ALIVE_S = 3.0
# With so many vehicles behind it, a gateway that says nothing of itself is known by them.
SPOKEN_FOR = 2
# All streams of a healthy vehicle together never bring this little of what is usual.
THIN = 0.8
PORT = ("carrier", "heard", "filtered", "errors", "backlog_s")
_L = COLUMN[Kind.LINK]


class Heard:
    """As of event time `t`. Devices are those of the topology."""

    def __init__(self, fleet: Fleet, stats: LinkStats, topology: Topology, t: float) -> None:
        self._fleet, self._stats, self._topology, self._t = fleet, stats, topology, t

    def _kind(self, device: str) -> Device:
        # what the topology does not have is a vehicle that somebody is just discovering
        return self._topology.kind.get(device, Device.VEHICLE)

    # -- reports --------------------------------------------------------------------------------------------

    def _report_age_s(self, device: str, field: str) -> float:
        slot = self._fleet.slot_of.get(device)
        return math.inf if slot is None else self._t - float(self._fleet.value_t[Kind.LINK][_L[field], slot])

    def value(self, device: str, field: str) -> float:
        """The newest reported value; NaN when there is none or it is old."""
        if self._report_age_s(device, field) > FRESH_S:
            return math.nan
        return float(self._fleet.value[Kind.LINK][_L[field], self._fleet.slot_of[device]])

    def ever(self, device: str, field: str) -> bool:
        """Whether a value was ever reported."""
        return math.isfinite(self._report_age_s(device, field))

    def port(self, device: str) -> dict[str, float] | None:
        """What the neighbour nearer to the broker says about its port to this device; None unless all of it is new.

        Of a device that has fallen silent, what was said before it did is old.
        """
        readings = {name: self.value(device, name) for name in PORT}
        before = ALIVE_S < self.age_s(device) < self._report_age_s(device, "carrier")
        return None if before or any(map(math.isnan, readings.values())) else readings

    def speaks(self, device: str) -> bool:
        """Whether a device has ever said anything about itself."""
        return self.ever(device, "load")

    # -- signs of life --------------------------------------------------------------------------------------

    def alive(self, device: str) -> bool:
        """Whether anything that only this device can have sent has come lately.

        A report on itself counts while it is fresh, unless streams went on after it and have stopped since.
        """
        kind = self._kind(device)
        if kind is Device.BROKER:
            return True
        if kind is Device.GATEWAY and any(self.alive(vehicle) for vehicle in self._topology.children[device]):
            return True
        return (age_s := self.age_s(device)) <= ALIVE_S or self._report_age_s(device, "load") <= min(FRESH_S, age_s)

    def age_s(self, device: str) -> float:
        """How long ago a device was last heard; infinite: never."""
        kind = self._kind(device)
        if kind is Device.GATEWAY:
            return min((self.age_s(vehicle) for vehicle in self._topology.children[device]), default=math.inf)
        slot = self._fleet.slot_of.get(device.rsplit("/", 1)[0] if kind is Device.SENSOR else device, -1)
        kinds = [KIND_OF_WORD[sensor_kind(device)]] if kind is Device.SENSOR else self._stats.kinds
        return self._t - float(self._fleet.last_t[kinds, slot].max()) if slot >= 0 else math.inf

    def known_apart(self, device: str) -> bool:
        """Whether silence of this device can be told from silence of what is behind it.

        Of a gateway that says nothing of itself only its vehicles speak: one alone does not speak for it.
        """
        if self._kind(device) is not Device.GATEWAY or self.speaks(device):
            return True
        behind = self._topology.children[device]
        return sum(math.isfinite(self.age_s(vehicle)) for vehicle in behind) >= SPOKEN_FOR

    # -- links, with the statistics of all vehicles worked out once for all questions -----------------------

    @cached_property
    def _rate_ratio(self) -> F8:
        return self._stats.rate_ratio()

    @cached_property
    def _on_time(self) -> F8:
        return self._stats.on_time()

    @cached_property
    def _latency_excess_s(self) -> F8:
        return self._stats.latency_excess_s()

    def late_s(self, vehicle: str) -> float:
        """How much later than usual a vehicle's samples come; NaN when that is not known or it is silent."""
        slot = self._fleet.slot_of.get(vehicle, -1)
        if slot < 0 or not self.alive(vehicle):
            return math.nan
        return float(self._latency_excess_s[slot])

    def lost(self, vehicle: str) -> float:
        """Share of a vehicle's samples with holes between them, over all its streams; NaN when silent.

        A link thins them all, so the stream that misses the least counts; a stream that is slow has no holes.
        """
        slot = self._fleet.slot_of.get(vehicle, -1)
        if slot < 0 or not self.alive(vehicle):
            return math.nan
        ratio, holes = self._rate_ratio[:, slot], self._on_time[:, slot] >= HOLES
        missing = np.where(holes, np.clip(1.0 - ratio, 0.0, 1.0), 0.0)[np.isfinite(ratio)]
        return float(missing.min()) if len(missing) else math.nan

    def thin(self, device: str) -> bool:
        """Whether all streams of a vehicle bring far fewer samples than usual; a gateway's load is its own."""
        slot = self._fleet.slot_of.get(device, -1)
        if slot < 0 or self._kind(device) is not Device.VEHICLE:
            return False
        ratio = self._rate_ratio[:, slot]
        return bool(np.isfinite(ratio).any() and np.nanmax(ratio) < THIN)

    def shared(self, gateway: str, of_vehicle: str) -> float:
        """What all vehicles behind a gateway have in common of their `late_s` or `lost`: the least of them.

        NaN for fewer than two, of which one might have it by itself.
        """
        reading = self.late_s if of_vehicle == "late_s" else self.lost
        found = [x for v in self._topology.children[gateway] if not math.isnan(x := reading(v))]
        return min(found) if len(found) >= SPOKEN_FOR else math.nan
