"""The tools of an investigation: what can be asked, what it costs, and what an answer looks like.

Two implementations answer: evaluation/diagnosis/simulated/answers.py from a simulated network, live_tools.py from link
statistics and ring buffers. An answer is a `Report`: readings by device, all plain numbers, in the units below. A
device that does not answer is an answer too, not an error.

| reading | unit | of | says |
|---|---|---|---|
| answered | 0/1 | target | whether it answered the question |
| rtt_s | s | target, hops | round trip of a small packet |
| hop | count | hops | which hop of the way it is, 1 the first; none: the hops are those of the usual way |
| lost | share | target, hops | packets without a reply |
| stop | 0/1/2 | hops | 0 passed, 1 the hop before says there is no way, 2 nothing comes back from here |
| carrier | 0/1 | neighbours | whether the port to that neighbour has a signal |
| heard | ratio | neighbours | traffic from it, over what is usual |
| age_s | s | neighbours, hops | since it was last heard; none: never |
| filtered | packets/s | neighbours | refused by a rule on this port |
| errors | share | neighbours | damaged or repeated packets on this port |
| backlog_s | s | neighbours | how long packets wait at this port |
| load | share | target | how busy the processor is |
| rate | ratio | target | of a sensor: samples per second as it makes them, over what is usual |
| noise_db | dB | target | of a GPS receiver: noise in its band, over what is usual |
| spread_db | dB | target | of a GPS receiver: how much the strengths of its satellites differ |
| self_test | 0/1 | target | of an IMU: passed |
| turned | share | target | of a contradiction between sensors: explained by one fixed turn or exchange of axes |
| scaled | share | target | the same, by one fixed factor |
| led | share | target | the same, by an offset that began at some time and moves |
| erratic | share | target | the same, by nothing regular: stuck, noise, a bias that comes and goes |
| clock_s | s | target | of a vehicle: the error of its clock |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from watchkeeper.detectors.incidents.topology import Device


class Tool(IntEnum):
    """What can be asked of a device."""

    STATUS = 0
    PING = 1
    DISCOVER = 2
    INTERFACES = 3
    TRACEROUTE = 4
    SCAN = 5

    @property
    def word(self) -> str:
        """The name in reports and topics."""
        return self.name.lower()


# What one use costs, in units of a ping: what it asks of the network and of the people who run it.
COST: dict[Tool, float] = {
    Tool.STATUS: 0.5,
    Tool.PING: 1.0,
    Tool.DISCOVER: 1.0,
    Tool.INTERFACES: 1.5,
    Tool.TRACEROUTE: 2.0,
    Tool.SCAN: 2.0,
}

READINGS: tuple[str, ...] = (
    "answered", "rtt_s", "lost", "stop", "carrier", "heard", "filtered", "errors", "backlog_s", "load", "rate",
    "noise_db", "spread_db", "self_test", "turned", "scaled", "led", "erratic", "clock_s", "age_s", "hop",
)  # fmt: skip

# What an alarm says about a stream, from any detector; see symptoms.py for the live detectors' words.
SYMPTOMS: tuple[str, ...] = ("silence", "latency", "early", "loss", "rate", "gps", "imu", "accuracy")


@dataclass(frozen=True, slots=True)
class Symptom:
    """What an alarm says about one stream. `size` is the reading behind it: seconds, a ratio, or 1."""

    sensor: str
    word: str
    size: float


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one question: readings by device, and the neighbours that it revealed."""

    tool: Tool
    target: str
    readings: Mapping[str, Mapping[str, float]]
    neighbours: tuple[tuple[str, Device, str], ...] = field(default=())
    """Each as (device, what it is, the device it is behind)."""
    standby: tuple[tuple[str, str], ...] = field(default=())
    """The standby links that it revealed, each by its two ends; all are known or among the neighbours."""

    @property
    def answered(self) -> bool:
        """Whether the target answered."""
        return self.readings.get(self.target, {}).get("answered", 0.0) > 0.5


class Tools(Protocol):
    """A source of answers. A question about an unknown device is a ValueError."""

    def can(self, tool: Tool, target: str) -> bool:
        """Whether there is any point in asking this of this device; told before, and for nothing."""
        ...

    def ask(self, tool: Tool, target: str) -> Report | None:
        """The answer; None when this tool cannot tell anything about this device (no gateway answers pings)."""
        ...
