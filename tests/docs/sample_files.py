"""The files that the pages name, small and made here: `FILES` has a maker for each name.

Most are what the tests of the readers write, so that a page shows what those tests read.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import can
import pandas as pd
from autopilot_logs import write_bin, write_tlog, write_ulg

from tests.streams.adapters.receivers.test_receivers import EVEN, ODD, beast
from tests.streams.adapters.tables import test_opensky, test_traffic
from tests.streams.adapters.vehicles import test_can, test_dataflash, test_rosbag
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.simulate import simulate

from where import DOCS, SHARED

Maker = Callable[[Path], object]
T0 = 1_700_000_000
PX4_SAMPLE = SHARED / "data/px4/pyulog_sample_px4_events.ulg"


def _simulated(scenario: str, seconds: int) -> Maker:
    return lambda path: main(["simulate", scenario, "--seconds", str(seconds), "--out", str(path)])


def _csv(scenario: str, seconds: float) -> Maker:
    def write(path: Path) -> None:
        frame: Any = simulate(scenario, seed=1, seconds=seconds).to_frame("pandas")
        frame.to_csv(path, index=False)

    return write


def _flown(write: Callable[[Path, Any], None], seconds: int = 20) -> Maker:
    return lambda path: write(path, simulated("quad-a", Recipe(31, seconds)))


def _drive(path: Path) -> None:
    with can.Logger(path) as logger:
        for frame in test_can.drive():
            logger(frame)


def _bag(form: str) -> Maker:
    def write(path: Path) -> None:
        made = test_rosbag.write(path.parent, form, test_rosbag.flight(form, ("/uav1", "/uav2")))
        if form == "mcap":  # a folder with the recording in it
            shutil.copy(next(made.glob("*.mcap")), path)
        elif made != path:
            made.rename(path)

    return write


def _beast(path: Path) -> None:
    frames = (beast((EVEN, ODD)[k % 2], k * 6_000_000) for k in range(60))
    path.write_bytes(b"".join(frames))


def _trace(path: Path) -> None:
    rows = [[k, 50.0 + 0.001 * k, 8.0, 35_000, 450.0, 0.0, 0, 0, None, None] for k in range(60)]
    path.write_text(json.dumps({"icao": "ac671b", "timestamp": T0, "trace": rows}))


def _traffic(path: Path) -> None:
    records = [test_traffic.record(timestamp=(T0 + k) * 1000, latitude=50.0 + 0.002 * k) for k in range(60)]
    path.write_bytes(gzip.compress(json.dumps(records).encode()))


def _parquet(path: Path) -> None:
    records = [test_traffic.record(timestamp=(T0 + k) * 1000, latitude=50.0 + 0.002 * k) for k in range(60)]
    frame = pd.DataFrame(records)
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="ms", utc=True)
    frame.to_parquet(path)


def _px4(path: Path) -> None:
    """The sample that the page shows, where it is; else a flight of our own in its form."""
    if PX4_SAMPLE.exists():
        shutil.copy(PX4_SAMPLE, path)
    else:
        _flown(write_ulg)(path)


def _gliders(folder: Path) -> None:
    """The package of the page, as pip leaves it: its module and its entry point."""
    page = (DOCS / "adapters/writing-an-adapter.md").read_text()
    folder.mkdir()
    (folder / "watchkeeper_gliders.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    info = folder / "watchkeeper_gliders-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watchkeeper-gliders\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[watchkeeper.adapters]\ngliders = watchkeeper_gliders:ADAPTER\n")


def _gliders_toml(path: Path) -> None:
    page = (DOCS / "adapters/writing-an-adapter.md").read_text()
    path.write_text(next(text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[sources]]" in text))


def _sunday(path: Path) -> None:
    lines = (f"{T0 + k};D-1234;{50 + 0.0003 * k:.4f};8.0;700\n" for k in range(60))
    path.write_text("".join(lines))


def _text(words: str) -> Maker:
    return lambda path: path.write_text(words)


# By page, below the repository, and in the order in which they are made.
FILES: dict[str, dict[str, Maker]] = {
    "README.md": {},
    "docs/quickstart.md": {},
    "docs/replay.md": {
        "flight.wklog": _simulated("head-on", 4),
        "north.wklog": _simulated("crossing", 60),
        "south.csv.gz": _csv("head-on", 60.0),
    },
    "docs/adapters/ardupilot.md": {
        "00000007.BIN": _flown(write_bin),
        "flight.bin": lambda path: path.write_bytes(test_dataflash.flight()),
    },
    "docs/adapters/bluesky.md": {},
    "docs/adapters/can.md": {
        "vehicle.dbc": _text(test_can.DBC),
        "can.toml": _text(test_can.MAP),
        "drive.log": _drive,
        "drive.blf": _drive,
    },
    "docs/adapters/mavlink.md": {"flight.tlog": _flown(write_tlog)},
    "docs/adapters/opensky.md": {
        "states_2022-06-27-00.csv.gz": lambda path: path.write_bytes(gzip.compress(test_opensky.dump().encode())),
        "states.json": _text(json.dumps(test_opensky.ANSWER)),
    },
    "docs/report.md": {
        "flight.ulg": _flown(write_ulg),
        "flight.wklog": _simulated("head-on", 60),
        **{f"logs/{name}.ulg": _flown(write_ulg, 5) for name in ("one", "two")},
    },
    "docs/adapters/px4.md": {"flight.ulg": _flown(write_ulg), "sample_px4_events.ulg": _px4},
    "docs/adapters/receivers.md": {"traces/ac671b.json": _trace, "antenna.beast": _beast},
    "docs/adapters/ros.md": {
        "flight.bag": _bag("ros1"),
        "rosbag2_2024_05_01": _bag("sqlite3"),
        "flight.mcap": _bag("mcap"),
    },
    "docs/adapters/traffic.md": {
        "data/adsb/traffic/data/samples/collections/quickstart.json.gz": _traffic,
        "data/adsb/traffic/data/samples/noisy/noisy_spoofing.json.gz": _traffic,
        "flights.parquet": _parquet,
        "2ce4f83f.json": _text('{"result": {"request": {}}, "_api": {}}'),
    },
    "docs/adapters/writing-an-adapter.md": {"site": _gliders, "my.toml": _gliders_toml, "sunday.gliders": _sunday},
}


# Recordings of others that the pages show: where they are not, a small file of that name is read instead.
STAND_INS = {"quickstart.json.gz", "noisy_spoofing.json.gz"} | (
    set() if PX4_SAMPLE.exists() else {"sample_px4_events.ulg"}
)


def make_files(page: str, folder: Path) -> None:
    """All files that a page names, into a folder."""
    for name, make in FILES.get(page, {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder / name)
