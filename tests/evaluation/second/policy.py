"""Commands of the made aircraft: idle, bursts, twitching, homing, and escapes; degrees and knots.

Some commands are exactly a threshold of the metrics. None is a turn of exactly one degree: whether that is
navigation is a question of the last bit, and two correct programs may differ in it.
"""

from __future__ import annotations

import numpy as np

from second.geometry import wrapped_deg

LIMIT_DEG = 18.0
LIMIT_KT = 10.0
EXACT = [(3.0, 0.0), (-3.0, 0.0), (0.0, 5.0), (0.0, -5.0), (2.0, 0.0), (-2.0, 0.0), (2.0, 5.0), (18.0, 10.0)]
STYLES = ("idle", "burst", "twitch", "home", "escape", "exact", "noise")


class Pilot:
    """One aircraft's habit: a style that changes now and then."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._style = "idle"
        self._left = 0
        self._turn_deg = 0.0
        self._speed_kt = 0.0

    def command(self, off_course_deg: float | None, intruder_side_deg: float | None) -> list[float]:
        """The next command.

        `off_course_deg` is the turn to the waypoint, `intruder_side_deg` the bearing of a near intruder less the
        heading; None where there is none.
        """
        rng = self._rng
        if self._left == 0:
            self._style = str(rng.choice(STYLES, p=[0.3, 0.2, 0.1, 0.15, 0.1, 0.1, 0.05]))
            self._left = int(rng.integers(1, 9))
            self._turn_deg = float(rng.uniform(2.0, LIMIT_DEG) * rng.choice([-1, 1]))
            self._speed_kt = float(rng.choice([0.0, rng.uniform(-LIMIT_KT, LIMIT_KT)]))
        self._left -= 1
        match self._style:
            case "burst":
                return [self._turn_deg, self._speed_kt]
            case "twitch":
                self._turn_deg = -self._turn_deg
                return [self._turn_deg, self._speed_kt]
            case "home" if off_course_deg is not None:
                return [limited(wrapped_deg(off_course_deg), LIMIT_DEG), 0.0]
            case "escape" if intruder_side_deg is not None:
                away = -1.0 if wrapped_deg(intruder_side_deg) > 0.0 else 1.0
                return [away * abs(self._turn_deg), self._speed_kt]
            case "exact":
                return list(EXACT[int(rng.integers(len(EXACT)))])
            case "noise":
                return [limited(float(rng.normal(0.0, 3.0)), LIMIT_DEG), limited(float(rng.normal(0.0, 4.0)), LIMIT_KT)]
        return [0.0, 0.0]


def limited(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)
