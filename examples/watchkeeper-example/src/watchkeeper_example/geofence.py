"""geofence: an aircraft that is inside or outside of a circle, when it should not be.

The score is the distance from the centre over the radius (or, with `keep = "out"`, the reverse); 1 is the fence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Flag, Section, about, text
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, simulated
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.words import WHEN, known, listed
from watchkeeper.streams.batch import I4
from watchkeeper.streams.messages import COLUMN, Kind

LAT, LON = COLUMN[Kind.ADSB]["lat"], COLUMN[Kind.ADSB]["lon"]
NM_PER_DEG = 60.0
SCORE_MAX = 1000.0


class Settings(Section, frozen=True):
    """A circle that aircraft keep inside of, or outside of."""

    enabled: Flag = True
    lat: Annotated[float, about("deg", "latitude of the centre, north", ge=-90, le=90, live=True)] = 50.0
    lon: Annotated[float, about("deg", "longitude of the centre, east", ge=-180, le=180, live=True)] = 8.0
    radius_nm: Annotated[float, about("NM", "from the centre to the fence", ge=0.1, le=1000, live=True)] = 100.0
    keep: Annotated[Literal["in", "out"], text("which side of the fence is the right one", live=True)] = "in"
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=3))


class FenceFacts(Facts, frozen=True, kw_only=True):
    """Where the aircraft is."""

    distance_nm: Annotated[float | None, fact("NM", "distance from the centre of the circle")] = None
    beyond_nm: Annotated[float | None, fact("NM", "distance beyond the fence, on the wrong side")] = None


def _say(subjects: Sequence[str], facts: FenceFacts) -> str:
    return f"{listed(subjects)}: {known(facts.beyond_nm, 1, 'NM')} beyond the fence {WHEN}"


class Geofence:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = Declaration(
        name="geofence",
        help="aircraft on the wrong side of a circle",
        settings=Settings,
        subjects="vehicle",
        kinds=(
            AlarmKind(
                name="geofence", help="an aircraft is on the wrong side of the fence", facts=FenceFacts, say=_say
            ),
        ),
        gauges=(Gauge(name="beyond", help="Aircraft on the wrong side of the fence now, before debouncing"),),
        scenario=simulated("random", 60, vehicles=40),
    )

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._beyond = 0
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new settings."""
        self._settings: Settings = section_of(config, "detectors", "geofence")

    def step(self, window: Window) -> list[Evidence]:
        """Where everybody is who has reported in this window."""
        samples = window.samples.get(Kind.ADSB)
        if samples is None:
            return []
        slot = np.unique(samples.slot)
        cfg, value = self._settings, self._fleet.value[Kind.ADSB]
        north_nm = NM_PER_DEG * (value[LAT, slot] - cfg.lat)
        east_nm = NM_PER_DEG * (value[LON, slot] - cfg.lon) * np.cos(np.radians(cfg.lat))
        distance_nm = np.hypot(north_nm, east_nm)
        inside = cfg.keep == "in"
        score = distance_nm / cfg.radius_nm if inside else cfg.radius_nm / np.maximum(distance_nm, 1e-6)
        beyond_nm = (distance_nm - cfg.radius_nm) * (1.0 if inside else -1.0)
        self._beyond = int((score >= 1.0).sum())
        n = len(slot)
        return [
            Evidence(
                "geofence",
                slot,
                t=np.full(n, window.t),
                epoch=self._fleet.last_t[Kind.ADSB, slot],
                score=np.minimum(score, SCORE_MAX),
                threshold=np.ones(n),
                severity=np.ones(n, np.uint8),
                numbers={"distance_nm": distance_nm, "beyond_nm": np.maximum(beyond_nm, 0.0)},
            )
        ]

    def quiet_until(self, t: float) -> float:  # noqa: ARG002
        """Without reports there is nothing to say."""
        return math.inf

    def forget(self, slots: I4) -> None:
        """Nothing is remembered of anybody."""

    def gauges(self) -> dict[str, float]:
        """Figures of the last step."""
        return {"beyond": float(self._beyond)}

    def snapshot(self) -> dict[str, Any]:
        """Figures alone."""
        return {"beyond": self._beyond}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._beyond = state["beyond"]
