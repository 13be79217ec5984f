"""Replay gives the same bytes at any speed and chunking, and says what it did."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.replay.trace import Trace
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.pacing import Pacer, paced
from watchkeeper.streams.logs.source import Source, open_log, read_logs
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

from where import CUTS

CONFIG = load(None, env={}, overrides={"fleet": {"max_vehicles": 100}, "detectors": {"conflict": {"max_pairs": 1000}}})


class SteppedClock:
    def __init__(self) -> None:
        self.t = 0.0

    def now(self) -> float:
        return self.t

    def sleep(self, seconds: float) -> None:
        self.t += seconds


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute with a conflict, spoofed drones and a stream that stops."""
    path = tmp_path_factory.mktemp("logs") / "demo.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("demo", seconds=60, seed=1).batches():
            writer.write(batch)
    return path


def replayed(*logs: Path, speed: float = math.inf, chunk: int | None = None, trace: Path | None = None) -> bytes:
    """The alarm lines of a replay, paced by a stepped clock."""
    lines: list[bytes] = []
    with (trace or Path(os.devnull)).open("wb") as file:
        replay = Replay(CONFIG, lambda event: lines.append(encode_event(event) + b"\n"))
        replay.watchers.append(Trace(file, replay.pipeline))
        sources = [open_log(log) for log in logs]
        replay.run(paced(read_logs(sources, chunk=chunk), Pacer(speed, SteppedClock(), max_gap_s=600.0)))
    return b"".join(lines)


@pytest.mark.parametrize(
    ("speed", "chunk"), [(1.0, None), (50.0, None), (50.0, 10_000), (math.inf, 7), (math.inf, 10_000)]
)
def test_alarms_and_trace_are_the_same_bytes_at_any_speed_and_chunk(
    demo: Path, tmp_path: Path, speed: float, chunk: int | None
) -> None:
    plain = replayed(demo, trace=tmp_path / "plain")
    assert plain.count(b'"raised"') >= 2
    assert replayed(demo, speed=speed, chunk=chunk, trace=tmp_path / "other") == plain
    assert (tmp_path / "other").read_bytes() == (tmp_path / "plain").read_bytes()


def test_single_samples_give_the_same_bytes_too(tmp_path: Path) -> None:
    path = tmp_path / "short.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("head-on", seconds=120, seed=1).batches():
            writer.write(batch)
    plain = replayed(path)
    assert b'"conflict"' in plain
    assert replayed(path, chunk=1) == plain


def test_a_paced_replay_takes_as_long_as_the_log(demo: Path) -> None:
    clock = SteppedClock()
    replay = Replay(CONFIG, lambda event: None)
    replay.run(paced(read_logs([open_log(demo)]), Pacer(2.0, clock, max_gap_s=600.0)))
    assert clock.t == pytest.approx((replay.t_last - replay.t_first) / 2.0, abs=1.0)


def test_logs_recorded_apart_are_merged_by_time(demo: Path, tmp_path: Path) -> None:
    parts = {word: LogWriter(tmp_path / f"{word}.wklog") for word in ("aircraft", "drones")}
    for batch in open_log(demo).batches():
        aircraft = {kind: cols for kind, cols in batch.kinds.items() if kind is Kind.ADSB}
        drones = {kind: cols for kind, cols in batch.kinds.items() if kind is not Kind.ADSB}
        for word, kinds in (("aircraft", aircraft), ("drones", drones)):
            parts[word].write(Batch(batch.ids, kinds, batch.vias, batch.callsigns))
    for writer in parts.values():
        writer.close()
    assert replayed(parts["drones"].path, parts["aircraft"].path) == replayed(demo)


