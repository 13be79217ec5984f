"""Zones for the place where a receiver is: terminal areas and the surroundings of airports, by presets.

Of every airport within AIRPORTS_NM its surroundings, with the preset `airport`; of every medium one within
AIRPORTS_NM and every large one within TERMINALS_NM a terminal area, with the preset `terminal`, unless a larger one
holds it all. Those of airports come first, because the first zone that holds an aircraft counts. Everything else is en
route. Real airspace has other shapes; the file that `init` writes says so, and every zone can be changed or taken out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.daemon.init.airports import Airport, Size, distance_nm

AIRPORTS_NM, TERMINALS_NM = 60.0, 100.0
# Zones that are proposed at most; the nearest stay.
MOST = 80


class Extent(NamedTuple):
    """How far and how high, above the airport."""

    radius_nm: float
    above_ft: float


# Class D airspace around American airports is about 4 NM and 2,500 ft, the circuit within it; of a large airport the
# final approaches to parallel runways as well.
SURROUNDINGS: dict[Size, Extent] = {
    "l": Extent(10.0, 4000.0),
    "m": Extent(5.0, 2500.0),
    "s": Extent(4.0, 2500.0),
}
# Approach control: around large airports the size of terminal areas such as that of Paris, of medium ones class C.
TERMINALS: dict[Size, Extent] = {"l": Extent(40.0, 19_000.0), "m": Extent(20.0, 10_000.0)}
STEP_FT = 100.0


def propose(place: tuple[float, float], known: Iterable[Airport]) -> list[Zone]:
    """The zones around a place, those of airports first, each group by distance."""
    near = sorted(((distance_nm(place, (a.lat, a.lon)), a) for a in known), key=lambda row: (row[0], row[1].ident))
    terminals: list[tuple[Airport, Extent]] = []
    for size in ("l", "m"):
        for away_nm, airport in near:
            extent, far_nm = TERMINALS[size], TERMINALS_NM if size == "l" else AIRPORTS_NM
            if airport.size == size and away_nm <= far_nm and not _held(airport, extent, terminals):
                terminals.append((airport, extent))
    around = [_zone(a, SURROUNDINGS[a.size], "airport") for away_nm, a in near if away_nm <= AIRPORTS_NM]
    areas = [_zone(a, extent, "terminal") for a, extent in terminals]
    return [*around[: max(0, MOST - len(areas))], *areas[:MOST]]


def _held(airport: Airport, extent: Extent, others: list[tuple[Airport, Extent]]) -> bool:
    """Whether one of the other areas holds all of this one."""
    return any(
        distance_nm((airport.lat, airport.lon), (other.lat, other.lon)) + extent.radius_nm <= wider.radius_nm
        and airport.elevation_ft + extent.above_ft <= other.elevation_ft + wider.above_ft
        for other, wider in others
    )


def _zone(airport: Airport, extent: Extent, preset: str) -> Zone:
    ceiling_ft = STEP_FT * math.ceil((airport.elevation_ft + extent.above_ft) / STEP_FT)
    return Zone(
        name=f"{airport.ident} {preset}", lat=airport.lat, lon=airport.lon, radius_nm=extent.radius_nm,
        ceiling_ft=ceiling_ft, preset=preset,  # type: ignore[arg-type]
    )  # fmt: skip
