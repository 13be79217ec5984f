"""Small whole files of every format that we read, made by our own writers, by the formats' libraries, or by hand.

`LOGS` has one entry per reader: a file name, which tells the reader, a few seeds, and what lies next to the file.
`seal` closes a mutated content as its format does, so that damage behind a checksum or inside a packed file is met too.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tools.fuzz import seals, vehicles
from tools.fuzz.trees import edited_json
from watchkeeper.streams.adapters.catalog import discover
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


@dataclass(frozen=True)
class Files:
    """A format's file name, whole files of it, and what lies next to them."""

    name: str
    seeds: list[bytes]
    beside: dict[str, bytes] = field(default_factory=dict)
    seal: Callable[[bytes], bytes] = bytes
    edit: Callable[[random.Random, bytes], bytes] | None = None
    """Changes what a document says; half of the cases are these."""
    opens: str = ""
    """The file that is opened, where it is another one that is damaged; `.` is the folder."""


def wklog(seal: Callable[[bytes], bytes] = bytes) -> Files:
    """A recording of two drones: GPS, IMU and link."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.wklog"
        with LogWriter(path, frame_samples=200) as writer:
            for batch in simulate("drones", seconds=1.0, seed=1, vehicles=2).batches():
                writer.write(batch)
        return Files("x.wklog", [path.read_bytes()], seal=seal)


def table(quoted: bool = False) -> bytes:
    """A CSV log of every kind of row."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    names = ["id", "t", "kind", "via", "callsign", "lat", "lon", "alt_ft", "gs_kt", "trk_deg", "gps_x", "gps_y",
             "imu_ax", "imu_ay", "imu_az", "imu_wx", "imu_wy", "imu_wz", "note"]  # fmt: skip
    writer.writerow(names)
    for k in range(20):
        writer.writerow(["a", k, "adsb", "mast", "BAW1", 50 + k / 1e3, 8, 30_000, 450.5, 90, *[""] * 8, "x, y"])
        writer.writerow(["d1", k, "gps", "", "", *[""] * 5, 1.5 * k, 2, *[""] * 6, ""])
        writer.writerow(["d1", k, "imu", "", "", *[""] * 7, 0.1, 0.2, -9.8, 0, 0, 0.01, ""])
    return text.getvalue().encode()


def _aircraft(k: int) -> dict[str, Any]:
    return {"hex": f"4ca7b{k}", "flight": "EIN12  ", "lat": 51.5, "lon": -0.5, "seen_pos": 0.2, "alt_baro": 35000,
            "gs": 450.5, "track": 90.0, "baro_rate": -64, "nac_p": 9, "nic": 8, "nav_altitude_mcp": 36000}  # fmt: skip


def _readsb() -> Files:
    look = {"now": 1709294400.5, "messages": 1, "aircraft": [_aircraft(k) for k in range(5)]}
    return Files("aircraft.json", [json.dumps(look).encode()], edit=edited_json)


def _trace() -> Files:
    rows = [[k * 2.5, 51.5, -0.5, 35000, 450, 90.0, 0, -64, {"flight": "EIN12", "nic": 8}, "adsb"] for k in range(20)]
    trace = {"icao": "4ca7b3", "timestamp": 1709294400.0, "trace": rows}
    return Files("trace_full_4ca7b3.json", [json.dumps(trace).encode()], edit=edited_json)


def _state(k: int) -> list[Any]:
    return [f"4ca7b{k}", "BAW123  ", "UK", 1709294399, 1709294400, -0.5, 51.5, 10668.0, False, 231.5, 90.0, 0.0, None]


def _opensky() -> Files:
    look = {"time": 1709294400, "states": [_state(k) for k in range(5)]}
    return Files("states.json", [json.dumps(look).encode()], edit=edited_json)


def _opensky_rows() -> Iterator[dict[str, Any]]:
    for k in range(20):
        yield {"time": 1709294400 + k, "icao24": f"4ca7b{k % 3}", "lat": 51.5, "lon": -0.5, "velocity": 231.5,
               "heading": 90.0, "vertrate": 0.0, "callsign": "BAW123", "onground": False, "baroaltitude": 10668.0,
               "lastposupdate": 1709294399.5 + k, "lastcontact": 1709294400.0 + k}  # fmt: skip


def _opensky_csv() -> Files:
    rows = list(_opensky_rows())
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return Files("states.csv", ["\n".join(lines).encode()])


def _traffic_rows() -> Iterator[dict[str, Any]]:
    for k in range(20):
        yield {"timestamp": 1633608773000 + 1000 * k, "icao24": f"4ca7b{k % 3}", "callsign": "EIN12", "latitude": 50.0,
               "longitude": 8.0, "altitude": 35000.0 if k % 5 else None, "groundspeed": 430.0, "track": 10.0 * k,
               "vertical_rate": -64.0, "onground": k < 3, "selected_mcp": 36000.0, "NACp": 9}  # fmt: skip


def _traffic() -> Files:
    rows = list(_traffic_rows())
    columns = {name: {str(k): row[name] for k, row in enumerate(rows)} for name in rows[0]}
    return Files("flights.json", [json.dumps(rows).encode(), json.dumps(columns).encode()], edit=edited_json)


