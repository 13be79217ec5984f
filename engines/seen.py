"""What a diagnosis looks at, of some vehicles at one tick: taken where they are judged, put together in Merge.

    seen = take(pipeline, slots, sent)  newest times, link statistics, reports, new fixes; forces that disagree
    scene.put(seen)                     a fleet and link statistics that answer like those of one whole pipeline

Incidents are about vehicles behind one gateway, and these are spread over operators by name. So the operators send,
once a second of event time, what a look may need of the vehicles behind gateways and of those with an alarm.

Samples go once: `sent[kind][slot]` are those that Merge has, by their number since the vehicle was first heard. After a
restart whatever the rings hold goes again, and Merge takes what it does not have.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.declared import SENT_BY_VEHICLES
from watchkeeper.detectors.fleet.fleet import Fleet, Ring
from watchkeeper.detectors.incidents.incidents import DIAGNOSED, link_stats
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

# A look reads the fixes of every vehicle that it asks about, and the IMU of those with this alarm
# (incidents/live_tools.py).
CONTRADICTED = frozenset({"gps_imu"})
# What it reads of a fix (incidents/scan.py): position, velocity and the receiver's own estimate of its error.
FIX = np.array([COLUMN[Kind.GPS][name] for name in (*(f"gps_{a}" for a in ("x", "y", "z", "vx", "vy", "vz")), "eph")])
FORCE = np.arange(len(FIELDS[Kind.IMU]))
Sent = dict[Kind, I8]


def nothing_sent(capacity: int) -> Sent:
    """Merge has no sample of any slot."""
    return {kind: np.zeros(capacity, np.int64) for kind in (Kind.GPS, Kind.IMU)}


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


def take(pipeline: Pipeline, slots: I4, sent: Sent) -> dict[str, Any] | None:
    """What is known of these slots now; None when there is nobody, or no incidents are made."""
    stats, fleet = link_stats(pipeline.detectors), pipeline.fleet
    if stats is None or not len(slots) or not pipeline.config.diagnosis.enabled:
        return None
    numbers = np.where(stats.via[slots] >= 0, stats.via[slots], -1)
    contradicted = np.isin(slots, alarmed(pipeline, CONTRADICTED))
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
        "seam_s": stats.seams_s(slots),
        "fixes": _new(fleet.ring[Kind.GPS], FIX, slots, sent[Kind.GPS]),
        "contradicted": contradicted,
        "forces": _new(fleet.ring[Kind.IMU], FORCE, slots[contradicted], sent[Kind.IMU]),
    }


def _new(ring: Ring, fields: I8, slots: I4, sent: I8) -> dict[str, Any]:
    """The samples of these slots that were not sent before, one vehicle's after the other's."""
    count = ring.count[slots]
    first = np.maximum(sent[slots], count - ring.depth)
    new = count - first
    who = np.repeat(np.arange(len(slots), dtype=np.int32), new)
    number = np.arange(len(who)) - np.repeat(np.cumsum(new) - new, new) + np.repeat(first, new)
    at, slot = number % ring.depth, slots[who]
    sent[slots] = count
    return {"first": first, "new": new, "t": ring.t[slot, at], "data": ring.data[fields[:, None], slot, at]}


class SeenLinks(LinkStats):
    """Link statistics whose figures were worked out elsewhere."""

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self.ratio: F8 = np.empty((0, 0))
        super().__init__(config.detectors.link, config.time.tick_s, fleet)
        k, n = len(self.kinds), fleet.capacity
        self.ratio, self.share = np.full((k, n), np.nan), np.zeros((k, n))
        self.excess_s: F8 = np.full(n, np.nan)
        self.seam: F8 = np.full(n, np.nan)

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
        return float(self.seam[slot])


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
        links.excess_s[slots], links.seam[slots] = seen["excess_s"], seen["seam_s"]
        if fleet.declared.any:
            heard = seen["count"][list(SENT_BY_VEHICLES)].any(axis=0)
            for slot in fleet.declared.strangers(slots[heard]):
                fleet.declared.meet(slot, fleet.ids[slot])
        self._put(Kind.GPS, FIX, slots, seen["fixes"])
        self._put(Kind.IMU, FORCE, slots[seen["contradicted"]], seen["forces"])

    def _put(self, kind: Kind, fields: I8, slots: I4, new: dict[str, Any]) -> None:
        ring = self.fleet.ring[kind]
        _push(slots, new["first"], new["new"], fields, Rows(new["t"], new["data"]), Rows(ring.t, ring.data), ring.count)
        # a snapshot of the fleet has the fields that were ever sent
        self.fleet.value_t[kind][fields[:, None], slots] = self.fleet.last_t[kind, slots]

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
            for table in (self.links.ratio, self.links.excess_s, self.links.seam):
                table[..., gone] = math.nan
            self.links.share[:, gone] = 0.0
            self.fleet.forget(gone, math.inf)


class Rows(NamedTuple):
    """Times and fields, of new samples or of a ring."""

    t: F8
    data: F8


@njit(cache=True)
def _push(slots: I4, first: I8, new: I8, fields: I8, rows: Rows, ring: Rows, count: I8) -> None:
    """Put the samples into the ring that are not in it yet: `first[i]` is the number of the first of `slots[i]`."""
    depth, at = ring.t.shape[1], 0
    for i in range(slots.size):
        s = slots[i]
        for k in range(new[i]):
            number = first[i] + k
            if number >= count[s]:
                ring.t[s, number % depth] = rows.t[at]
                for f in range(fields.size):
                    ring.data[fields[f], s, number % depth] = rows.data[f, at]
                count[s] = number + 1
            at += 1
