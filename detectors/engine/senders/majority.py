"""Once per tick the majority is asked: who has pulled time ahead, how long ticks wait, how far samples may be ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.engine.senders.records import PROVEN, Rules, is_active
from watchkeeper.detectors.engine.senders.strays import shift
from watchkeeper.detectors.kernels.order import median, nth, sort_by
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.kernels import njit

# Senders looked at in a review: a sample of a large fleet has the same median.
REVIEWED = 1024
# An interval between samples that is not known yet.
USUAL_S = 1.0


@njit(cache=True)
def review(senders: NDArray[Any], high: int, now: Any, rules: Rules) -> None:
    """Ask the majority: who has pulled time ahead, how long ticks wait, how far ahead a sample may be."""
    lead = np.empty(min(high, 2 * REVIEWED))
    lag = np.empty(lead.size)
    interval = np.empty(lead.size)
    whose = np.empty(lead.size, np.int64)
    step = 1 + high // REVIEWED
    n, active, proven, trailing = 0, 0, 0, 0
    for s in range(high):
        sender = senders[s]
        if is_active(sender, now) and not sender.unsteady:
            active += 1
            proven += sender.n > PROVEN
            if s % step == 0 and n < lead.size:
                lead[n], lag[n], interval[n] = sender.lead_s, sender.lag_s, sender.interval_s
                whose[n] = s
                trailing += sender.last_lead_s < -rules.tolerance_s
                n += 1
    now.active, now.proven = active, proven
    now.confirmed = active > 1
    now.wait_s = rules.lateness_s
    now.lead_s = now.every_s = 0.0
    if n > 0:
        now.every_s = median(interval[:n])
        now.lead_s = _vote(lead[:n], whose[:n], senders, now)
    every_s = now.every_s
    now.reach_s = rules.tolerance_s + (every_s if every_s > 0.0 else USUAL_S) + 2.0 * max(0.0, now.lead_s)
    # where reports are rare, the next one is far ahead
    now.reach_s = min(max(rules.max_jump_s, 2.0 * every_s), max(now.reach_s, 3.0 * rules.tolerance_s))
    now.usual_s = now.reach_s
    if active > 2:
        # the second of the others may report as rarely, and come as late as it may
        now.reach_s += every_s + rules.lateness_s
    if n < 2:
        return
    # one sender alone is not waited for: the largest lag does not count, nor the largest tenth of many
    behind = nth(lag[:n], min(n - 2, int(0.9 * n)))
    if behind > 0.5 * rules.lateness_s:
        now.wait_s = min(rules.max_jump_s, max(rules.lateness_s, behind + 0.5 * rules.lateness_s))
    ahead = 0
    for i in range(n):
        ahead += lead[i] > now.lead_s + rules.tolerance_s
    # one late sample is not a habit: most must be known for a while, and not only have been behind at some time
    behind_now = now.lead_s < -rules.tolerance_s and 2 * trailing > n
    if behind_now and ahead <= max(1, n // 4) and 2 * proven > active:
        _go_back(senders, high, now, rules)


@njit(cache=True)
def _go_back(senders: NDArray[Any], high: int, now: Any, rules: Rules) -> None:
    """A few have pulled time ahead of the majority: back to it, and take the excess off those few."""
    back_s = now.lead_s
    now.t += back_s
    now.leader, now.leader_voter, now.leader_t = 0, 0, -np.inf
    now.lead_s = 0.0
    for s in range(high):
        sender = senders[s]
        sender.heard_t = min(sender.heard_t, now.t)
        sender.odd = False
        sender.lead_s -= back_s
        sender.last_lead_s -= back_s
        sender.lag_s = max(0.0, sender.lag_s + back_s)
        if sender.lead_s > rules.tolerance_s and is_active(sender, now):
            shift(sender, sender.lead_s, now)


@njit(cache=True)
def _vote(lead: F8, whose: I8, senders: NDArray[Any], now: Any) -> float:
    """The median lead, one vote per gateway or vehicle of its own; of two voters the one known for longer decides."""
    n = lead.size
    size = np.zeros(n)
    voters = 0
    for i in range(n):
        via = senders[whose[i]].via
        if via == 0:
            size[i] = 1.0
            voters += 1
        elif size[i] == 0.0:
            count = 0
            for j in range(i, n):
                count += senders[whose[j]].via == via
            for j in range(i, n):
                if senders[whose[j]].via == via:
                    size[j] = count
            voters += 1
    now.gateways_vote = voters >= 3
    if n == 2:
        first = 0 if senders[whose[0]].since_n < senders[whose[1]].since_n else 1
        return float(lead[first])
    ranked = np.empty(n)
    for i in range(n):
        ranked[i] = lead[i]
    if voters < 3 or voters == n:
        # too few gateways to outvote one, or as many as vehicles: every vehicle counts
        return nth(ranked, n // 2)
    order = np.empty(n, np.int64)
    total = 0.0
    for i in range(n):
        total += 1.0 / size[i]
        order[i] = i
    sort_by(ranked, order)
    half = 0.5 * total
    total = 0.0
    for i in range(n):
        total += 1.0 / size[order[i]]
        if total > half:
            return float(ranked[i])
    return float(ranked[n - 1])
