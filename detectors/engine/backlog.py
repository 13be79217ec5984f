"""What was saved up during an outage, in the order in which it would have come without one.

After an outage one sender after the other sends what it has saved. In this order of arrival the first one would close
the ticks that all others still have samples for.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from watchkeeper.detectors.engine.arrivals import Arrivals
from watchkeeper.detectors.engine.eventtime import EventClock
from watchkeeper.streams.batch import F8, CheckedBatch
from watchkeeper.streams.logs.chunks import numbered, reordered

# A clock is set, or its sender was silent, where it goes on by more than so many of its usual steps.
STEPS = 3.0


def in_order(batch: CheckedBatch, clock: EventClock, newest_t: float = np.inf) -> CheckedBatch:
    """The samples in the order of their own times.

    A batch in which most go back stays as it is. A sender that goes back, or beyond `newest_t`, while most do not, has
    a clock that is off: its last sample is put where the others end, and those before it where they were by its own
    pace, so that it does not seem to go on alone.
    """
    batch = numbered(batch)
    arrivals = Arrivals(batch)
    own_t = clock.own_t(arrivals.t, batch.ids, arrivals.vid)
    last_t = np.full(len(batch.ids), -np.inf)
    np.maximum.at(last_t, arrivals.vid, own_t)
    heard = last_t > -np.inf
    oldest_t = clock.t_max - clock.max_jump_s
    if not heard.any() or np.median(last_t[heard]) < oldest_t:
        return batch
    off = heard & ((last_t < oldest_t) | (last_t > newest_t))
    if 2 * off.sum() < heard.sum():
        end_t = float(last_t[heard & ~off].max())
        for vid in np.flatnonzero(off).tolist():
            rows = np.flatnonzero(arrivals.vid == vid)
            own_t[rows] = _places(own_t[rows], min(clock.t_max, end_t), end_t)
    return reordered(batch, own_t)


def _places(t: F8, start_t: float, end_t: float) -> F8:
    """When samples of a clock that is off were sent, by all that is known: after start_t, the last of them at end_t.

    Where the clock was set meanwhile, those before may have the right time.
    """
    steps = np.diff(t)
    usual = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    if isfinite(start_t):
        # a clock that runs away has another pace than its sender
        usual = min(usual, (end_t - start_t) / len(t))
    places = np.full(len(t), end_t)
    for i in range(len(steps) - 1, -1, -1):
        step, after = float(steps[i]), places[i + 1]
        if 0.0 <= step <= STEPS * usual:
            places[i] = after - step
        elif start_t <= t[i] <= after:
            places[i] = t[i]
        else:
            places[i] = after - usual
    if places[0] < start_t and isfinite(start_t):
        places = end_t - (end_t - places) * (end_t - start_t) / (end_t - places[0])
    return places
