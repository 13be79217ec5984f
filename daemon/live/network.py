"""The links as the live page shows them: broker and sources, the gateways behind the broker, the vehicles behind those.

Gateways are summed up over their vehicles in columns. Of the vehicles themselves the worst are listed, up to
MAX_LISTED: a page that shows ten thousand dots says less than one that shows the twenty that matter. Incidents, with
their diagnosis, are alarms and reach the page as such.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.daemon.live.vehicle import DIGITS, finite
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.incidents import link_stats
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.messages import COLUMN, Kind

MAX_LISTED = 400
_RTT, _LOAD = COLUMN[Kind.LINK]["rtt_s"], COLUMN[Kind.LINK]["load"]


def network(pipeline: Pipeline) -> dict[str, Any]:
    """Gateways and vehicles at the last tick; the index of a vehicle's gateway is -1 where it has none."""
    fleet, gateways = pipeline.fleet, pipeline.gateways
    stats = link_stats(pipeline.detectors)
    n = fleet.high
    aircraft = int(np.count_nonzero(fleet.count[Kind.ADSB, :n]))
    found: dict[str, Any] = {"type": "network", "aircraft": aircraft, "gateways": [], "vehicles": [], "unlisted": 0}
    if stats is None:
        return found
    slots: I8 = np.flatnonzero(fleet.count[stats.kinds, :n].any(axis=0))
    with np.errstate(invalid="ignore"):
        rate = np.where(np.isfinite(r := stats.rate_ratio()[:, slots]), r, np.inf).min(axis=0, initial=np.inf)
    rate = np.where(np.isinf(rate), np.nan, rate)
    late_s = stats.latency_excess_s()[slots]
    silent: Bool = np.all(stats.silent[:, slots], axis=0)
    found["gateways"] = _gateways(fleet, stats, gateways, slots, rate, late_s, silent)
    # the worst first: silent, then by what is missing and how late the rest comes
    badness = np.where(silent, np.inf, np.nan_to_num(1.0 - rate) + np.abs(np.nan_to_num(late_s)))
    order = np.argsort(-badness, kind="stable")[:MAX_LISTED]
    found["unlisted"] = len(slots) - len(order)
    found["vehicles"] = [
        {"id": fleet.ids[slot], "gateway": via, "rate_ratio": ratio, "latency_excess_s": late, "silent": quiet}
        for slot, via, ratio, late, quiet in zip(
            slots[order].tolist(), stats.via[slots[order]].tolist(), finite(rate[order].tolist()),
            finite(late_s[order].tolist()), silent[order].tolist(), strict=True,
        )
    ]  # fmt: skip
    return found


def _gateways(
    fleet: Fleet, stats: LinkStats, names: list[str], slots: I8, rate: F8, late_s: F8, silent: Bool
) -> list[dict[str, Any]]:
    """One row per gateway, and a last one for the vehicles that come to us directly, if there are any."""
    groups = len(names) + 1
    group = np.where(stats.via[slots] >= 0, stats.via[slots], len(names))
    count = np.bincount(group, minlength=groups)
    quiet = np.bincount(group[silent], minlength=groups)
    least, most_s = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.fmin.at(least, group, rate)
    np.fmax.at(most_s, group, late_s)
    rows = []
    for i, name in enumerate([*names, ""]):
        if not name and not count[i]:
            continue
        slot = fleet.slot_of.get(name, -1) if name else -1
        rtt_s, load = (float(fleet.value[Kind.LINK][c, slot]) if slot >= 0 else np.nan for c in (_RTT, _LOAD))
        rows.append(
            {
                "name": name,
                "vehicles": int(count[i]),
                "silent": int(quiet[i]),
                "rate_ratio": finite([least[i]])[0],
                "latency_excess_s": finite([most_s[i]])[0],
                "rtt_s": round(rtt_s, DIGITS),
                "load": round(load, DIGITS),
            }
        )
    return rows
