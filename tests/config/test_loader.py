"""The layers of a configuration: defaults, profile, file, environment, overrides; and the rules between keys."""

from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from watchkeeper.config.guests import SETTINGS
from watchkeeper.config.loader import ConfigError, Problem, env_name, load
from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.config.section import Flag, Section, about, settings
from watchkeeper.streams.messages import Kind

from where import ROOT


def problems_of(text: str | bytes, tmp_path: Path, env: dict[str, str] | None = None) -> list[Problem]:
    file = tmp_path / "wk.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load(file, env=env or {})
    return caught.value.problems


def loaded(text: str, tmp_path: Path, env: dict[str, str] | None = None, **overrides: object) -> Config:
    file = tmp_path / "wk.toml"
    file.write_text(text)
    return load(file, env=env or {}, overrides=overrides)


def test_nothing_given_is_the_default_configuration() -> None:
    assert load(None, env={}) == DEFAULT


def test_an_empty_file_is_a_good_one(tmp_path: Path) -> None:
    assert loaded("", tmp_path) == DEFAULT


def test_example_is_good_and_changes_nothing_by_surprise() -> None:
    assert load(ROOT / "config" / "example.toml", env={}) == DEFAULT


@pytest.mark.parametrize(
    ("profile", "in_a_row", "kinematics", "los"),
    [
        ("high-sensitivity", 3, (2, 3), (2, 3)),
        ("balanced", 5, (3, 5), (2, 3)),
        ("high-specificity", 10, (6, 10), (3, 4)),
    ],
)
def test_profile_sets_the_counts(
    profile: str, in_a_row: int, kinematics: tuple[int, int], los: tuple[int, int]
) -> None:
    d = load(None, env={}, overrides={"profile": profile}).detectors
    for debounce in (d.conflict.debounce, d.gps_imu.debounce):
        assert (debounce.n, debounce.m) == (in_a_row, in_a_row)
    assert (d.kinematics.debounce.n, d.kinematics.debounce.m) == kinematics
    assert (d.los.debounce.n, d.los.debounce.m) == los
    assert (d.silence.debounce.n, d.silence.debounce.m) == (1, 1)


@pytest.mark.parametrize("profile", SETTINGS["profile"].choices)
def test_profile_sets_nothing_but_counts_and_times(profile: str) -> None:
    config = load(None, env={}, overrides={"profile": profile})
    changed = {key for key, s in SETTINGS.items() if _value(config, key) != s.default}
    assert changed - {"profile"} <= {
        key
        for key in SETTINGS
        if key.endswith(tuple(f".debounce.{one}" for one in ("n", "m", "least_s", "most_s", "strong")))
    }


@pytest.mark.parametrize("profile", SETTINGS["profile"].choices)
def test_profile_file_is_itself_a_good_configuration(profile: str) -> None:
    file = ROOT / "config" / f"{profile}.toml"
    assert load(file, env={}) == load(None, env={}, overrides={"profile": profile})


def test_profile_can_be_chosen_in_the_file_or_the_environment(tmp_path: Path) -> None:
    assert loaded('profile = "high-specificity"', tmp_path).detectors.conflict.debounce.n == 10
    env = {"WATCHKEEPER_PROFILE": "high-sensitivity"}
    assert loaded('profile = "high-specificity"', tmp_path, env).detectors.conflict.debounce.n == 3


def test_later_layers_win(tmp_path: Path) -> None:
    text = "[time]\ntick_s = 2\nlateness_s = 3\nmax_jump_s = 40"
    env = {"WATCHKEEPER_TIME__LATENESS_S": "4", "WATCHKEEPER_TIME__MAX_JUMP_S": "50"}
    time = loaded(text, tmp_path, env, time={"max_jump_s": 60}).time
    assert (time.tick_s, time.lateness_s, time.max_jump_s) == (2.0, 4.0, 60.0)


