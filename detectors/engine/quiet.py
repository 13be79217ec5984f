"""Which ticks can be left out: those without samples in which nothing can change. Used by the pipeline.

A log costs by its samples and not by its span, and so does a fleet that is quiet while time is told from outside. What
is left out changes no alarm: every part says until when it would do nothing without samples, and waking too early only
costs a tick. The parts are the detectors (`Resting` in base.py: one that does not say sees every tick), the alarms that
count, repeat themselves or end, coverage, notes about clocks, incidents that wait for a look, and vehicles that are to
be forgotten.

A tick without samples that runs all the same, because somebody has something to do, asks only those who have: a vehicle
that is no longer fresh costs a look at the coverage, and no detector. Whoever has an active alarm is asked every time.

What happens now and then does so at ticks that reach a multiple of its period of event time. It does not hang on when
the first sample came: two pipelines that began at different moments do the same things at the same ticks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from watchkeeper.detectors.engine.room import crowded
from watchkeeper.streams.periods import periods_over, periods_until

if TYPE_CHECKING:
    from watchkeeper.detectors.engine.pipeline import Pipeline

# How often vehicles unheard of are looked for, and cells of alarms that hold nothing are given back, in seconds.
EVICT_EVERY_S = 10.0
TIDY_EVERY_S = 5.0


def quiet_until(pipeline: Pipeline) -> float:
    """After the last tick: the time before which no tick without samples changes anything."""
    t = pipeline.guard.t
    declared = pipeline.fleet.declared
    if t == -math.inf or (declared.any and np.isnan(declared.since_t[declared.named]).any()):
        return t
    if pipeline.clock_alarms.waits or crowded(pipeline):
        return t
    until = min(pipeline.guard.quiet_until(t, pipeline.watches), pipeline.clock.noted_t)
    if until <= t:
        return until
    if pipeline.incidents is not None:
        until = min(until, pipeline.incidents.quiet_until())
    return _leaves(pipeline, t, until)


def _leaves(pipeline: Pipeline, t: float, until: float) -> float:
    """When a vehicle that has been unheard for too long will next be looked for: the ticks until then find nobody.

    `until` if that is not before.
    """
    # a vehicle that is idle at one multiple of the period is looked for at the next, or a little before
    idle_t = pipeline.fleet.quiet_until(t, until + 2.0 * EVICT_EVERY_S)
    if math.isinf(idle_t):
        return until
    # the tick that reaches a multiple may end up to a tick later; one more for rounding
    due = periods_until(idle_t - 2.0 * pipeline.clock.tick_s, EVICT_EVERY_S)
    return min(until, max(due, periods_over(t, EVICT_EVERY_S) + 1) * EVICT_EVERY_S)


def wakes(until: float, tick_s: float) -> int:
    """The first tick that must run when nothing happens before this time."""
    if math.isinf(until):
        return 2**62 if until > 0.0 else -(2**62)
    return periods_until(until, tick_s)
