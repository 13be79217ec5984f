"""For any configuration at all: good values survive the trip through TOML, and each bad one is named once."""

import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from watchkeeper.config.adapters import BUILT_IN
from watchkeeper.config.adapters.base import Source, type_of
from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.detectors.kinds import WHATS, KindMinima
from watchkeeper.config.guests import SECTIONS, SETTINGS, build
from watchkeeper.config.loader import ConfigError, Problem, env_name, load, rising
from watchkeeper.config.outputs import Notify, Webhook
from watchkeeper.config.reference import config_toml, toml_value
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Setting, columns
from watchkeeper.config.tokens import Token
from watchkeeper.config.topology import DeclaredVehicles

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=12)
PREFIX = st.from_regex(r"\A[a-z]{1,5}(/[a-z]{1,5})?\Z")
HOST = st.from_regex(r"\A[a-z]{1,9}\Z")
FORMED = {
    "broker.url": st.builds("{}://{}:{}".format, st.sampled_from(("mqtt", "mqtts")), HOST, st.integers(1, 65_535)),
    "broker.ca_file": st.just(""),
    "topics.telemetry": PREFIX,
    "topics.output": PREFIX,
    "home_assistant.prefix": PREFIX,
    "flink.checkpoint_dir": st.sampled_from(("", "file:///var/checkpoints", "s3://bucket/watchkeeper")),
    "gnss_integrity.url": st.just("udp://127.0.0.1:14550"),
    "gdl90.url": st.sampled_from(("", "udp://192.168.10.255:4000")),
    "alertmanager.url": st.sampled_from(("", "http://127.0.0.1:9093", "https://alerts.example/am")),
    "http.public_name": HOST | st.just(""),
    "http.tiles": st.sampled_from(("", "https://tiles.example/{z}/{x}/{y}.png")),
    "http.site": st.sampled_from(("", "47.46,8.55", "-33.9,151")),
    "http.public_url": st.sampled_from(("", "https://watch.example/sky", "http://10.0.0.7:9108")),
    "login": st.from_regex(r"[A-Za-z0-9-]{1,9}", fullmatch=True),
    "filter": st.sampled_from(("", "r/47.4/8.5/100")),
    "name": TEXT.filter(str.strip),
}
NUMBERS = [s for s in SETTINGS.values() if s.kind in (int, float)]


def good(setting: Setting) -> st.SearchStrategy[Any]:
    if setting.key in FORMED:
        return FORMED[setting.key]
    if setting.kind is bool:
        return st.booleans()
    if setting.kind is int:
        return st.integers(int(setting.low), int(setting.high))
    if setting.kind is float:
        return st.floats(setting.low, setting.high)
    if setting.table is Zone:
        return st.lists(zones(), max_size=3).map(tuple)
    if setting.table is KindMinima:
        return st.lists(kind_minima(), max_size=3).map(tuple)
    if setting.table is Source:
        return st.lists(sources(), max_size=3).map(tuple)
    if setting.table is DeclaredVehicles:
        return declared_vehicles()
    if setting.table is Token:
        return st.lists(tokens(), max_size=3).map(tuple)
    if setting.key.endswith(("signal.limits", "signal.seasons")):
        return st.just(())
    if setting.key == "http.trusted":
        return st.lists(st.ip_addresses().map(str), max_size=3).map(tuple)
    if setting.table is Webhook:
        return st.lists(webhooks(), max_size=3, unique_by=lambda webhook: webhook["name"]).map(tuple)
    if setting.table is Notify:
        return st.lists(notifies(), max_size=3, unique_by=lambda notify: notify["name"]).map(tuple)
    if setting.key == "kinds":
        return st.lists(st.sampled_from(("conflict", "gps_imu")), max_size=3).map(tuple)
    one = st.sampled_from(setting.choices) if setting.choices else TEXT
    if setting.key.endswith(("limits_only", "signals", "recordings.without")):
        # patterns of names, none blank; lists in the environment are parted at commas, and their parts are stripped
        one = TEXT.map(lambda text: text.replace(",", ";").strip()).filter(bool)
    return st.lists(one, max_size=4).map(tuple) if setting.kind is tuple else one


