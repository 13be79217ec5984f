"""Tables of `[[sources]]`: the type of each chooses its keys, and what is wrong is said in terms of that type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from watchkeeper.config.adapters.beast import Beast
from watchkeeper.config.adapters.bluesky import BlueSky
from watchkeeper.config.adapters.readsb import Readsb
from watchkeeper.config.adapters.sbs import Sbs
from watchkeeper.config.guests import build, values_of
from watchkeeper.config.loader import ConfigError, Problem, load
from watchkeeper.config.reference import config_toml, reference_markdown
from watchkeeper.config.schema import Config

from guest_package import install, look_again

GUEST = """
from typing import Annotated
from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import about, text

class Gliders(Source, frozen=True, kw_only=True, tag="gliders"):
    "Gliders."
    url: StreamUrl
    token: Annotated[str, text("opens the door", secret=True)] = ""
    range_km: Annotated[float, about("km", "further ones are left out", ge=1, le=500)] = 100.0

class Unranged(Source, frozen=True, kw_only=True, tag="unranged"):
    "A number without a range."
    level: Annotated[float, text("none")] = 1.0

class Adapter:
    def __init__(self, settings):
        self.settings, self.formats = settings, ()

gliders = Adapter(Gliders)
unranged = Adapter(Unranged)
nothing = 3
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    look_again()


def loaded(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "wk.toml"
    file.write_text(text)
    return load(file, env={})


def problems_of(tmp_path: Path, text: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    return caught.value.problems


def table(**values: str) -> str:
    return "[[sources]]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def test_each_table_becomes_the_section_of_its_type_and_survives_the_way_back(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        table(type='"sbs"', url='"tcp://roof:30003"', times='"message"')
        + table(type='"readsb"', url='"http://roof/a.json"', period_s="2")
        + table(type='"bluesky"', url='"bluesky:///x.scn"', speed="5", via='"sim"'),
    )
    assert config.sources == (
        Sbs(url="tcp://roof:30003", times="message"),
        Readsb(url="http://roof/a.json", period_s=2.0),
        BlueSky(url="bluesky:///x.scn", speed=5.0, via="sim"),
    )
    assert [source.type for source in config.sources] == ["sbs", "readsb", "bluesky"]
    assert build(values_of(config)) == config
    assert loaded(tmp_path, config_toml(config)) == config
    assert msgspec.to_builtins(config.sources[0])["type"] == "sbs"


def test_an_unknown_type_names_all_types_and_the_nearest(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, table(type='"beats"', url='"tcp://roof:1"'))
    assert (problem.key, problem.value, problem.suggestion) == ("sources[0].type", '"beats"', '"beast"')
    for name in ("sbs", "beast", "avr", "readsb", "opensky", "mavlink", "can", "bluesky"):
        assert f'"{name}"' in problem.allowed


def test_a_key_of_another_type_says_whose_it_is(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, table(type='"beast"', url='"tcp://roof:1"', period_s="1"))
    assert problem.key == "sources[0].period_s"
    assert problem.message == 'no such key for type "beast", only for "readsb", "opensky", "bluesky"'
    assert problem.allowed == "type, url, via"


@pytest.mark.parametrize(
    ("type_", "url", "form"),
    [
        ("sbs", "http://roof/x", "a stream: tcp://"),
        ("readsb", "tcp://roof:1", "a document: http://"),
        ("can", "tcp://roof:1", "a bus: can://"),
        ("bluesky", "tcp://roof:1", "a simulation: bluesky://"),
    ],
)
def test_an_address_of_another_type_says_what_this_one_needs(type_: str, url: str, form: str, tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, table(type=f'"{type_}"', url=f'"{url}"'))
    assert problem.key == "sources[0].url"
    assert problem.allowed.startswith(form)


def test_what_is_missing_misspelt_or_of_a_wrong_kind_is_one_problem_each(tmp_path: Path) -> None:
    text = (
        table(url='"tcp://roof:1"')
        + table(typ='"sbs"', url='"tcp://roof:1"')
        + table(type="3", url='"tcp://roof:1"')
        + table(type='"sbs"')
        + table(type='"sbs"', url='"tcp://roof:1"', vai='"roof"')
        + table(type='"sbss"', url='"tcp://roof:1"', vai='"roof"')
        + table(type='"readsb"', url='"http://roof"', period_s="0")
    )
    found = [(p.key, p.message.split(" in ")[0], p.suggestion) for p in problems_of(tmp_path, text)]
    assert found == [
        ("sources[0].type", "missing", ""),
        ("sources[1].typ", "no such key", "sources[1].type"),
        ("sources[2].type", "expected text, got a whole number", ""),
        ("sources[3].url", "missing", ""),
        ("sources[4].vai", "no such key", "sources[4].via"),
        ("sources[5].type", "not a valid choice", '"sbs"'),
        ("sources[5].vai", "no such key", "sources[5].via"),
        ("sources[6].period_s", "too small", ""),
    ]


def test_sources_are_for_the_file_only() -> None:
    with pytest.raises(ConfigError, match="only be set in the file"):
        load(None, env={"WATCHKEEPER_SOURCES": "sbs"})


# -- types of other packages ----------------------------------------------------------------------------------------


def test_an_installed_package_brings_a_type_that_is_read_checked_hidden_and_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "wk-gliders", GUEST, "watchkeeper.adapters", gliders="gliders")
    text = table(type='"gliders"', url='"tcp://field:1"', token='"s4711"')
    config = loaded(tmp_path, text + table(type='"beast"', url='"tcp://roof:1"'))
    assert [source.type for source in config.sources] == ["gliders", "beast"]
    assert config.sources[1] == Beast(url="tcp://roof:1")
    assert build(values_of(config)) == config
    assert "s4711" not in config_toml(config)
    assert "# token is set, and not shown" in config_toml(config)
    assert loaded(tmp_path, config_toml(config, secrets=True)) == config
    assert '### `[[sources]]` with `type = "gliders"`' in reference_markdown()
    [problem] = problems_of(tmp_path, table(type='"gliders"', url='"tcp://field:1"', range_km="1000"))
    assert (problem.key, problem.allowed) == ("sources[0].range_km", "1 to 500 km")
    [problem] = problems_of(tmp_path, table(type='"beast"', url='"tcp://field:1"', token='"s4711"'))
    assert 'only for "gliders"' in problem.message
    assert "4711" not in str(problem)