def test_trace_tells_every_conflicting_pair_at_every_tick_before_debouncing(demo: Path, tmp_path: Path) -> None:
    alarms = [json.loads(line) for line in replayed(demo, trace=tmp_path / "trace").splitlines()]
    text = (tmp_path / "trace").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines
    assert all(list(x) == ["t", "a", "b", "tcpa_s", "dcpa_nm", "dcpa_m", "vsep_ft", "sep_nm", "los"] for x in lines)
    keys = [(x["t"], x["a"], x["b"]) for x in lines]
    assert keys == sorted(set(keys))
    assert all(x["a"] < x["b"] and isinstance(x["los"], bool) for x in lines)
    assert all(x["dcpa_nm"] * 1852 == pytest.approx(x["dcpa_m"], rel=1e-4, abs=1e-2) for x in lines)
    raised = next(a for a in alarms if a["kind"] == "conflict" and a["state"] == "raised")
    before = [x for x in lines if [x["a"], x["b"]] == raised["subjects"] and x["t"] <= raised["t_raised"]]
    assert before


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_the_command_writes_alarms_trace_and_a_summary_without_any_wall_clock(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHKEEPER_FLEET__MAX_VEHICLES", "100")
    for name in ("1", "2"):
        alarms, summary = tmp_path / f"a{name}", tmp_path / f"s{name}"
        assert (
            run("replay", demo, "--alarms", alarms, "--summary", summary, "--chunk", 999 if name == "1" else 5000) == 0
        )
    assert (tmp_path / "a1").read_bytes() == (tmp_path / "a2").read_bytes() == replayed(demo)
    assert (tmp_path / "s1").read_bytes() == (tmp_path / "s2").read_bytes()
    found = json.loads((tmp_path / "s1").read_text())
    events = [json.loads(line) for line in (tmp_path / "a1").read_text().splitlines()]
    assert found["samples"].keys() == {"adsb", "gps", "imu"}
    assert found["detectors"] == sorted(REGISTRY)
    assert sum(n for states in found["alarms"].values() for n in states.values()) == len(events)
    assert found["ticks"] == pytest.approx(found["span"]["seconds"], abs=2)
    assert "timing" not in found
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b" not in err, "a progress bar in a pipe"


def test_timing_is_there_when_asked_for(demo: Path, tmp_path: Path) -> None:
    assert run("replay", demo, "--alarms", tmp_path / "a", "--summary", tmp_path / "s", "--timing") == 0
    assert json.loads((tmp_path / "s").read_text())["timing"]["samples_per_s"] > 0


def test_without_a_file_alarms_are_lines_on_standard_output(demo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("replay", demo) == 0
    out, _ = capfd.readouterr()
    raised = [json.loads(x) for x in replayed(demo).splitlines() if b'"raised"' in x]
    shown = [line for line in out.splitlines() if "RAISED" in line]
    assert len(shown) == len(raised)
    assert all(event["id"] in line for event, line in zip(raised, shown, strict=True))


def test_a_profile_on_the_command_line_changes_the_debounce(tmp_path: Path) -> None:
    path = tmp_path / "x.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("head-on", seconds=120, seed=1).batches():
            writer.write(batch)
    onset: dict[str, float] = {}
    for profile in ("high-sensitivity", "high-specificity"):
        assert run("replay", path, "--profile", profile, "--alarms", tmp_path / "a") == 0
        onset[profile] = json.loads((tmp_path / "a").read_text().splitlines()[0])["t_raised"]
    assert onset["high-specificity"] > onset["high-sensitivity"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.wklog"], 1, "none.wklog: No such file"),
        (["{demo}", "none.csv"], 1, "none.csv: No such file"),
        (["{demo}", "--speed", "fast"], 2, "expected a positive number"),
        (["{demo}", "--chunk", "0"], 2, "whole number from 1"),
        (["{demo}", "--to-mqtt", "http://x"], 2, "not an MQTT address"),
        (["{demo}", "--to-mqtt", "mqtt://x", "--alarms", "a"], 2, "judges nothing"),
        (["{demo}", "--profile", "calm"], 78, "profile"),
        (["{demo}", "-c", "none.toml"], 78, "none.toml"),
        (["{demo}", "--alarms", "no/such/folder"], 1, "no/such/folder"),
    ],
)
def test_what_cannot_work_is_said_with_its_exit_code(
    demo: Path, words: list[str], code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        found = run("replay", *(word.format(demo=demo) for word in words))
    except SystemExit as left:  # argparse
        found = int(left.code or 0)
    assert found == code
    assert said in capfd.readouterr().err


def test_a_log_cut_off_by_a_crash_is_replayed_as_far_as_it_goes(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.wklog"
    cut.write_bytes(demo.read_bytes()[: demo.stat().st_size * 2 // 3])
    assert run("replay", cut, "--alarms", tmp_path / "a", "--summary", tmp_path / "s") == 0
    assert "not closed" in capfd.readouterr().err
    found = json.loads((tmp_path / "s").read_text())
    assert sum(found["samples"].values()) > 0
    assert "readable up to byte" in found["inputs"][0]["problems"][0]


def test_ctrl_c_leaves_whole_lines_and_exits_130(demo: Path, tmp_path: Path, wait_for: Callable[..., object]) -> None:
    trace, summary = tmp_path / "trace", tmp_path / "summary"
    # the first alarm comes after a second and a half, the end after fifteen
    words = ["replay", demo, "--speed", "4", "--alarms", tmp_path / "alarms", "--trace", trace, "--summary", summary]
    process = subprocess.Popen(
        [sys.executable, "-m", "watchkeeper.daemon.cli", *map(str, words)], stderr=subprocess.PIPE
    )
    wait_for(lambda: (tmp_path / "alarms").exists() and (tmp_path / "alarms").stat().st_size)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert b"Traceback" not in err
    for path in (tmp_path / "alarms", trace):
        text = path.read_text()
        assert text.endswith("\n")
        assert all(json.loads(line) for line in text.splitlines())
    assert json.loads(summary.read_text())["interrupted"] is True


def test_info_convert_and_simulate_work_together(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, copy = tmp_path / "x.wklog", tmp_path / "copy.wklog"
    assert run("simulate", "crossing", "--seconds", 60, "--vehicles", 4, "--seed", 5, "--out", log) == 0
    truth = json.loads((tmp_path / "x.wklog.truth.json").read_text())
    assert truth["scenario"] == "crossing"
    assert len(truth["vehicles"]) == 4
    assert run("convert", log, copy) == 0
    assert copy.read_bytes() == log.read_bytes()
    assert run("convert", log, log) == 1
    capfd.readouterr()
    assert run("info", log, "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["streams"]["adsb"]["vehicles"] == found["vehicles"] == 4
    assert found["streams"]["adsb"]["rate_hz"] == pytest.approx(1.0, abs=0.05)
    assert found["truncated_at"] is None
    assert run("info", log) == 0
    assert "adsb    4         240" in capfd.readouterr().out


def test_simulated_time_begins_on_a_fixed_date_or_now(tmp_path: Path) -> None:
    began = []
    for words in ((), ("--now",)):
        log = tmp_path / f"{len(words)}.wklog"
        assert main(["simulate", "crossing", "--seconds", "5", "--out", str(log), *words]) == 0
        began.append(json.loads((tmp_path / f"{log.name}.truth.json").read_text())["t0"])
    assert began[0] == 1_700_000_000.0
    assert abs(began[1] - time.time()) < 60


def test_simulate_says_what_it_cannot_do(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "crossing") == 2
    assert run("simulate", "crossing", "--vehicles", 1, "--out", tmp_path / "x.wklog") == 2
    assert "takes 2 to" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_csv_is_replayed_directly_and_converted_without_loss(tmp_path: Path) -> None:
    rows = ["id,t,lat,lon,alt_ft,gs_kt,trk_deg,vs_fpm"]
    rows += [
        f"east,{t},50.0,{8.0 + 0.002 * t},30000,300,90,0\nwest,{t},50.0,{8.5 - 0.002 * t},30000,300,270,0"
        for t in range(60)
    ]
    path, log = tmp_path / "x.csv", tmp_path / "x.wklog"
    path.write_text("\n".join(rows) + "\n")
    assert run("convert", path, log) == 0
    assert b'"conflict"' in replayed(path)
    assert replayed(log) == replayed(path)


def test_a_real_flight_replays_the_same_from_csv_and_log(tmp_path: Path) -> None:
    flight = CUTS / "flights" / "quad106.csv.gz"
    assert run("convert", flight, tmp_path / "x.wklog") == 0
    source: Source = open_log(tmp_path / "x.wklog")
    assert sum(len(batch) for batch in source.batches()) > 10_000
    assert replayed(tmp_path / "x.wklog", chunk=1000) == replayed(flight)
