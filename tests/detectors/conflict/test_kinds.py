"""Minima by kind: gliders in a thermal, a drone and an aircraft, ships, and what a table of one's own says."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict, Zone
from watchkeeper.config.detectors.kinds import KindMinima
from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.messages import Kind

GLIDER, DRONE, SHIP, AIRLINER = 9.0, 14.0, 40.0, 3.0
FT_DEG = 0.3048 / NM_M / 60.0
PLAIN = Conflict(max_pairs=100)


def seen(
    category: tuple[float, float], apart_nm: float, *, level_ft: tuple[float, float] = (2000.0, 2000.0),
    gs_kt: float = 60.0, conflict: Conflict = PLAIN, **both: float,
) -> dict[str, float]:  # fmt: skip
    """Two fly side by side, so far from each other; the kinds of alarm that are raised, with the largest evidence."""
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=10), detectors=Detectors(conflict=conflict)))
    found: dict[str, float] = {}
    rows = Rows()
    for s in range(30):
        for i, (name, what) in enumerate(zip(("a", "b"), category, strict=True)):
            lat, lon = 47.0 + gs_kt * s / 3600.0 / 60.0, 8.0 + i * apart_nm / 60.0 / math.cos(math.radians(47.0))
            values: dict[str, Any] = {
                "lat": lat, "lon": lon, "alt_ft": level_ft[i], "gs_kt": gs_kt, "trk_deg": 0.0, "vs_fpm": 0.0, **both,
            }  # fmt: skip
            if not s:  # what it is is said once
                values["category"] = what
            rows.add(Kind.ADSB, name, 1_700_000_000.0 + s, values)
    batch = rows.take()
    assert batch is not None
    for event in pipeline.feed(batch) + pipeline.finish():
        if event.state == "raised":
            found[event.kind] = event.evidence["sep_nm"]
    return found


def test_gliders_may_share_a_thermal_and_other_aircraft_may_not() -> None:
    assert set(seen((AIRLINER, AIRLINER), 0.1)) >= {"los"}
    assert not seen((GLIDER, GLIDER), 0.1)
    assert "los" in seen((GLIDER, GLIDER), 0.04)
    assert not seen((GLIDER, GLIDER), 0.02, level_ft=(2000.0, 2100.0))
    assert "los" in seen((GLIDER, AIRLINER), 0.1)


def test_a_drone_and_an_aircraft_have_2000_ft_and_250_ft() -> None:
    assert not seen((DRONE, AIRLINER), 0.4)
    assert "los" in seen((DRONE, AIRLINER), 0.3)
    assert not seen((DRONE, AIRLINER), 0.3, level_ft=(2000.0, 2300.0))
    assert not seen((DRONE, DRONE), 0.1)


def test_a_large_drone_has_the_minima_of_aircraft() -> None:
    assert "los" in seen((DRONE, AIRLINER), 0.4, gs_kt=120.0)
    assert not seen((DRONE, AIRLINER), 0.4, gs_kt=90.0)


def test_a_drone_that_hovers_takes_part_without_a_word_on_the_ground() -> None:
    assert "los" in seen((DRONE, DRONE), 0.03, gs_kt=0.0)
    assert not seen((AIRLINER, AIRLINER), 0.03, gs_kt=0.0)


def test_ships_under_way_are_watched_against_ships_only() -> None:
    afloat = {"on_ground": 1.0}
    assert "los" in seen((SHIP, SHIP), 0.2, level_ft=(0.0, 0.0), gs_kt=10.0, **afloat)
    assert not seen((SHIP, SHIP), 0.3, level_ft=(0.0, 0.0), gs_kt=10.0, **afloat)
    assert not seen((SHIP, SHIP), 0.2, level_ft=(0.0, 0.0), gs_kt=0.2, **afloat)
    assert not seen((SHIP, AIRLINER), 0.01, level_ft=(0.0, 0.0), gs_kt=60.0)


def test_tables_come_before_presets_and_may_be_about_zones() -> None:
    zone = Zone(name="valley", lat=47.0, lon=8.0, radius_nm=20.0, separation_nm=3.0)
    wide = KindMinima(between=("glider", "glider"), separation_nm=0.5)
    there = msgspec.structs.replace(wide, zones=("valley",))
    elsewhere = Zone(name="valley", lat=10.0, lon=8.0, radius_nm=20.0, separation_nm=3.0)
    assert "los" in seen((GLIDER, GLIDER), 0.4, conflict=msgspec.structs.replace(PLAIN, kinds=(wide,)))
    assert "los" in seen((GLIDER, GLIDER), 0.4, conflict=msgspec.structs.replace(PLAIN, zones=(zone,), kinds=(there,)))
    assert not seen((GLIDER, GLIDER), 0.4, conflict=msgspec.structs.replace(PLAIN, zones=(elsewhere,), kinds=(there,)))
    # without presets a glider is an aircraft, and the zone counts
    plain = msgspec.structs.replace(PLAIN, zones=(zone,), kind_presets=())
    assert "los" in seen((GLIDER, GLIDER), 2.5, conflict=plain)
    # a ship and a drone, for whoever lands on it
    ship = KindMinima(between=("drone", "ship"), separation_nm=0.1, vertical_ft=100.0)
    both = msgspec.structs.replace(PLAIN, kinds=(ship,))
    assert "los" in seen((DRONE, SHIP), 0.05, level_ft=(50.0, 0.0), gs_kt=10.0, conflict=both)


def test_wider_minima_of_a_kind_are_found_from_farther_away() -> None:
    far = KindMinima(between=("rotorcraft", "aircraft"), separation_nm=9.0)
    assert "los" in seen((7.0, AIRLINER), 8.0, conflict=msgspec.structs.replace(PLAIN, kinds=(far,)))
    assert "los" not in seen((AIRLINER, AIRLINER), 8.0, conflict=msgspec.structs.replace(PLAIN, kinds=(far,)))


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('between = ["glider"]\nseparation_nm = 1.0', "not two kinds"),
        ('between = ["aircraft", "aircraft"]\nseparation_nm = 1.0', "two aircraft have the minima"),
        ('between = ["glider", "ship"]\nzones = ["vally"]\nseparation_nm = 1.0', "a zone that there is none of"),
        ('between = ["glider", "car"]\nseparation_nm = 1.0', "car"),
    ],
)
def test_tables_for_nobody_are_refused(tmp_path: Any, table: str, problem: str) -> None:
    path = tmp_path / "w.toml"
    path.write_text(f"[[detectors.conflict.kinds]]\n{table}\n")
    with pytest.raises(ConfigError, match=problem):
        load(path, env={})
