"""Arrays of tables, by the one there is: `[[detectors.conflict.zones]]`, in files, problems, output and reload."""

import tomllib
from pathlib import Path
from typing import Annotated

import pytest

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.detectors.volumes import VOLUMES
from watchkeeper.config.loader import ConfigError, Problem, load
from watchkeeper.config.reference import config_toml
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Flag, Section, settings, tables
from watchkeeper.daemon.reload import merge
from watchkeeper.streams.geo import FT_M, NM_M

from where import ROOT

HEAD = "[[detectors.conflict.zones]]\n"
PARIS = HEAD + 'name = "Paris TMA"\nlat = 49.0\nlon = 2.5\nradius_nm = 40\nceiling_ft = 12_000\nseparation_nm = 3\n'
HIGH = HEAD + 'name = "above RVSM"\nfloor_ft = 41_100\nseparation_nm = 5\nvertical_ft = 2000\n'
EXAMPLE = ROOT / "config" / "example.toml"


def loaded(text: str, tmp_path: Path) -> Config:
    file = tmp_path / "wk.toml"
    file.write_text(text)
    return load(file, env={})


def problems_of(text: str, tmp_path: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        loaded(text, tmp_path)
    return caught.value.problems


def keys(problems: list[Problem]) -> list[str]:
    return [p.key.removeprefix("detectors.conflict.") for p in problems]


def test_zones_keep_their_order_and_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    paris, high = loaded(PARIS + HIGH, tmp_path).detectors.conflict.zones
    assert paris == Zone(name="Paris TMA", lat=49.0, lon=2.5, radius_nm=40.0, ceiling_ft=12_000.0, separation_nm=3.0)
    assert (paris.floor_ft, paris.volume.vertical_ft) == (-2000.0, 1000.0)
    assert (high.lat, high.lon, high.radius_nm, high.ceiling_ft) == (None, None, 0.0, 100_000.0)
    assert type(high.separation_nm) is float


@pytest.mark.parametrize(
    ("lines", "volume"),
    [
        ('preset = "en-route"', (5.0, 1000.0, 0.0)),
        ('preset = "terminal"', (3.0, 1000.0, 0.0)),
        ('preset = "terminal"\nseparation_nm = 2.5', (2.5, 1000.0, 0.0)),
        ('preset = "airport"\nvertical_ft = 300', (0.5, 300.0, 0.0)),
        ("separation_nm = 4", (4.0, 1000.0, 0.0)),
        ('preset = "daa-well-clear"\ntau_s = 0', (4000.0 * FT_M / NM_M, 450.0, 0.0)),
    ],
)
def test_a_preset_gives_what_is_not_written(lines: str, volume: tuple[float, ...], tmp_path: Path) -> None:
    (zone,) = loaded(f'{HEAD}name = "x"\n{lines}', tmp_path).detectors.conflict.zones
    assert zone.volume == pytest.approx(volume)


def test_well_clear_is_that_of_do_365b_and_drones_that_of_astm() -> None:
    well_clear, drones = VOLUMES["daa-well-clear"], VOLUMES["drones"]
    assert well_clear == pytest.approx((0.66, 450.0, 35.0), abs=0.005)
    assert drones == pytest.approx((2000.0 * FT_M / NM_M, 250.0, 0.0))


def test_shown_zones_load_to_the_same_configuration(tmp_path: Path) -> None:
    config = loaded(PARIS + HIGH, tmp_path)
    shown = config_toml(config)
    assert "radius_nm = 40.0  # NM" in shown
    assert loaded(shown, tmp_path) == config


def test_example_in_the_comments_of_the_example_file_is_a_good_one(tmp_path: Path) -> None:
    lines = EXAMPLE.read_text().splitlines()
    first, last = lines.index("# [[detectors.conflict.zones]]"), lines.index("[detectors.gps_imu]")
    text = "\n".join(line.removeprefix("# ") for line in lines[first:last])
    assert [zone.name for zone in loaded(text, tmp_path).detectors.conflict.zones] == ["Paris TMA", "above RVSM"]


def test_every_problem_of_every_zone_is_told_at_once(tmp_path: Path) -> None:
    text = (
        HEAD
        + 'name = " "\nlat = 91\nlon = 0\nradius_nm = "far"\nfloor_ft = 5000\nceiling_ft = 4000\nseperation_nm = 3\n'
        + PARIS
        + HEAD
        + "lon = 181\nradius_nm = 30\n[time]\ntick_s = 0"
    )
    assert keys(problems_of(text, tmp_path)) == [
        "zones[0].name",
        "zones[0].lat",
        "zones[0].radius_nm",
        "zones[0].seperation_nm",
        "zones[0].floor_ft",
        "zones[2].lon",
        "zones[2].name",
        "zones[2].separation_nm",
        "zones[2].lat",
        "time.tick_s",
    ]


def test_a_problem_in_a_zone_names_value_range_and_unit(tmp_path: Path) -> None:
    [problem] = problems_of(HIGH + PARIS.replace("40", "2001"), tmp_path)
    block = str(problem)
    for part in (str(tmp_path / "wk.toml"), "detectors.conflict.zones[1].radius_nm", "2001", "0 to 2000 NM"):
        assert part in block


@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        ("seperation_nm = 3", "detectors.conflict.zones[0].separation_nm"),
        ("ceiling = 3000", "detectors.conflict.zones[0].ceiling_ft"),
        ("vertical_nm = 3", "detectors.conflict.zones[0].vertical_ft"),
        # below a zone TOML takes every key for the zone's
        ("horizon_s = 60", "detectors.conflict.horizon_s"),
        ("xyzzy = 1", ""),
    ],
)
def test_unknown_key_in_a_zone_names_the_nearest_valid_one(line: str, nearest: str, tmp_path: Path) -> None:
    [problem] = problems_of(f"{HIGH}{line}", tmp_path)
    assert problem.suggestion == nearest
    assert problem.allowed.startswith("name, lat, lon, radius_nm")


