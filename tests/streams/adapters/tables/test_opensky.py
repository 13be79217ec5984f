"""State vectors of OpenSky: JSON, CSV and Parquet give the same samples, each position once, in our units."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import until

from watchkeeper.config.adapters.opensky import OpenSky as OpenSkySettings
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.background import end
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.tables.opensky import OpenSky, OpenSkyCsv
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, Kind

T0 = 1_458_564_120
# an answer as OpenSky documents it, the second aircraft on the ground, the third without a position
ANSWER: dict[str, Any] = {
    "time": T0,
    "states": [
        ["3c6444", "DLH9LF  ", "Germany", T0 - 1, T0, 6.1546, 50.1964, 9639.3, False, 232.88, 98.26, 4.55, None,
         9547.86, "1000", False, 0],
        ["4B1806", "", "Switzerland", T0 - 3, T0, 8.55, 47.45, None, True, 0.0, None, None, [1, 2], None, None,
         False, 0, 1],
        ["a0b1c2", None, "United States", None, T0 - 9, None, None, None, False, 200.0, 10.0, 0.0, None, None, None,
         False, 0],
    ],
}  # fmt: skip
HEADER = (
    "time,icao24,lat,lon,velocity,heading,vertrate,callsign,onground,alert,spi,squawk,baroaltitude,geoaltitude,"
    "lastposupdate,lastcontact"
)


def dump() -> str:
    """Ten minutes of three aircraft in looks of 10 s; one reports every 7 s, one every 20 s, one once."""
    rng = np.random.default_rng(5)
    lines = [HEADER]
    for look in range(T0, T0 + 600, 10):
        for icao, every in (("3c6444", 7), ("4b1806", 20), ("a0b1c2", 10_000)):
            heard = T0 + (look - T0) // every * every + 0.25
            lat, lon = 50.0 + (heard - T0) * 1e-3, 6.0 + (heard - T0) * 1e-3
            climb = f"{rng.normal(0.0, 3.0):.3f}"
            cells = [
                look,
                icao,
                lat,
                lon,
                230.5,
                98.25,
                climb,
                "DLH9LF  ",
                "false",
                "false",
                "false",
                1000,
                9639.3,
                9700.1,
            ]
            lines.append(",".join(map(str, [*cells, heard, look])))
    lines[5] = lines[5].replace("9639.3", "")  # an altitude that was not heard
    return "\n".join(lines) + "\n"


def samples(batch: Batch) -> list[tuple[str, float, dict[str, float]]]:
    cols = batch.kinds[Kind.ADSB]
    rows = []
    for i, vid in enumerate(cols.vid.tolist()):
        there = {n: float(cols.data[c, i]) for n, c in COLUMN[Kind.ADSB].items() if not math.isnan(cols.data[c, i])}
        rows.append((batch.ids[vid], float(cols.t[i]), there))
    return rows


def read(path: Path) -> list[tuple[str, float, dict[str, float]]]:
    return samples(join(list(open_log(path).batches())))


def test_an_answer_becomes_samples_in_our_units_at_the_times_of_the_positions() -> None:
    feed = OpenSky(via="opensky")
    feed.push(json.dumps(ANSWER).encode(), math.nan)
    batch = feed.take()
    assert batch is not None
    assert feed.refused.total() == 0
    parked, flying = samples(batch)
    assert parked == ("4b1806", T0 - 3, {"lat": 47.45, "lon": 8.55, "gs_kt": 0.0, "on_ground": 1.0})
    assert flying[:2] == ("3c6444", T0 - 1)
    assert flying[2] == pytest.approx({
        "lat": 50.1964, "lon": 6.1546, "alt_ft": 9639.3 / FT_M, "gs_kt": 232.88 / KT_MS, "trk_deg": 98.26,
        "vs_fpm": 4.55 * 60.0 / FT_M, "on_ground": 0.0, "squawk": 1000.0,
    })  # fmt: skip
    assert batch.callsigns == {"3c6444": "DLH9LF"}
    assert batch.vias == ["opensky"]


def test_a_position_that_is_repeated_is_no_new_one_and_without_its_own_time_it_has_that_of_the_answer() -> None:
    feed = OpenSky()
    later = json.loads(json.dumps(ANSWER))
    later["time"] = T0 + 10
    later["states"][0][3] = T0 + 8
    later["states"].append(["beef01", "X", "", None, T0, 1.0, 2.0, 3.0, False, 4.0, 5.0, 6.0])
    feed.push(json.dumps(ANSWER).encode(), math.nan)
    feed.push(json.dumps(later).encode(), math.nan)
    batch = feed.take()
    assert batch is not None
    assert [(name, t - T0) for name, t, _ in samples(batch)] == [
        ("4b1806", -3), ("3c6444", -1), ("3c6444", 8), ("beef01", 10),
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "timestamps"])
def test_every_form_of_a_dump_gives_what_pandas_reads(tmp_path: Path, form: str) -> None:
    """pandas is the reference: the first row of each aircraft and position, by time of the look and of the position."""
    text = dump()
    table = pd.read_csv(io.StringIO(text))
    path = tmp_path / f"states_2016-03-21-12.{'parquet' if form == 'timestamps' else form}"
    if form == "csv":
        path.write_text(text)
    elif form == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        kept = table.copy()
        if form == "timestamps":
            for name in ("time", "lastposupdate", "lastcontact"):
                kept[name] = pd.to_datetime(kept[name], unit="s", utc=True)
        kept.to_parquet(path, row_group_size=25)
    first = table.drop_duplicates(["icao24", "lastposupdate"]).sort_values(["time", "lastposupdate"], kind="stable")
    found = read(path)
    assert [name for name, _, _ in found] == first["icao24"].tolist()
    assert [t for _, t, _ in found] == pytest.approx(first["lastposupdate"].tolist(), abs=1e-6)
    for field, column, unit in (
        ("lat", "lat", 1.0), ("lon", "lon", 1.0), ("alt_ft", "baroaltitude", 1 / FT_M), ("trk_deg", "heading", 1.0),
        ("gs_kt", "velocity", 1 / KT_MS), ("vs_fpm", "vertrate", 60 / FT_M), ("on_ground", "onground", 1.0),
    ):  # fmt: skip
        ours = [row.get(field, math.nan) for _, _, row in found]
        np.testing.assert_allclose(ours, first[column].astype(float) * unit, rtol=1e-12, err_msg=field)
    assert len(found) == 86 + 30 + 1 - 26  # looks every 10 s see 60 of the 86 that come every 7 s
    assert open_log(path).info().problems == ()


def test_info_and_convert_know_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "states.json").write_text(json.dumps(ANSWER))
    (tmp_path / "states.csv").write_text(dump())
    for name, form in (("states.json", "opensky, "), ("states.csv", "opensky csv, ")):
        assert main(["info", str(tmp_path / name)]) == 0
        assert form in capsys.readouterr().out
        assert main(["convert", str(tmp_path / name), str(tmp_path / "out.wklog")]) == 0
        assert len(read(tmp_path / "out.wklog")) == len(read(tmp_path / name))


def test_bad_states_and_rows_are_counted_by_reason() -> None:
    good = ANSWER["states"][0]
    states = [
        good, [*good[:5], "east", *good[6:]], 7, good[:5], [17, *good[1:]], ["", *good[1:]], ["x" * 65, *good[1:]],
    ]  # fmt: skip
    feed = OpenSky()
    feed.push(json.dumps({"time": T0, "states": states}).encode(), math.nan)
    feed.push(b"nonsense", math.nan)
    feed.push(b'{"time": 1, "states": null}', math.nan)
    batch = feed.take()
    assert batch is not None
    assert len(batch) == 1
    assert feed.refused == {"wrong_type": 2, "missing_field": 1, "bad_id": 3, "malformed": 1}
    lines = dump().splitlines()
    csv = OpenSkyCsv()
    wrong = [lines[1].replace("230.5", "fast"), lines[1][:20], lines[1].replace(str(T0), "", 1), "x" * 2000]
    csv.push("\n".join([lines[0], lines[1], *wrong, lines[0], ""]).encode(), math.nan)
    csv.close()
    assert csv.refused == {"wrong_type": 1, "missing_field": 1, "bad_time": 1, "too_large": 1}


@given(st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3)), max_size=6), st.integers(1, 500))
@settings(max_examples=100, deadline=None)
def test_no_garbling_breaks_the_reading(edits: list[tuple[int, bytes]], piece: int) -> None:
    for feed, whole in ((OpenSky(), json.dumps(ANSWER).encode()), (OpenSkyCsv(), dump()[:1500].encode())):
        data = bytearray(whole)
        for at, what in edits:
            data[at % len(data) : at % len(data) + len(what)] = what
        step = len(data) if isinstance(feed, OpenSky) else piece
        for at in range(0, len(data), step):
            feed.push(bytes(data[at : at + step]), math.nan)
        feed.close()
        feed.take()


def test_a_damaged_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "states.parquet"
    pd.read_csv(io.StringIO(dump())).to_parquet(path)
    whole = path.read_bytes()
    for what in (whole[:-50], b"PAR1" + whole[100:-20], b"PAR1"):
        path.write_bytes(what)
        with pytest.raises(LogError, match=r"states\.parquet: not a Parquet file, or damaged"):
            open_log(path)
    # the pages are damaged, what says where they are is whole
    path.write_bytes(whole[:4] + bytes(x ^ 0x55 for x in whole[4:300]) + whole[300:])
    log = open_log(path)
    assert sum(len(batch) for batch in log.batches()) < 91
    assert log.info().problems
    pd.DataFrame({"x": [1]}).to_parquet(path)
    with pytest.raises(LogError, match="not a table of flights"):
        open_log(path)


def test_answers_are_fetched_again_and_again() -> None:
    async def scenario() -> None:
        looks = 0

        async def answer(_request: web.Request) -> web.Response:
            nonlocal looks
            looks += 1
            now = json.loads(json.dumps(ANSWER))
            now["time"] += looks
            now["states"][0][3] += looks
            return web.json_response(now)

        app = web.Application()
        app.router.add_get("/api/states/all", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        heard: list[tuple[str, float]] = []
        decoder = Decoder(DEFAULT.topics, DEFAULT.limits, lambda *_: pytest.fail("a sample of our own was refused"))

        def put(found: Batch) -> None:
            decoder.add_batch(found)
            batch = decoder.take()
            assert batch is not None
            heard.extend((name, t - T0) for name, t, _ in samples(batch))

        url = f"http://127.0.0.1:{port}/api/states/all?lamin=45"
        live = LiveSource(OpenSkySettings(url=url, period_s=0.1), DEFAULT, put)
        task = asyncio.create_task(live.run())
        await until(lambda: len(heard) >= 4)
        await end(task)
        await runner.cleanup()
        assert heard[:4] == [("4b1806", -3), ("3c6444", 0), ("3c6444", 1), ("3c6444", 2)]

    asyncio.run(scenario())
