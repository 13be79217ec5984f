"""Every error at once, each with file, key, value, range, unit and the nearest valid key."""

import re
from pathlib import Path

import pytest

from watchkeeper.config.guests import SETTINGS
from watchkeeper.config.loader import ConfigError, Problem, load


def problems_of(text: str | bytes, tmp_path: Path, env: dict[str, str] | None = None) -> list[Problem]:
    file = tmp_path / "wk.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load(file, env=env or {})
    return caught.value.problems


def test_file_and_environment_and_overrides_are_all_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "wk.toml"
    file.write_text("[time]\ntick_s = 0\n[detectors.conflict]\nhorizon = 5\nwarning_s = 100\n[borker]\nqos = 1")
    with pytest.raises(ConfigError) as caught:
        load(file, env={"WATCHKEEPER_HTTP__PORT": "-1"}, overrides={"log": {"level": "loud"}})
    assert {(p.source, p.key) for p in caught.value.problems} == {
        (str(file), "time.tick_s"),
        (str(file), "detectors.conflict.horizon"),
        (str(file), "detectors.conflict.warning_s"),
        (str(file), "borker"),
        ("environment", "http.port"),
        ("overrides", "log.level"),
    }
    assert len(caught.value.problems) == 6


def test_a_block_names_file_key_value_range_and_unit(tmp_path: Path) -> None:
    [problem] = problems_of("[detectors.conflict]\nhorizon_s = 1801", tmp_path)
    block = str(problem)
    for part in (str(tmp_path / "wk.toml"), "detectors.conflict.horizon_s", "1801", "too large", "1 to 1800 s"):
        assert part in block


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("[detectors.conflict]\nhorizont_s = 1", "detectors.conflict.horizon_s"),
        ("[detectors.conflict]\nHorizon-S = 1", "detectors.conflict.horizon_s"),
        ("[detectors.conflict]\nHORIZON_S = 1", "detectors.conflict.horizon_s"),
        ("[detectors.kinematics]\nenable = true", "detectors.kinematics.enabled"),
        ("horizon_s = 1", "detectors.conflict.horizon_s"),
        ("[broker]\nhorizon_s = 1", "detectors.conflict.horizon_s"),
        ("[conflict]\nhorizon_s = 1", "detectors.conflict"),
        ("[detector.conflict]\nhorizon_s = 1", "detectors"),
        ("[detectors.los.debounce]\nclear_ration = 1", "detectors.los.debounce.clear_ratio"),
        ("[detectors.los.debonce]\nn = 1", "detectors.los.debounce"),
        ("[broker]\nxyzzy = 1", ""),
    ],
)
def test_unknown_key_names_the_nearest_valid_one(text: str, nearest: str, tmp_path: Path) -> None:
    [problem] = problems_of(text, tmp_path)
    assert problem.suggestion == nearest
    assert problem.message.startswith("no such")


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("broker.qos", "true"),
        ("broker.qos", "1.0"),
        ("broker.qos", '"1"'),
        ("time.tick_s", "true"),
        ("time.tick_s", "nan"),
        ("time.tick_s", "inf"),
        ("time.tick_s", "-inf"),
        ("time.tick_s", "1" + "0" * 400),
        ("time.tick_s", "1979-05-27"),
        ("time.tick_s", "[1]"),
        ("time.tick_s", "{ s = 1 }"),
        ("sinks.mqtt", "1"),
        ("broker.username", "7"),
        ("broker.username", '"a\\u0000b"'),
        ("topics.output", '"a/#"'),
        ("topics.output", '""'),
        ("frames.local", '"NED"'),
        ("frames.local", "3"),
        ("detectors.silence.streams", '"gps"'),
        ("detectors.silence.streams", '["gps", "radar"]'),
        ("detectors.silence.streams", "[1, [2]]"),
        ("broker", "3"),
        ("detectors.conflict.debounce", "[{ n = 3 }]"),
    ],
)
def test_wrong_kind_of_value_is_one_problem(key: str, written: str, tmp_path: Path) -> None:
    [problem] = problems_of(f"{key} = {written}", tmp_path)
    assert problem.key == key
    assert problem.value
    assert problem.allowed


