"""`import watchkeeper as wk`: quick, twelve names, and the alarms of a frame are those of a replay."""

import doctest
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import watchkeeper as wk
from watchkeeper.config.loader import ConfigError
from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.commands.evaluate import EVALUATIONS, OLD_NAMES
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.streams.logs.source import LogError
from watchkeeper.streams.logs.wklog import LogWriter

from where import ROOT, SUBPACKAGES

NAMES = {
    "AlarmEvent", "Alarms", "Detector", "Pipeline", "__version__", "config", "evaluate", "open_log", "register",
    "scores", "simulate", "watch",
}  # fmt: skip
PACKAGE = ROOT / "src" / "watchkeeper"
# every module with an example in it
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for folder in (PACKAGE, *(PACKAGE / name for name in SUBPACKAGES))
    for path in (folder.glob("*.py") if folder == PACKAGE else folder.rglob("*.py"))
    if ">>> " in path.read_text() and path.name != "__init__.py"
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "demo.wklog"
    with LogWriter(path) as writer:
        for batch in wk.simulate("demo", seconds=60, seed=1).batches():
            writer.write(batch)
    return path


def test_the_package_has_twelve_names_and_all_are_there() -> None:
    assert set(wk.__all__) == NAMES
    assert all(getattr(wk, name) is not None for name in NAMES)
    assert set(dir(wk)) >= NAMES
    with pytest.raises(AttributeError, match="no attribute 'wacth'"):
        wk.wacth  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, watchkeeper; print({'numba', 'numpy', 'narwhals', 'msgspec', 'rich'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_importing_it_takes_less_than_a_tenth_of_a_second() -> None:
    code = "from time import process_time as t; a = t(); import watchkeeper; print(t() - a)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.1


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed


def test_every_evaluation_of_the_command_line_is_a_function_under_each_of_its_names() -> None:
    commands = {*EVALUATIONS, *OLD_NAMES.values()} - {"textfile"}
    assert set(wk.evaluate.__all__) == commands
    assert all(getattr(wk.evaluate, new) is getattr(wk.evaluate, old) for new, old in OLD_NAMES.items())


def test_every_function_of_the_face_has_an_example() -> None:
    # the protocol takes minutes
    functions = [wk.watch, wk.scores, import_module("watchkeeper.config.call").config, wk.simulate]
    functions += [getattr(wk.evaluate, name) for name in wk.evaluate.__all__ if name not in ("protocol", "gps_imu")]
    assert not [function.__name__ for function in functions if ">>> " not in (function.__doc__ or "")]


def test_the_events_of_a_log_are_the_bytes_of_a_replay(demo: Path, tmp_path: Path) -> None:
    assert main(["replay", str(demo), "--alarms", str(tmp_path / "alarms.jsonl")]) == 0
    lines = b"".join(encode_event(event) + b"\n" for event in wk.watch(demo).events)
    assert lines == (tmp_path / "alarms.jsonl").read_bytes() != b""


def test_a_frame_gives_the_alarms_of_its_log_in_every_library(demo: Path) -> None:
    # without jitter on the way frame and log have one order
    calm = wk.simulate("head-on", seed=1, seconds=240)
    expected = wk.watch(calm).events
    assert expected
    for backend, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)):
        alarms = wk.watch(calm.to_frame(backend))
        assert alarms.events == expected
        assert isinstance(alarms.to_frame(), kind)


def test_a_frame_of_alarms_has_one_row_each_with_the_worst_of_it(demo: Path) -> None:
    alarms = wk.watch(demo)
    frame = alarms.to_frame("polars")
    assert frame["id"].to_list() == [event.id for event in alarms]
    assert frame["id"].n_unique() == len(alarms) < len(alarms.events)
    for row in frame.iter_rows(named=True):
        life = [event for event in alarms.events if event.id == row["id"]]
        assert row["peak"] == max(event.score for event in life)
        assert row["events"] == len(life)
        assert row["active"] == (row["t_cleared"] is None) == (life[-1].state != "cleared")
        assert row["subjects"] == "~".join(life[0].subjects)
        assert json.loads(row["evidence"]) == msgspec.to_builtins(life[-1].evidence)
    assert pa.table(alarms).equals(alarms.to_arrow())


def test_times_come_back_as_they_went_in() -> None:
    frame = wk.simulate("head-on", seed=1, seconds=120).to_frame("polars")
    dated = frame.with_columns(pl.from_epoch((pl.col("t") * 1e6).cast(pl.Int64), "us").dt.replace_time_zone("UTC"))
    alarms = wk.watch(dated)
    assert alarms.to_frame()["t_raised"].dtype == pl.Datetime("us", "UTC")
    assert [t.timestamp() for t in alarms.to_frame()["t_raised"]] == [event.t_raised for event in wk.watch(frame)]
    assert wk.scores(dated)["t"].dtype == pl.Datetime("us", "UTC")


def test_no_alarms_are_an_empty_frame_with_all_columns() -> None:
    one = pd.DataFrame({"t": [1.0, 2.0], "id": "a", "lat": 50.0, "lon": [8.0, 8.001]})
    alarms = wk.watch(one)
    assert len(alarms) == 0
    assert list(alarms.to_frame().columns) == list(wk.watch(wk.simulate("head-on", seconds=60)).to_frame().columns)


def test_what_was_not_judged_is_said() -> None:
    table = {"t": [1.0, 2.0, 2.5], "id": ["a", "a", ""], "lat": [50.0, 95.0, 50.0], "lon": [8.0, 8.0, 8.0]}
    alarms = wk.watch(table)
    assert alarms.samples == {"adsb": 1}
    assert alarms.drops == {"adsb": {"bad_id": 1, "out_of_range": 1}}
    assert alarms.not_judged == {
        "gps_imu": "no gps, no imu", "intent": "no action or route", "signal": "no signal",
    }  # fmt: skip
    for said in ("dropped: 1 adsb bad_id, 1 adsb out_of_range", "gps_imu (no gps, no imu)"):
        assert said in repr(alarms)
        assert said in alarms._repr_html_()