@st.composite
def zones(draw: st.DrawFn) -> dict[str, Any]:
    zone = {s.key: draw(good(s)) for s in columns(Zone)}
    assume(zone["floor_ft"] < zone["ceiling_ft"])
    if zone["radius_nm"] == 0 or draw(st.booleans()):
        del zone["lat"], zone["lon"], zone["radius_nm"]
    return zone


@st.composite
def kind_minima(draw: st.DrawFn) -> dict[str, Any]:
    minima = {s.key: draw(good(s)) for s in columns(KindMinima) if s.key != "zones"}
    return minima | {"between": (draw(st.sampled_from(WHATS[1:])), draw(st.sampled_from(WHATS)))}


@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    section = draw(st.sampled_from(BUILT_IN))
    source = {s.key: draw(good(s)) for s in columns(section) if s.key != "url"}
    scheme = {"readsb": "http", "opensky": "http", "bluesky": "bluesky", "can": "can"}.get(type_of(section))
    scheme = scheme or draw(st.sampled_from(("tcp", "udp")))
    return source | {"type": type_of(section), "url": f"{scheme}://{draw(HOST)}:{draw(st.integers(1, 65_535))}"}


@st.composite
def declared_vehicles(draw: st.DrawFn) -> tuple[dict[str, Any], ...]:
    # every vehicle in one table, and no gateway called like one
    names = draw(st.lists(TEXT.filter(str.strip).map("v{}".format), max_size=6, unique=True))
    return tuple(
        {"names": part, "gateway": draw(HOST), "sensors": draw(st.lists(st.sampled_from(("gps", "imu")), max_size=2))}
        for part in (names[:2], names[2:])
        if part
    )


@st.composite
def webhooks(draw: st.DrawFn) -> dict[str, Any]:
    webhook = {s.key: draw(good(s)) for s in columns(Webhook)}
    webhook[draw(st.sampled_from(("secret_file", "secret_env")))] = ""
    if not webhook["secret_file"] and not webhook["secret_env"]:
        webhook["signature"] = "watchkeeper"
    # those of [[notify]] begin with n
    name = draw(st.from_regex(r"[a-m0-9_-][a-z0-9_-]{0,31}", fullmatch=True))
    return webhook | {"name": name, "url": f"https://{draw(HOST)}/{draw(st.integers())}"}


@st.composite
def notifies(draw: st.DrawFn) -> dict[str, Any]:
    notify = {s.key: draw(good(s)) for s in columns(Notify) if s.key not in ("url", "url_file", "url_env")}
    where = draw(st.sampled_from(("url", "url_file", "url_env")))
    return notify | {"name": draw(st.from_regex(r"n[a-z0-9_-]{0,31}", fullmatch=True)), where: f"ntfy://{draw(HOST)}"}


@st.composite
def tokens(draw: st.DrawFn) -> dict[str, Any]:
    where = draw(st.sampled_from(("token_file", "token_env")))
    role = draw(st.sampled_from(("view", "operate")))
    return {"name": draw(st.from_regex(r"[a-z]{1,9}", fullmatch=True)), "role": role, where: f"/{draw(HOST)}"}


@st.composite
def configs(draw: st.DrawFn) -> Config:
    values = {key: draw(good(setting)) for key, setting in SETTINGS.items()}
    assume(not f"{values['topics.output']}/".startswith(f"{values['topics.telemetry']}/"))
    values["fleet.max_vehicles"] = max(values["fleet.max_vehicles"], 6)
    values["limits.max_gateways"] = max(values["limits.max_gateways"], 2)
    for chain in rising():
        drawn = sorted(values[key] for key in chain)
        for key, value in zip(chain, drawn, strict=True):
            assume(SETTINGS[key].low <= value <= SETTINGS[key].high)
            values[key] = value
    return build(values)