def test_a_count_in_the_file_wins_over_the_profile(tmp_path: Path) -> None:
    debounce = loaded("[detectors.conflict.debounce]\nn = 4", tmp_path).detectors.conflict.debounce
    assert (debounce.n, debounce.m) == (4, 5)


def test_one_key_of_a_debounce_rule_leaves_that_detectors_other_defaults(tmp_path: Path) -> None:
    debounce = loaded("[detectors.silence.debounce]\nbridge_s = 9", tmp_path).detectors.silence.debounce
    assert debounce == msgspec.structs.replace(DEFAULT.detectors.silence.debounce, bridge_s=9.0)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("broker.url", "mqtts://sea.example:8883", "mqtts://sea.example:8883"),
        ("broker.qos", "0", 0),
        ("sinks.mqtt", "No", False),
        ("sinks.terminal", "on", True),
        ("detectors.conflict.horizon_s", "1e3", 1000.0),
        ("detectors.silence.streams", "adsb, gps", ("adsb", "gps")),
        ("detectors.silence.streams", "", ()),
        ("broker.password", " with blanks ", " with blanks "),
    ],
)
def test_environment_is_read_by_the_type_of_the_key(key: str, text: str, value: object) -> None:
    assert _value(load(None, env={env_name(key): text}), key) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("broker.qos", "1.0"),
        ("broker.qos", ""),
        ("time.tick_s", "fast"),
        ("time.tick_s", "nan"),
        ("time.tick_s", "inf"),
        ("sinks.mqtt", "maybe"),
        ("detectors.silence.streams", "gps;imu"),
        ("broker.username", "caf\udce9"),
    ],
)
def test_bad_environment_value_is_one_problem_with_the_variable_name(key: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, env={env_name(key): text})
    [problem] = caught.value.problems
    assert (problem.source, problem.key) == ("environment", key)
    assert env_name(key) in str(problem)
    str(problem).encode()


def test_other_programs_variables_are_left_alone() -> None:
    assert load(None, env={"HOME": "/", "WATCH": "1", "BROKER__URL": "x"}) == DEFAULT


def test_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, env={"WATCHKEEPER_BROKER_URL": "mqtt://h", "WATCHKEEPER_QQQQ": "1"})
    near, far = caught.value.problems
    assert (near.key, near.suggestion) == ("WATCHKEEPER_BROKER_URL", "WATCHKEEPER_BROKER__URL")
    assert (far.key, far.suggestion) == ("WATCHKEEPER_QQQQ", "")


