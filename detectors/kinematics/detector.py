"""kinematics: a track that contradicts itself.

Every ADS-B report is compared with the track so far, in SI units, per vehicle:
- jump: to get here from the last trusted position it would have had to fly faster than `jump_speed_kt`;
- speed: displacement disagrees with the reported ground speed by more than `speed_error_kt`, over half a minute;
- duplicate_id: it jumps away and comes back, again and again: two vehicles share one id;
- too_fast: a drone, glider or ship reports a speed that none of its kind reaches (for `jump` and `speed` too each kind
  has limits of its own);
- operator: a drone's operator says to be farther away than `operator_m`, which no usual link reaches;
- climb: altitude changed faster than `climb_fpm`. It is named, and it counts when the position contradicts itself too.
Each gives a ratio to its limit; the score is the largest, the threshold 1. A report that jumped is not trusted, so
a teleport stays anomalous while a single spike is one epoch; after REACQUIRE reports that agree with each other
the track goes on from the new place.

Why altitude alone raises nothing: it is a code of a dozen bits, which one disturbed bit or the reply of another
aircraft turns into any other. Real feeds carry wrong altitudes in singles and in rows of several that agree with each
other, for up to half a minute, on tracks with nothing else wrong.

Why speed needs half a minute: a position may be stamped, or resampled, several seconds late. The aircraft then seems
slow and after that fast, and over both it is neither. So the excess is balanced over SPEED_S, and counts while the
newest reports still add to it. The verdict stands until the next comparison. After a longer gap in the positions one
thing can still be said: nobody gets further than his highest speed all the while.

Many feeds repeat the last known value until there is a new one. A repeated position is not a measurement: it is not
compared and it is no new epoch, but an aircraft that is heard all the while has no break: the next new position must be
within reach of the last one. A velocity that stays the same for HELD_S is a repeated one and is not compared either,
and on the ground, where no airborne velocity is sent, none is.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.kernels.records import blank, room, take_over
from watchkeeper.detectors.kinematics.declaration import DECLARATION
from watchkeeper.detectors.kinematics.kernel import follow
from watchkeeper.detectors.kinematics.state import CLIMB, OPERATOR, ByKind, Finding, Limits, Track
from watchkeeper.streams.batch import F8, I4, I8, U1
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.messages import Kind

CAUSES = ("jump", "climb", "speed", "duplicate_id", "too_fast", "operator")


class Kinematics:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tracks: NDArray[Any] = fleet.growing.rows(blank(Track, 1))
        # figures of the last window, or what they are counted from
        self._counts = (0, 0)
        self._last: tuple[F8, I8] | None = None
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        cfg = config.detectors.kinematics
        aircraft = Limits(
            jump_ms=cfg.jump_speed_kt * KT_MS,
            climb_ms=cfg.climb_fpm * FT_M / 60.0,
            error_ms=cfg.speed_error_kt * KT_MS,
            noise_m=cfg.position_noise_m,
        )
        drone, glider, ship = (
            aircraft._replace(jump_ms=speed_kt * KT_MS, error_ms=cfg.slow_error_kt * KT_MS, noise_m=cfg.slow_noise_m)
            for speed_kt in (cfg.drone_speed_kt, cfg.glider_speed_kt, cfg.ship_speed_kt)
        )
        self._limits = ByKind(aircraft, drone, glider, ship, cfg.operator_m)

    def step(self, window: Window) -> list[Evidence]:
        """Score each report against the track before it, then extend the track."""
        samples = window.samples.get(Kind.ADSB)
        if samples is None:
            return []
        return [self._score(samples)]

    def _score(self, s: Samples) -> Evidence:
        n = len(s)
        found = room(Finding, n)
        follow(s.slot, s.t, s.data, self._limits, self._tracks, found)
        # columns of their own: kernels are compiled for those
        score, epoch, bits = (np.ascontiguousarray(found[name]) for name in ("score", "epoch", "bits"))
        self._last = score, bits
        return Evidence(
            "kinematics",
            s.slot,
            t=s.t,
            epoch=epoch,
            score=score,
            threshold=np.ones(n),
            severity=_severity(score),
            numbers={
                "implied_speed_kt": found["speed_ms"] / KT_MS,
                "implied_climb_fpm": found["climb_ms"] * 60.0 / FT_M,
                "speed_error_kt": found["error_ms"] / KT_MS,
            },
            causes=CAUSES,
            cause_bits=bits,
            details=_operators(bits, found["operator_m"]),
        )

    def quiet_until(self, t: float) -> float:  # noqa: ARG002
        """Nothing changes without reports."""
        return math.inf

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._tracks[slots] = blank(Track, 1)

    def gauges(self) -> dict[str, float]:
        """Reports of the last window that contradict their track, and those whose altitude does."""
        anomalous, spikes = self._figures()
        return {"reports": float(anomalous), "altitude_spikes": float(spikes)}

    def _figures(self) -> tuple[int, int]:
        """Reports of the last window that contradict their track, and those whose altitude does; counted when asked."""
        if self._last is not None:
            score, bits = self._last
            self._counts, self._last = (int((score >= 1.0).sum()), int((bits & CLIMB > 0).sum())), None
        return self._counts

    def snapshot(self) -> dict[str, Any]:
        """The tracks, and the figures of the last step."""
        anomalous, spikes = self._figures()
        return {"tracks": self._tracks[: self._fleet.high], "anomalous": anomalous, "spikes": spikes}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        take_over(self._tracks, state["tracks"])
        self._counts, self._last = (state["anomalous"], state["spikes"]), None


def _operators(bits: Any, operator_m: F8) -> tuple[dict[str, Any], ...]:
    """How far away the operators are that are too far away; nothing when none is."""
    if not (bits & OPERATOR).any():
        return ()
    rows = zip((bits & OPERATOR > 0).tolist(), operator_m.tolist(), strict=True)
    return tuple({"operator_m": round(away_m, 1)} if far else {} for far, away_m in rows)


def _severity(score: F8) -> U1:
    """A contradiction is a caution; ten times past the limit nobody doubts it."""
    return np.where(score >= 10.0, 2, 1).astype(np.uint8)