def without_tables(config: Config) -> Config:
    replace = msgspec.structs.replace
    detectors = replace(config.detectors, conflict=replace(config.detectors.conflict, zones=(), kinds=()))
    bare = replace(config, http=replace(config.http, tokens=()), detectors=detectors)
    return replace(bare, sources=(), webhooks=(), notify=(), topology=replace(config.topology, vehicles=()))


def load_text(text: str) -> Config:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        Path(file.name).write_text(text, encoding="utf-8")
        return load(Path(file.name), env={})


def problems_in(text: str) -> list[Problem]:
    try:
        load_text(text)
    except ConfigError as error:
        return error.problems
    return []


@settings(max_examples=60, deadline=None)
@given(configs())
def test_any_valid_configuration_survives_toml(config: Config) -> None:
    assert load_text(config_toml(config, secrets=True)) == config


@settings(max_examples=60, deadline=None)
@given(configs())
def test_any_valid_configuration_survives_the_environment(config: Config) -> None:
    config = without_tables(config)
    env = {}
    for key in (key for key, setting in SETTINGS.items() if setting.table is None):
        value: Any = config
        for name in key.split("."):
            value = getattr(value, name)
        env[env_name(key)] = ",".join(value) if isinstance(value, tuple) else str(value)
    assert load(None, env=env) == config


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NUMBERS), st.data())
def test_one_value_out_of_range_is_one_problem_naming_its_key_and_range(setting: Setting, data: st.DataObject) -> None:
    below: st.SearchStrategy[Any]
    above: st.SearchStrategy[Any]
    if setting.kind is int:
        below, above = st.integers(max_value=int(setting.low) - 1), st.integers(min_value=int(setting.high) + 1)
    else:
        below = st.floats(max_value=math.nextafter(setting.low, -math.inf))
        above = st.floats(min_value=math.nextafter(setting.high, math.inf))
    [problem] = problems_in(f"{setting.key} = {toml_value(data.draw(below | above))}")
    assert problem.key == setting.key
    assert problem.allowed == setting.allowed
    assert problem.allowed.endswith(setting.unit)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(NUMBERS), min_size=1, max_size=12))
def test_n_values_out_of_range_are_n_problems(chosen: set[Setting]) -> None:
    text = "\n".join(f"{s.key} = {toml_value(s.kind(s.high + 1))}" for s in chosen)
    assert sorted(p.key for p in problems_in(text)) == sorted(s.key for s in chosen)


@settings(max_examples=40, deadline=None)
@given(st.sets(st.sampled_from(sorted(SETTINGS)), min_size=1, max_size=12), st.data())
def test_n_typos_are_n_problems(keys: set[str], data: st.DataObject) -> None:
    typos = set()
    for key in keys:
        section, dot, name = key.rpartition(".")
        at = data.draw(st.integers(0, len(name) - 1))
        typos.add(f"{section}{dot}{name[:at]}7{name[at:]}")
    assume(not typos & (SETTINGS.keys() | SECTIONS.keys()))
    found = problems_in("\n".join(f"{typo} = 1" for typo in typos))
    assert sorted(p.key for p in found) == sorted(typos)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([key for key in SETTINGS if len(key.rpartition(".")[2]) >= 5]), st.data())
def test_one_wrong_letter_still_finds_the_key(key: str, data: st.DataObject) -> None:
    section, dot, name = key.rpartition(".")
    at = data.draw(st.integers(0, len(name) - 1))
    typo = f"{section}{dot}{name[:at]}7{name[at + 1 :]}"
    [problem] = problems_in(f"{typo} = 1")
    # alert_n and alert_m are equally near to alert_7
    assert problem.suggestion in {k for k in SETTINGS if len(k) == len(typo) and sum(map(str.__ne__, k, typo)) == 1}
