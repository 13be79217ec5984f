"""Sections of components from other packages are settings like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from watchkeeper.config.guests import SETTINGS, add_section, default, remove_section, section_of, values_of
from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.config.section import Flag, Section, about
from watchkeeper.daemon.reload import merge


class Mine(Section, frozen=True):
    """A detector of somebody else."""

    enabled: Flag = True
    level: Annotated[float, about("m", "more than this is odd", ge=0, le=100, live=True)] = 5.0
    depth: Annotated[int, about("samples", "sizes a table", ge=1, le=10)] = 3


@pytest.fixture(autouse=True)
def mine() -> Iterator[None]:
    add_section("detectors", "mine", Mine)
    yield
    remove_section("detectors", "mine")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "watchkeeper.toml"
    path.write_text(text)
    return path


def test_its_section_in_the_file_is_read_and_typed(tmp_path):
    config = load(written(tmp_path, "[detectors.mine]\nlevel = 7\n"), env={})
    assert config.detectors.mine == Mine(level=7.0)
    assert load(None, env={"WATCHKEEPER_DETECTORS__MINE__LEVEL": "8"}).detectors.mine.level == 8.0


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [("level = 101", "detectors.mine.level", "too large"), ("levle = 1", "detectors.mine.levle", "no such key")],
)
def test_its_section_is_checked(tmp_path, line, key, message):
    with pytest.raises(ConfigError) as error:
        load(written(tmp_path, f"[detectors.mine]\n{line}\n"), env={})
    (problem,) = error.value.problems
    assert problem.key == key
    assert message in problem.message


def test_a_configuration_made_before_has_its_defaults():
    assert section_of(DEFAULT, "detectors", "mine") == Mine()
    assert values_of(DEFAULT)["detectors.mine.level"] == 5.0


def test_what_is_built_has_every_section_and_can_be_copied():
    config = default()
    assert config.detectors.sections()["mine"] == Mine()
    other = msgspec.structs.replace(config, detectors=config.detectors.replaced({"mine": Mine(depth=4)}))
    assert other.detectors.mine.depth == 4
    assert other.detectors.conflict == config.detectors.conflict


def test_a_reload_takes_what_is_live_and_names_what_waits(tmp_path):
    new = load(written(tmp_path, "[detectors.mine]\nlevel = 7\ndepth = 4\n"), env={})
    config, changed, waiting = merge(load(None, env={}), new)
    assert (changed, waiting) == (["detectors.mine.level"], ["detectors.mine.depth"])
    assert config.detectors.mine == Mine(level=7.0)


@pytest.mark.parametrize("name", ["conflict", "guests", "Mine", "9", "a-b"])
def test_a_name_that_is_taken_or_no_key_is_refused(name):
    with pytest.raises(ValueError, match=r"exists already|is no name"):
        add_section("detectors", name, Mine)


def test_it_leaves_no_trace():
    remove_section("detectors", "mine")
    assert not [key for key in SETTINGS if "mine" in key]
    assert not hasattr(default().detectors, "mine")