@pytest.mark.parametrize("name", REGISTRY)
def test_what_a_detector_declares_to_need_is_in_its_own_scenario(name: str) -> None:
    declared = REGISTRY[name].declaration
    assert not {kind.name for kind in declared.kinds} & wk.watch(declared.scenario).not_judged.keys()


def test_two_sensors_that_never_meet_in_one_vehicle_are_not_judged() -> None:
    frame = wk.simulate("drones", seconds=20, seed=1, vehicles=2).to_frame("polars")
    alarms = wk.watch(frame.with_columns(id=pl.col("kind") + pl.col("id")))
    assert alarms.not_judged["gps_imu"] == (
        "vehicles judged: 0 of 4 (no_gps 2: imuquad-1, imuwing-2; no_imu 2: gpsquad-1, gpswing-2)"
    )


def test_a_vehicle_whose_units_cannot_be_is_no_vehicle_without_alarms() -> None:
    frame = wk.simulate("drones", seconds=60, seed=1, vehicles=2).to_frame("polars")
    force = [f"imu_a{axis}" for axis in "xyz"]
    in_g = frame.with_columns(pl.col(force) / 9.80665)
    alarms = wk.watch(in_g)
    said = alarms.not_judged["gps_imu"]
    assert said.startswith("vehicles judged: 0 of 2 (units_force 2: ")
    assert said in repr(alarms)
    one = frame.filter(pl.col("id") == frame["id"][0])
    both = wk.watch(pl.concat([in_g.with_columns(id=pl.col("id") + "-g"), one]))
    assert "gps_imu" not in both.not_judged
    assert "vehicles judged: gps_imu 1 of 3" in repr(both)
    assert "units_force 2: " in both._repr_html_()
    assert "too_short 1: " in repr(wk.watch(one.filter(pl.col("t") < frame["t"].min() + 15.0)))


def test_a_notebook_shows_a_table_in_which_names_cannot_be_markup(demo: Path) -> None:
    frame = wk.simulate("head-on", seed=1, seconds=120).to_frame("pandas")
    html = wk.watch(frame.assign(id="<b>" + frame["id"]))._repr_html_()
    assert html.startswith("<table>")
    assert "<td>&lt;b&gt;" in html
    assert "<b>" not in html


def test_a_report_of_a_frame_is_written_and_alarms_of_nothing_have_none(tmp_path: Path) -> None:
    two = {"t": [0.0, 0.0, 1.0, 1.0], "id": ["a", "b"] * 2, "lat": [50.0] * 4, "lon": [8.0, 8.01] * 2}
    page = tmp_path / "page.html"
    wk.watch(two).report(page)
    assert "What was judged" in page.read_text()
    with pytest.raises(ValueError, match="no recording"):
        wk.Alarms([], samples={}, drops={}, not_judged={}).report(page)


def test_a_path_that_is_not_there_and_an_empty_frame_are_clear_errors() -> None:
    with pytest.raises(LogError, match=r"nowhere.wklog: No such file"):
        wk.watch("nowhere.wklog")
    with pytest.raises(ValueError, match="the frame has no rows"):
        wk.watch(pd.DataFrame({"t": [], "id": []}))


def test_scores_before_debouncing_explain_the_alarms(demo: Path) -> None:
    scores = wk.scores(demo, backend="polars")
    assert scores.columns == ["t", "kind", "subject", "score", "threshold"]
    for event in wk.watch(demo):
        if event.kind == "incident":
            continue
        own = scores.filter((pl.col("kind") == event.kind) & (pl.col("subject") == "~".join(event.subjects)))
        assert own.filter((pl.col("score") >= pl.col("threshold")) & (pl.col("t") <= event.t_raised)).height


def test_several_logs_are_merged(demo: Path) -> None:
    assert wk.watch([demo]).events == wk.watch(wk.open_log(demo)).events == wk.watch(str(demo)).events


def test_config_is_a_function_and_a_package(tmp_path: Path) -> None:
    assert isinstance(wk.config(), Config)
    (tmp_path / "my.toml").write_text("[detectors.conflict]\nhorizon_s = 60.0\nwarning_s = 20.0\ncaution_s = 40.0\n")
    given = wk.config(tmp_path / "my.toml", detectors__conflict__caution_s=50.0, time={"tick_s": 0.5})
    assert (given.detectors.conflict.horizon_s, given.detectors.conflict.caution_s) == (60.0, 50.0)
    assert given.time.tick_s == 0.5
    with pytest.raises(ConfigError, match="did you mean"):
        wk.config(detectors__conflict__horizon=60.0)
    assert wk.config.schema.DEFAULT is DEFAULT  # type: ignore[attr-defined]


def test_a_configuration_reaches_the_pipeline() -> None:
    sim = wk.simulate("head-on", seed=1, seconds=240)
    off = wk.config(detectors__conflict__enabled=False, detectors__los__enabled=False)
    assert {event.kind for event in wk.watch(sim, config=off)} == set()


def printed(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_python_that_pages_print_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wk.simulate("head-on", seed=1, seconds=240).to_frame("pandas").to_csv("flights.csv", index=False)
    namespace: dict[str, Any] = {}
    blocks = printed(ROOT / page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)
    if page == "README.md":
        (block,) = blocks
        assert len(block.strip().splitlines()) <= 5
        assert type(namespace["frame"]).__module__.split(".")[0] == "pandas"
