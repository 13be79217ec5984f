"""What a diagnosis looks at, of some vehicles at one tick: taken where they are judged, put together in Merge.

    seen = take(pipeline, slots)        newest times, link statistics, reports, and rings where GPS and IMU disagree
    scene.put(seen)                     a fleet and link statistics that answer like those of one whole pipeline

Incidents are about vehicles behind one gateway, and these are spread over operators by name. So the operators send,
once a second of event time, what a look may need of the vehicles behind gateways and of those with an alarm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.declared import SENT_BY_VEHICLES
from watchkeeper.detectors.fleet.fleet import Fleet, Ring
from watchkeeper.detectors.incidents.incidents import DIAGNOSED, link_stats
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import FIELDS, Kind

# A look reads the fixes of every vehicle that it asks about, and the IMU of those with this alarm
# (incidents/live_tools.py).
CONTRADICTED = frozenset({"gps_imu"})
LINK_FIELDS = len(FIELDS[Kind.LINK])


def worth_seeing(pipeline: Pipeline) -> I4:
    """The slots of which a look may need something: behind a gateway, with an alarm, or reported on."""
    stats, fleet = link_stats(pipeline.detectors), pipeline.fleet
    if stats is None:
        return np.empty(0, np.int32)
    chosen = (stats.home(pipeline.gateway_table.number) >= 0) | (fleet.count[Kind.LINK, : fleet.high] > 0)
    chosen[alarmed(pipeline, DIAGNOSED)] = True
    return np.flatnonzero(chosen).astype(np.int32)


def alarmed(pipeline: Pipeline, kinds: frozenset[str]) -> list[int]:
    """The slots of vehicles with an active alarm of these kinds."""
    names = {subjects[0] for kind, subjects in pipeline.book.active if kind in kinds}
    return [slot for name in names if (slot := pipeline.fleet.slot_of.get(name, -1)) >= 0]


def take(pipeline: Pipeline, slots: I4) -> dict[str, Any] | None:
    """What is known of these slots now; None when there is nobody, or no incidents are made."""
    stats, fleet = link_stats(pipeline.detectors), pipeline.fleet
    if stats is None or not len(slots) or not pipeline.config.diagnosis.enabled:
        return None
    numbers = np.where(stats.via[slots] >= 0, stats.via[slots], -1)
    contradicted = set(alarmed(pipeline, CONTRADICTED))
    return {
        "names": [fleet.ids[slot] for slot in slots.tolist()],
        "via": [pipeline.gateways[number] if number >= 0 else "" for number in numbers.tolist()],
        "last_t": fleet.last_t[:, slots],
        "count": fleet.count[:, slots],
        "value": fleet.value[Kind.LINK][:, slots],
        "value_t": fleet.value_t[Kind.LINK][:, slots],
        "ratio": stats.rate_ratio()[:, slots],
        "on_time": stats.on_time()[:, slots],
        "excess_s": stats.latency_excess_s()[slots],
        "seam_s": np.array([stats.seam_s(slot) for slot in slots.tolist()]),
        "fixes": _rings(fleet, Kind.GPS, slots.tolist()),
        "forces": _rings(fleet, Kind.IMU, [slot for slot in slots.tolist() if slot in contradicted]),
    }


def _rings(fleet: Fleet, kind: Kind, slots: list[int]) -> list[list[Any]]:
    """The newest samples of those who have any."""
    return [[fleet.ids[slot], *fleet.ring[kind].history(slot)] for slot in slots if fleet.count[kind, slot]]


class SeenLinks(LinkStats):
    """Link statistics whose figures were worked out elsewhere."""

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self.ratio: F8 = np.empty((0, 0))
        super().__init__(config.detectors.link, config.time.tick_s, fleet)
        k, n = len(self.kinds), fleet.capacity
        self.ratio, self.share = np.full((k, n), np.nan), np.zeros((k, n))
        self.excess_s: F8 = np.full(n, np.nan)
        self.seams_s: F8 = np.full(n, np.nan)

    def rate_ratio(self) -> F8:
        """See LinkStats."""
        return self.ratio[:, : self._fleet.high]

    def on_time(self) -> F8:
        """See LinkStats."""
        return self.share[:, : self._fleet.high]

    def latency_excess_s(self) -> F8:
        """See LinkStats."""
        return self.excess_s[: self._fleet.high]

    def seam_s(self, slot: int) -> float:
        """See LinkStats."""
        return float(self.seams_s[slot])


class Scene:
    """The fleet as incidents see it: of each vehicle what was last sent of it."""

    def __init__(self, config: Config) -> None:
        self.fleet = Fleet(config.fleet)
        self.links = SeenLinks(config, self.fleet)
        self.gateways: dict[str, int] = {}
        self.declare(config)

    def declare(self, config: Config) -> None:
        """Know what the configuration declares."""
        self.fleet.declare(config.topology)
        for name in self.fleet.declared.gateways:
            self.number(name)

    def number(self, gateway: str) -> int:
        """A gateway's number; -1 for none."""
        return self.gateways.setdefault(gateway, len(self.gateways)) if gateway else -1

    def put(self, seen: dict[str, Any]) -> None:
        """Take over what an operator has seen."""
        fleet, links = self.fleet, self.links
        slots = np.array([fleet.slot_for(name) for name in seen["names"]], np.int32)
        fleet.last_t[:, slots], fleet.count[:, slots] = seen["last_t"], seen["count"]
        fleet.value[Kind.LINK][:, slots], fleet.value_t[Kind.LINK][:, slots] = seen["value"], seen["value_t"]
        links.via[slots] = [self.number(name) for name in seen["via"]]
        links.ratio[:, slots], links.share[:, slots] = seen["ratio"], seen["on_time"]
        links.excess_s[slots], links.seams_s[slots] = seen["excess_s"], seen["seam_s"]
        if fleet.declared.any:
            heard = seen["count"][list(SENT_BY_VEHICLES)].any(axis=0)
            for slot in fleet.declared.strangers(slots[heard]):
                fleet.declared.meet(slot, fleet.ids[slot])
        for kind, rings in ((Kind.GPS, seen["fixes"]), (Kind.IMU, seen["forces"])):
            for name, t, data in rings:
                _fill(fleet.ring[kind], fleet.slot_of[name], t, data)

    def call(self, called: dict[str, str]) -> None:
        """New callsigns."""
        self.fleet.callsigns.update(called)

    def forget(self, names: list[str]) -> None:
        """These vehicles are no more. Those that are declared stay, unheard."""
        slots = [self.fleet.slot_of[name] for name in names if name in self.fleet.slot_of]
        for name in names:
            self.fleet.callsigns.pop(name, None)
        if slots:
            gone = np.array(slots, np.int32)
            self.links.forget(gone)
            for table in (self.links.ratio, self.links.excess_s, self.links.seams_s):
                table[..., gone] = math.nan
            self.links.share[:, gone] = 0.0
            self.fleet.forget(gone, math.inf)


def _fill(ring: Ring, slot: int, t: F8, data: F8) -> None:
    n = len(t)
    ring.t[slot, :n], ring.data[:, slot, :n], ring.count[slot] = t, data, n