@pytest.mark.parametrize(
    ("code", "attribute", "reason"),
    [
        ("import no_such_module", "gliders", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "gliders", "ZeroDivisionError: division by zero"),
        (GUEST, "glider", "AttributeError"),
        (GUEST, "nothing", "its settings are no subclass of"),
        (GUEST, "unranged", "level: every number needs a range"),
        (GUEST.replace('tag="gliders"', 'tag="sbs"'), "gliders", 'another type of source called "sbs"'),
    ],
)
def test_a_package_that_cannot_be_used_is_an_error_that_names_it_even_if_no_source_asks_for_it(
    code: str, attribute: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"wk-broken-{abs(hash((code, attribute)))}"  # modules of other cases stay imported
    install(tmp_path, monkeypatch, name, code, "watchkeeper.adapters", gliders=attribute)
    [problem] = problems_of(tmp_path, "")
    assert problem.source == f"{name} 1.0"
    assert "entry point 'gliders' of the group watchkeeper.adapters" in problem.message
    assert reason in problem.message


def test_two_packages_with_one_name_are_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("wk-one", "wk-two"):
        folder = tmp_path / package
        folder.mkdir()
        install(folder, monkeypatch, package, GUEST, "watchkeeper.adapters", gliders="gliders")
    [problem] = problems_of(tmp_path, "")
    assert "wk-one 1.0" in str(problem)
    assert "wk-two 1.0" in str(problem)