def test_variable_can_name_the_file_and_an_argument_beats_it(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text("[time]\ntick_s = 1.5")
    two.write_text("[time]\ntick_s = 2.5")
    assert load(None, env={"WATCHKEEPER_CONFIG": str(one)}).time.tick_s == 1.5
    assert load(two, env={"WATCHKEEPER_CONFIG": str(one)}).time.tick_s == 2.5
    assert load(None, env={"WATCHKEEPER_CONFIG": ""}) == DEFAULT


@pytest.mark.parametrize(
    ("text", "key", "needs"),
    [
        ("[broker]\nreconnect_min_s = 20\nreconnect_max_s = 10", "broker.reconnect_min_s", "at most 10 s"),
        ("[broker]\nreconnect_max_s = 0.2", "broker.reconnect_max_s", "at least 0.5 s"),
        ("[detectors.conflict]\nhorizon_s = 50", "detectors.conflict.horizon_s", "at least 60 s"),
        ("[detectors.conflict]\nwarning_s = 90", "detectors.conflict.warning_s", "at most 60 s"),
        ("[detectors.conflict.debounce]\nn = 6", "detectors.conflict.debounce.n", "at most 5 epochs"),
        ("[detectors.los.debounce]\nm = 1", "detectors.los.debounce.m", "at least 2 epochs"),
    ],
)
def test_keys_that_must_rise_blame_what_was_written(text: str, key: str, needs: str, tmp_path: Path) -> None:
    [problem] = problems_of(text, tmp_path)
    assert problem.key == key
    assert problem.allowed.startswith(needs)
    assert problem.source.endswith("wk.toml")


def test_every_debounce_rule_is_checked(tmp_path: Path) -> None:
    names = [key.removesuffix(".n") for key in SETTINGS if key.endswith("debounce.n")]
    found = problems_of("\n".join(f"[{name}]\nn = 9\nm = 8" for name in names), tmp_path)
    assert [p.key for p in found] == [f"{name}.n" for name in names]
    assert len(found) == sum(
        "debounce" in section.__struct_fields__ for section in DEFAULT.detectors.sections().values()
    )


def test_rules_do_not_judge_counts_of_a_profile_that_is_misspelt(tmp_path: Path) -> None:
    [problem] = problems_of('profile = "high-specifity"\n[detectors.conflict.debounce]\nn = 8', tmp_path)
    assert (problem.key, problem.suggestion) == ("profile", '"high-specificity"')


def test_rules_do_not_judge_against_a_value_that_is_itself_refused(tmp_path: Path) -> None:
    [problem] = problems_of("[detectors.conflict]\ncaution_s = -1\nhorizon_s = 60", tmp_path)
    assert problem.key == "detectors.conflict.caution_s"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('telemetry = "site"\noutput = "site/watch"', "topics.output"),
        ('telemetry = "site"\noutput = "site"', "topics.output"),
        ('output = "telemetry/out"', "topics.output"),
        ('telemetry = "watchkeeper"', "topics.telemetry"),
    ],
)
def test_output_must_not_come_back_as_input(text: str, key: str, tmp_path: Path) -> None:
    [problem] = problems_of(f"[topics]\n{text}", tmp_path)
    assert problem.key == key


def test_input_below_the_output_or_beside_it_is_fine(tmp_path: Path) -> None:
    assert loaded('[topics]\ntelemetry = "site/in"\noutput = "site"', tmp_path).topics.output == "site"
    assert loaded('[topics]\ntelemetry = "site"\noutput = "site2"', tmp_path).topics.output == "site2"


def test_ca_file_must_be_readable(tmp_path: Path) -> None:
    there = tmp_path / "ca.pem"
    there.write_text("")
    assert loaded(f'[broker]\nca_file = "{there}"', tmp_path).broker.ca_file == str(there)
    for bad in (tmp_path / "nowhere.pem", tmp_path):
        [problem] = problems_of(f'[broker]\nca_file = "{bad}"', tmp_path)
        assert problem.key == "broker.ca_file"


@pytest.mark.parametrize(
    "url", ["mqtt://h:99999", "mqtt://h:0", "mqtt://[", "http://h", "mqtt://h/x", "h:1883", "mqtt://"]
)
def test_broker_url_that_cannot_be_reached_is_refused(url: str, tmp_path: Path) -> None:
    [problem] = problems_of(f'[broker]\nurl = "{url}"', tmp_path)
    assert problem.key == "broker.url"
    assert "mqtt://HOST[:PORT]" in problem.allowed


def test_watched_streams_are_the_streams_there_are() -> None:
    assert SETTINGS["detectors.silence.streams"].choices == tuple(kind.word for kind in Kind)


def test_every_setting_says_why_it_is_there_and_its_default_is_allowed() -> None:
    for setting in SETTINGS.values():
        assert setting.reason, setting.key
        assert setting.accept(setting.default) == setting.default


def test_a_setting_without_range_or_reason_cannot_enter_the_schema() -> None:
    class NoReason(Section, frozen=True):
        on: bool = True

    class NoRange(Section, frozen=True):
        on: Flag = True
        speed_kt: Annotated[float, about("kt", "no limits")] = 3.0

    with pytest.raises(TypeError, match="on: no reason"):
        list(settings(NoReason))
    with pytest.raises(TypeError, match="speed_kt: every number needs a range"):
        list(settings(NoRange))


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value