@pytest.mark.parametrize(
    ("key", "why"), [("name", "missing"), ("separation_nm", "missing: a zone has a separation_nm")]
)
def test_a_missing_key_is_a_problem_and_a_misspelt_one_not_missing_as_well(key: str, why: str, tmp_path: Path) -> None:
    without = "\n".join(line for line in PARIS.splitlines() if not line.startswith(key))
    [problem] = problems_of(without, tmp_path)
    assert problem.key == f"detectors.conflict.zones[0].{key}"
    assert problem.message.startswith(why)
    assert problem.allowed
    [typo] = problems_of(PARIS.replace(key, key[:-1]), tmp_path)
    assert typo.message.startswith("no such key")


@pytest.mark.parametrize(
    ("lines", "blamed"),
    [
        ("floor_ft = 3000\nceiling_ft = 3000", ["floor_ft"]),
        ("floor_ft = 3001\nceiling_ft = 3000", ["floor_ft"]),
        ("radius_nm = 30", ["lat", "lon"]),
        ("radius_nm = 30\nlon = 3", ["lat"]),
        ("radius_nm = 30\nlatt = 3\nlon = 3", ["latt"]),
        # a place without a radius would be everywhere
        ("lat = 3\nlon = 3", ["radius_nm"]),
        ("lat = 0\nlon = 0\nradius_nm = 0", ["radius_nm"]),
        ("lat = 3\nlon = 3\nradius = 30", ["radius"]),
    ],
)
def test_keys_of_a_zone_must_fit_each_other(lines: str, blamed: list[str], tmp_path: Path) -> None:
    found = problems_of(f'{HEAD}name = "x"\nseparation_nm = 3\n{lines}', tmp_path)
    assert keys(found) == [f"zones[0].{name}" for name in blamed]


def test_a_value_that_is_refused_clashes_with_nothing(tmp_path: Path) -> None:
    text = (
        f'{HEAD}name = "x"\nseparation_nm = 3\nlat = 3\nlon = 3\nradius_nm = -1\nfloor_ft = -9000\nceiling_ft = -1900'
    )
    assert keys(problems_of(text, tmp_path)) == ["zones[0].radius_nm", "zones[0].floor_ft"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("3", "expected an array, got a whole number"),
        ('{ name = "x" }', "expected an array, got a table"),
        ("[1]", "got a whole number in it"),
        ('["x", { name = "x" }]', "got text in it"),
    ],
)
def test_what_is_no_array_of_tables_is_one_problem_that_shows_the_brackets(
    written: str, why: str, tmp_path: Path
) -> None:
    [problem] = problems_of(f"detectors.conflict.zones = {written}", tmp_path)
    assert problem.key == "detectors.conflict.zones"
    assert why in problem.message
    assert "[[detectors.conflict.zones]]" in problem.allowed


def test_there_may_be_a_thousand_zones_and_no_more(tmp_path: Path) -> None:
    assert len(loaded(HIGH * 1000, tmp_path).detectors.conflict.zones) == 1000
    [problem] = problems_of(HIGH * 1001, tmp_path)
    assert (problem.key, problem.message) == ("detectors.conflict.zones", "too many: 1001")


def test_environment_cannot_set_zones_and_says_what_can() -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, env={"WATCHKEEPER_DETECTORS__CONFLICT__ZONES": "Paris"})
    [problem] = caught.value.problems
    assert problem.message == "an array of tables can only be set in the file"
    assert "WATCHKEEPER_DETECTORS__CONFLICT__ZONES" in str(problem)


def test_overrides_replace_the_zones_of_the_file_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "wk.toml"
    file.write_text(PARIS)
    wanted = tomllib.loads(HIGH)
    assert [z.name for z in load(file, env={}, overrides=wanted).detectors.conflict.zones] == ["above RVSM"]


def test_a_reload_takes_changed_zones_at_once(tmp_path: Path) -> None:
    none, paris, wider = (loaded(text, tmp_path) for text in ("", PARIS, PARIS.replace("40", "50")))
    assert merge(none, paris) == (paris, ["detectors.conflict.zones"], [])
    assert merge(paris, wider) == (wider, ["detectors.conflict.zones"], [])
    assert merge(wider, none) == (none, ["detectors.conflict.zones"], [])
    assert merge(paris, paris) == (paris, [], [])


def test_a_table_with_tables_in_it_cannot_be_the_item_of_an_array() -> None:
    class Inner(Section, frozen=True):
        on: Flag = True

    class Outer(Section, frozen=True):
        inner: Inner

    class Top(Section, frozen=True):
        outers: Annotated[tuple[Outer, ...], tables("nested too deeply", at_most=3)] = ()

    with pytest.raises(TypeError, match="inner"):
        list(settings(Top))
