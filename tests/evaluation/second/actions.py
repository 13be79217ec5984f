"""What the commands were like: steps with an intervention, and how much they oscillate; degrees and knots."""

from __future__ import annotations

import math
from itertools import pairwise

from second.alerts import above_threshold
from second.log import Log


def intervention_steps(log: Log) -> list[bool]:
    """Whether any aircraft's command is at or above a threshold, threat or not."""
    return [any(above_threshold(command, log) for command in log.commands(t).values()) for t in range(log.steps)]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def flip_rate(signed_deg: list[float], dead_zone_deg: float) -> float:
    """Reversals per transition between two commands that are both at or above the dead zone."""
    flips = transitions = 0
    for before, after in pairwise(signed_deg):
        if abs(before) >= dead_zone_deg and abs(after) >= dead_zone_deg:
            transitions += 1
            flips += sign(before) != sign(after)
    return flips / max(1, transitions)


def variation(series: list[float], full: float) -> float:
    """Mean change from step to step, in full commands."""
    if len(series) < 2:
        return 0.0
    changes = [abs(after - before) for before, after in pairwise(series)]
    return sum(changes) / (full * (len(series) - 1))


def oscillation_rate(log: Log) -> float:
    """Half reversals of the mean signed heading command, half variation of the mean absolute commands."""
    settings = log.settings
    by_step = [list(log.commands(t).values()) for t in range(log.steps)]
    signed_deg = [mean([heading for heading, _ in step]) for step in by_step]
    heading_deg = [mean([abs(heading) for heading, _ in step]) for step in by_step]
    speed_kt = [mean([abs(speed) for _, speed in step]) for step in by_step]
    jitter = (variation(heading_deg, settings.full_heading_deg) + variation(speed_kt, settings.full_speed_kt)) / 2.0
    return 0.5 * (flip_rate(signed_deg, settings.dead_zone_deg) + jitter)