def _packed_document(files: Files) -> Files:
    """A document in a gzip file: the damage is inside."""
    return replace(files, name=files.name + ".gz", seal=seals.packed)


def _parquet(rows: Iterator[dict[str, Any]], name: str) -> Files:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    seeds = []
    found = list(rows)
    for packing in ("none", "snappy", "gzip"):
        out = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist(found), out, row_group_size=7, compression=packing)
        seeds.append(out.getvalue())
    return Files(name, seeds)


def _sample(adapter: str, name: str) -> Files:
    sample = discover()[adapter].sample
    assert sample is not None
    beside = {file: text.encode() for file, text in sample.files.items()}
    return Files(name, [sample.data, sample.data * 10], beside)


def _lines() -> bytes:
    """JSON lines of our own, of readsb and of rs1090."""
    sample = {"kind": "gps", "id": "uav-1", "t": 1709294400.5, "lat": 51.5, "lon": -0.5}
    frame = {"timestamp": 1709294400.5, "frame": "8d40621d58c382d690c8ac2863a7", "df": "17"}
    rows = [{**row, "t": k} for k in range(10) for row in (sample, {"now": 1709294400.5, **_aircraft(k)}, frame)]
    return "\n".join(map(json.dumps, rows)).encode()


def _mapping(name: str) -> Files:
    """A CAN recording next to which the mapping, or the DBC file, is the damaged one."""
    whole = _sample("can", "bus.log")
    beside = {**whole.beside, "bus.log": whole.seeds[0]}
    return Files(name, [beside.pop(name)], beside, opens="bus.log")


def _ros_folder() -> Files:
    """A ROS 2 recording in its folder, whose description is the damaged file."""
    description, data = vehicles.ros_folder()
    return Files("metadata.yaml", [description], {"x.db3": data}, opens=".")


# Formats that another program reads in a process of its own, and the target of what it prints.
ELSEWHERE = {"bluesky": "feed bluesky"}
LOGS: dict[str, Callable[[], Files]] = {
    "wklog": wklog,
    "wklog sealed": lambda: wklog(seals.sealed_wklog),
    "csv": lambda: Files("x.csv", [table(), b"id,t,lat,lon,alt_ft\na,1,50,8,30000\n"]),
    "csv quoted": lambda: Files("x.csv", [table(quoted=True)]),
    "csv packed": lambda: Files("x.csv.gz", [gzip.compress(table(), mtime=0)]),
    "csv in a pack": lambda: Files("x.csv.gz", [table()], seal=seals.packed),
    "messages": lambda: Files("x.msgpack", [*_sample("messages", "").seeds, _lines()]),
    "messages packed": lambda: Files("x.jsonl.gz", [_lines()], seal=seals.packed),
    "sbs": lambda: _sample("sbs", "x.sbs"),
    "beast": lambda: _sample("beast", "x.beast"),
    "beast sealed": lambda: replace(_sample("beast", "x.beast"), seal=seals.sealed_beast),
    "avr": lambda: _sample("avr", "x.avr"),
    "avr sealed": lambda: replace(_sample("avr", "x.avr"), seal=seals.sealed_avr),
    **{
        name: functools.partial(_sample, name, f"x.{name}")
        for name in ("asterix", "gdl90", "ogn", "ais", "remoteid", "nmea", "gpsd", "ubx")
    },
    "readsb": _readsb,
    "readsb packed": lambda: _packed_document(_readsb()),
    "readsb trace": _trace,
    "readsb trace packed": lambda: replace(_trace(), seal=seals.packed),
    "opensky": _opensky,
    "opensky packed": lambda: _packed_document(_opensky()),
    "opensky csv": _opensky_csv,
    "opensky parquet": lambda: _parquet(_opensky_rows(), "states.parquet"),
    "traffic": _traffic,
    "traffic parquet": lambda: _parquet(_traffic_rows(), "flights.parquet"),
    "tlog": lambda: Files("x.tlog", [vehicles.tlog()]),
    "tlog sealed": lambda: Files("x.tlog", [vehicles.tlog()], seal=seals.sealed_tlog),
    "ulog": lambda: Files("x.ulg", [vehicles.ulog()]),
    "dataflash": lambda: Files("x.bin", [vehicles.dataflash()]),
    "ros 1": lambda: Files("x.bag", vehicles.bags("ros1")),
    "ros 2 mcap": lambda: Files("x.mcap", vehicles.bags("mcap")),
    "ros 2 db3": lambda: Files("x.db3", vehicles.bags("sqlite3")),
    "ros 2 folder": _ros_folder,
    "candump": lambda: _sample("can", "bus.log"),
    "can mapping": lambda: _mapping("can.toml"),
    "can dbc": lambda: _mapping("vehicle.dbc"),
    **{f"can {kind}": (lambda kind=kind: vehicles_can(kind)) for kind in ("asc", "blf", "trc")},  # type: ignore[misc]
}


def vehicles_can(kind: str) -> Files:
    """A CAN recording as python-can writes it, with its mapping."""
    return Files(f"bus.{kind}", [vehicles.can_log(kind)], _sample("can", "bus.log").beside)
