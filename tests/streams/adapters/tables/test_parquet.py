"""Parquet exports of the traffic library: sample by sample what its JSON export of the same table gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.tables.traffic import COLUMNS, SOURCES, TrafficJson
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Kind

from where import WHOLE_SAMPLES

T0 = pd.Timestamp("2021-10-07T12:12:53.125Z")


def table(n: int = 40) -> pd.DataFrame:
    """Two flights one behind the other, as the library keeps them: not in order of time."""
    rng = np.random.default_rng(3)
    k = np.arange(n) % (n // 2)
    return pd.DataFrame({
        "timestamp": T0 + pd.to_timedelta(k, unit="s"),
        "icao24": np.where(np.arange(n) < n // 2, "4ca7b3", "3c6444"),
        "callsign": np.where(np.arange(n) < n // 2, "EIN12", None),
        "latitude": 50.0 + k * 1e-3,
        "longitude": 8.0 + k * 1e-3,
        "altitude": np.where(k % 5, 35_000.0, np.nan),
        "groundspeed": rng.uniform(400.0, 450.0, n),
        "track": rng.uniform(0.0, 360.0, n),
        "vertical_rate": -64.0,
        "onground": k < 3,
        "selected_mcp": np.where(k % 2, 36_000.0, np.nan),
        "NACp": rng.integers(7, 12, n),
        "squawk": "1000",
    })  # fmt: skip


def same(one: Batch, other: Batch) -> None:
    a, b = one.kinds[Kind.ADSB], other.kinds[Kind.ADSB]
    assert [one.ids[v] for v in a.vid.tolist()] == [other.ids[v] for v in b.vid.tolist()]
    np.testing.assert_allclose(a.t, b.t, atol=1e-6, rtol=0.0)
    # pandas writes 15 digits into JSON
    np.testing.assert_allclose(a.data, b.data, rtol=1e-14, atol=1e-14)
    assert one.callsigns == other.callsigns


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_a_parquet_export_gives_what_pandas_has(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "flights.parquet"
    kept = table()
    kept["timestamp"] = kept["timestamp"].dt.floor("s").dt.as_unit(unit)
    kept.to_parquet(path, row_group_size=7)
    back = pd.read_parquet(path).sort_values("timestamp", kind="stable")
    log = open_log(path)
    batch = join(list(log.batches()))
    cols = batch.kinds[Kind.ADSB]
    assert log.info().format == "traffic parquet"
    assert log.info().problems == ()
    seconds = (back["timestamp"] - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(1, "s")
    np.testing.assert_array_equal(cols.t, seconds)
    assert [batch.ids[v] for v in cols.vid.tolist()] == back["icao24"].tolist()
    for field, names in SOURCES.items():
        for name in names:
            if name in back:
                np.testing.assert_array_equal(cols.data[COLUMN[Kind.ADSB][field]], back[name].astype(float))
    assert batch.callsigns == {"4ca7b3": "EIN12"}


def test_a_table_is_the_same_as_json_and_as_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = table()
    frame.loc[4, "latitude"] = np.nan
    frame.to_json(tmp_path / "flights.json", orient="records", double_precision=15, date_format="iso", date_unit="ms")
    frame.to_parquet(tmp_path / "flights.parquet")
    logs = [open_log(tmp_path / name) for name in ("flights.json", "flights.parquet")]
    same(*(join(list(log.batches(7))) for log in logs))
    assert logs[0].info().problems == logs[1].info().problems
    assert logs[1].info().bad_rows == 1
    assert main(["convert", str(tmp_path / "flights.parquet"), str(tmp_path / "flights.wklog")]) == 0
    assert "39 samples" in capsys.readouterr().out


@pytest.mark.skipif(not WHOLE_SAMPLES.is_dir(), reason=f"no recordings in {WHOLE_SAMPLES}: run `make data`")
def test_real_recordings_are_the_same_as_json_and_as_parquet(tmp_path: Path) -> None:
    compared = 0
    for name in ("noisy/noisy_spoofing", "featured/belevingsvlucht", "surveys/pixair_toulouse"):
        path = WHOLE_SAMPLES / f"{name}.json.gz"
        if not path.exists():
            continue
        frame = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes())))
        frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="ms", utc=True)
        frame = frame[[column for column in frame.columns if column in COLUMNS]]
        frame.to_parquet(tmp_path / "real.parquet")
        parquet, plain = open_log(tmp_path / "real.parquet"), TrafficJson(path)
        same(join(list(parquet.batches())), join(list(plain.batches())))
        assert parquet.info().bad_rows == plain.info().bad_rows
        compared += len(frame)
    print(f"\n{compared:,} rows")
    assert compared > 20_000
