"""gnss_interference: many aircraft in one area lose the accuracy that they had. One alarm per area, none per aircraft.

quality.py says who has collapsed against their own past, cells.py which cells of the map are affected,
areas.py which areas these make and what became of the areas before. This file asks them about once per second of
event time and puts each area into evidence. Its subject is a place; the score is the share of the aircraft there that
have collapsed, the threshold `share`. An epoch is the newest accuracy report of any aircraft there, so an area without
aircraft says nothing.

Time without reports changes nothing here: cells are held, and aircraft grow old, in the time of the reports.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import h3.api.basic_int as h3
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full
from watchkeeper.detectors.declaration import Declaration, Ended
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.gnss_interference.areas import PREFIX, Area, Areas
from watchkeeper.detectors.gnss_interference.cells import Cells, Census, shape
from watchkeeper.detectors.gnss_interference.constants import EVERY_AIRCRAFT, EVERY_MAX_S, EVERY_S, EXTENT_MAX, TREND_S
from watchkeeper.detectors.gnss_interference.declaration import DECLARATION
from watchkeeper.detectors.gnss_interference.quality import Quality
from watchkeeper.streams.batch import F8, I4, U1
from watchkeeper.streams.geo import EARTH_M
from watchkeeper.streams.messages import ADSB, Kind
from watchkeeper.streams.periods import periods_over

NUMBERS = ("aircraft", "affected", "cells", "area_km2", "grown_km2", "shrunk_km2", "lat", "lon", "radius_km")


class GnssInterference:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._config = config.detectors.gnss_interference
        self._quality = Quality(self._config, fleet)
        self._cells = Cells(self._config.resolution)
        self._areas = Areas()
        # areas of another resolution than the present one: they end at the next step
        self._dropped: dict[str, Ended] = {}
        self._looked_t, self._pause_s = -math.inf, EVERY_S
        self._aircraft = self._collapsed = 0

    def retune(self, config: Config) -> None:
        """Take new thresholds. Areas of another resolution end."""
        cfg = self._config = config.detectors.gnss_interference
        self._quality.retune(cfg)
        if cfg.resolution != self._cells.resolution:
            self._cells = Cells(cfg.resolution)
            self._dropped |= {area.name: "replaced" for area in self._areas.areas}
            self._areas = Areas()

    def step(self, window: Window) -> list[Evidence]:
        """Judge the reports, learn from them, and look at the areas if a second has passed."""
        samples = window.samples.get(Kind.ADSB)
        if samples is None:
            return []
        self._quality.take(samples)
        # with the first reports from each multiple of the pause on
        if self._looked_t > -math.inf and self._turn(window.t) == self._turn(self._looked_t):
            return []
        self._looked_t = window.t
        return self._look(window.t)

    def _turn(self, t: float) -> int:
        return periods_over(t, self._pause_s)

    def _look(self, t: float) -> list[Evidence]:
        cfg = self._config
        slot, seen_t, collapsed = self._quality.heard(t)
        self._aircraft, self._collapsed = len(slot), int(collapsed.sum())
        self._pause_s = EVERY_S * min(max(1.0, self._collapsed / EVERY_AIRCRAFT), EVERY_MAX_S / EVERY_S)
        if self._collapsed < cfg.min_aircraft and not self._areas.areas and not self._dropped:
            return []
        position = self._fleet.value[Kind.ADSB]
        extents = [cell for area in self._areas.areas for cell in area.cells]
        census = self._cells.census(
            position[ADSB.lat, slot], position[ADSB.lon, slot], seen_t, collapsed, extents, cfg.min_aircraft, cfg.share
        )
        ended = self._areas.update(t, census.affected, cfg.hold_s, self._fleet.away) | self._dropped
        self._dropped = {}
        return [self._evidence(t, census, ended)]

    def _evidence(self, t: float, census: Census, ended: dict[str, Ended]) -> Evidence:
        found = [(area, row) for area in self._areas.areas if (row := self._row(t, area, census)) is not None]
        n = len(found)
        table = np.array([row for _, row in found]).reshape(n, 1 + len(NUMBERS)).T
        numbers = dict(zip(NUMBERS, table[1:], strict=True))
        share = numbers["affected"] / numbers["aircraft"]
        return Evidence(
            "gnss_interference",
            np.arange(n, dtype=np.int32),
            t=full(n, t),
            epoch=table[0],
            score=share,
            threshold=full(n, self._config.share),
            severity=self._severity(numbers["affected"]),
            numbers={"share": share, **numbers},
            places=tuple(area.name for area, _ in found),
            details=tuple({"extent": [h3.int_to_str(c) for c in area.cells[:EXTENT_MAX]]} for area, _ in found),
            news=np.array([area.is_news() for area, _ in found], bool),
            ended=ended,
        )

    @staticmethod
    def _row(t: float, area: Area, census: Census) -> list[float] | None:
        """Epoch and numbers of an area; None if nobody there can tell anything."""
        cells = area.cells
        # the held part of an extent has recovered: it is counted only once nothing else is left
        counted = [c for c in (census.affected.keys() & area.last_t.keys() or cells) if c in census.aircraft]
        if not counted:
            return None
        areas_km2, x, y, z = (sum(column) for column in zip(*map(shape, cells), strict=True))
        length = math.sqrt(x * x + y * y + z * z)
        x, y, z = x / length, y / length, z / length
        nearest = min(x * cx + y * cy + z * cz for _, cx, cy, cz in map(shape, cells))
        edge_km = float(h3.average_hexagon_edge_length(h3.get_resolution(cells[0]), unit="km"))
        return [
            max(census.newest_t[c] for c in counted),
            sum(census.aircraft[c] for c in counted),
            sum(census.collapsed[c] for c in counted),
            len(cells),
            areas_km2,
            sum(shape(c)[0] for c in cells if t - area.since_t[c] <= TREND_S),
            sum(shape(c)[0] for c in sorted(area.left_t) if t - area.left_t[c] <= TREND_S),
            math.degrees(math.asin(max(-1.0, min(1.0, z)))),
            math.degrees(math.atan2(y, x)),
            EARTH_M / 1000.0 * math.acos(max(-1.0, min(1.0, nearest))) + edge_km,
        ]

    def _severity(self, affected: F8) -> U1:
        cfg = self._config
        return ((affected >= cfg.caution_aircraft) + 1 * (affected >= cfg.warning_aircraft)).astype(np.uint8)

    def adopt(self, place: str, t_onset: float, t: float, evidence: dict[str, Any]) -> None:
        """An alarm was active before a restart: its area goes on under its name, with the extent that it had."""
        listed = evidence.get("extent")
        names = [*(listed if isinstance(listed, list) else []), place.removeprefix(PREFIX)]
        if cells := self._cells.named(names):
            self._areas.adopt(place, t_onset, t, cells)

    def quiet_until(self, t: float) -> float:  # noqa: ARG002
        """Nothing changes without reports."""
        return math.inf

    def forget(self, slots: I4) -> None:
        """Clear the past of these aircraft. Areas belong to nobody and stay."""
        self._quality.forget(slots)

    def gauges(self) -> dict[str, float]:
        """Areas now, aircraft with a past to lose, and those of them that have lost it."""
        return {
            "areas": float(len(self._areas.areas)),
            "areas_overflow": float(self._areas.refused),
            "aircraft": float(self._aircraft),
            "aircraft_collapsed": float(self._collapsed),
        }

    def snapshot(self) -> dict[str, Any]:
        """The aircraft's pasts and the areas."""
        return {
            "quality": self._quality.snapshot(),
            "resolution": self._cells.resolution,
            "areas": self._areas.snapshot(),
            "dropped": self._dropped,
            "looked_t": self._looked_t,
            "pause_s": self._pause_s,
            "figures": [self._aircraft, self._collapsed, self._areas.refused],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. Areas of another resolution end."""
        self._quality.restore(state["quality"])
        self._looked_t, self._pause_s = state["looked_t"], state["pause_s"]
        self._dropped = dict(state["dropped"])
        self._aircraft, self._collapsed, self._areas.refused = state["figures"]
        if state["resolution"] == self._cells.resolution:
            self._areas.restore(state["areas"])
        else:
            self._dropped |= {area["name"]: "replaced" for area in state["areas"]}