def test_whole_number_is_a_fine_float(tmp_path: Path) -> None:
    file = tmp_path / "wk.toml"
    file.write_text("time.tick_s = 2")
    tick_s = load(file, env={}).time.tick_s
    assert (type(tick_s), tick_s) == (float, 2.0)


@pytest.mark.parametrize("key", [key for key, s in SETTINGS.items() if s.kind in (int, float)])
def test_both_ends_of_a_range_are_inside_it(key: str) -> None:
    setting = SETTINGS[key]
    for value in (setting.low, setting.high):
        assert setting.accept(setting.kind(value)) == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[time]\ntick_s 1", "line 2, column 8: "),
        ("[time\n", "line 1, column 6: "),
        ("a = [1,\n", "line 2, column 1: "),
        ("[time]\ntick_s = 1\ntick_s = 2", "line 3, column 11: "),
        (b"[broker]\nusername = 'caf\xe9'", "line 2, column 16: byte 0xe9 is not UTF-8"),
        ("profile = 'balanced'".encode("utf-16"), "line 1, column 1: byte 0xff is not UTF-8"),
    ],
)
def test_syntax_error_tells_file_line_and_column(text: str | bytes, place: str, tmp_path: Path) -> None:
    [problem] = problems_of(text, tmp_path)
    assert problem.source == str(tmp_path / "wk.toml")
    assert problem.message.startswith(place)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000])
def test_file_made_to_break_the_parser_is_a_problem_and_not_a_crash(text: str, tmp_path: Path) -> None:
    [problem] = problems_of(text, tmp_path)
    assert problem.source == str(tmp_path / "wk.toml")


def test_broken_file_does_not_hide_the_environment(tmp_path: Path) -> None:
    found = problems_of("[", tmp_path, {"WATCHKEEPER_TIME__TICK_S": "0"})
    assert [p.source for p in found] == [str(tmp_path / "wk.toml"), "environment"]


def test_missing_file_and_directory_are_problems(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.toml", "No such file"), (tmp_path, "directory")):
        with pytest.raises(ConfigError, match=why) as caught:
            load(path, env={})
        assert [p.source for p in caught.value.problems] == [str(path)]


def test_byte_order_mark_of_a_windows_editor_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "wk.toml"
    file.write_bytes(b"\xef\xbb\xbf[time]\ntick_s = 2")
    assert load(file, env={}).time.tick_s == 2.0


@pytest.mark.parametrize(
    "text",
    [
        "broker.password = 4711",
        'broker.passwort = "s4711"',
        'broker.url = "mqtt://me:4711@host"',
        'broker.url = "mqtt://me:p/4711@4711@host"',
        '[[broker]]\npassword = "4711"',
        '[[brokers]]\npassword = "4711"',
        '[borker]\npassword = "4711"',
        'log.level = { password = "4711" }',
    ],
)
def test_secrets_in_the_file_are_never_shown(text: str, tmp_path: Path) -> None:
    found = problems_of(text, tmp_path)
    assert len(found) == 1
    assert "4711" not in str(ConfigError(found)) + repr(found)


def test_secrets_in_the_environment_are_never_shown() -> None:
    names = ("WATCHKEEPER_BROKER__PASSWORT", "WATCHKEEPER_TOKEN", "WATCHKEEPER_BROKER__URL")
    with pytest.raises(ConfigError) as caught:
        load(None, env=dict.fromkeys(names, "mqtt://a:4711@h"))
    assert len(caught.value.problems) == 3
    assert "4711" not in str(caught.value) + repr(caught.value)


def test_a_file_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("environment").write_text("time.tick_s = 2")
    assert load(Path("environment"), env={}).time.tick_s == 2.0


def test_strange_key_names_are_quoted_as_in_toml(tmp_path: Path) -> None:
    [problem] = problems_of('[broker]\n"a.b\\u001b" = 1', tmp_path)
    assert problem.key == 'broker."a.b\\u001b"'


def test_a_long_value_is_cut_short(tmp_path: Path) -> None:
    [problem] = problems_of(f'[time]\ntick_s = "{"x" * 5000}"', tmp_path)
    assert len(problem.value) == 80
    assert not re.search("x{100}", str(problem))
