"""Which reader opens which file.

A format is one row in FORMATS: magic bytes or name endings, and where its reader lives. Readers are imported when
a file asks for them, so an adapter with an optional dependency costs nothing until it is used.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format, LogError, Source, SourceInfo
from watchkeeper.streams.logs.chunks import merge_by_time, rechunk

__all__ = ["Format", "LogError", "Source", "SourceInfo", "open_log", "read_logs"]

_ADAPTERS = "watchkeeper.streams.adapters"
_JSON = (".json", ".json.gz")
_CSV = (".csv", ".csv.gz")
# How much of a file is looked at to tell it.
HEAD_BYTES = 4096

FORMATS: list[Format] = [
    # every version of a .wklog starts like this, so that a newer one is told apart from "not a log"
    Format("wklog", "watchkeeper.streams.logs.wklog:LogReader", (".wklog",), b"WKLOG"),
    Format("opensky csv", f"{_ADAPTERS}.tables.opensky:open_dump", _CSV, holds=(b"icao24", b"lastposupdate")),
    Format("csv", "watchkeeper.streams.logs.csv:CsvLog", _CSV),
    Format("sbs", f"{_ADAPTERS}.receivers.sbs:open_sbs", (".sbs", ".sbs.gz", ".bst", ".bst.gz")),
    Format("beast", f"{_ADAPTERS}.receivers.modes:open_beast", (".beast", ".beast.gz", ".bin"), holds=(b"\x1a",)),
    Format("avr", f"{_ADAPTERS}.receivers.modes:open_avr", (".avr", ".avr.gz")),
    Format("readsb", f"{_ADAPTERS}.receivers.readsb:open_aircraft_json", _JSON, holds=(b'"now"', b'"aircraft"')),
    Format(
        "readsb trace", f"{_ADAPTERS}.receivers.readsb:open_trace", _JSON, holds=(b'"icao"', b'"timestamp"', b'"trace"')
    ),
    Format("opensky", f"{_ADAPTERS}.tables.opensky:open_states", _JSON, holds=(b'"time"', b'"states"')),
    Format("parquet", f"{_ADAPTERS}.tables.parquet:open_parquet", (".parquet",), b"PAR1"),
    Format("tlog", f"{_ADAPTERS}.vehicles.mavlink:open_tlog", (".tlog", ".tlog.gz")),
    Format("ulog", f"{_ADAPTERS}.vehicles.ulog:open_ulog", (".ulg",), b"ULog\x01\x12\x35"),
    Format("ros", f"{_ADAPTERS}.vehicles.rosbag:open_rosbag", (".bag",), b"#ROSBAG V2.0"),
    Format("ros", f"{_ADAPTERS}.vehicles.rosbag:open_rosbag", (".mcap",), b"\x89MCAP0\r\n"),
    Format("ros", f"{_ADAPTERS}.vehicles.rosbag:open_rosbag", (".db3",)),
    Format("can", f"{_ADAPTERS}.vehicles.can:open_candump", (".log", ".log.gz"), holds=(b"(", b") ", b"#")),
    Format("can", f"{_ADAPTERS}.vehicles.can:open_can", (".asc", ".blf", ".trc")),
    Format("dataflash", f"{_ADAPTERS}.vehicles.dataflash:open_dataflash", (), b"\xa3\x95\x80"),
    Format("bluesky", f"{_ADAPTERS}.bluesky.adapter:open_scenario", (".scn",)),
    Format("traffic", f"{_ADAPTERS}.tables.traffic:TrafficJson", _JSON),
]


def open_log(path: Path | str) -> Source:
    """The reader for a file, told by its first bytes and otherwise by its name. Raises LogError."""
    path = Path(path)
    # a folder with a description is what ROS 2 records into
    folder = path.is_dir() and (path / "metadata.yaml").exists()
    head = b"" if folder else _head(path)
    name = f"{path.name}.db3" if folder else path.name.lower()
    by_magic = [f for f in FORMATS if f.magic and head.startswith(f.magic)]
    for known in by_magic or [f for f in FORMATS if name.endswith(f.suffixes)]:
        if not all(part in head for part in known.holds):
            continue
        module, _, reader = known.reader.partition(":")
        opener: Callable[[Path], Any] = getattr(import_module(module), reader)
        source: Source = opener(path)
        return source
    endings = ", ".join(dict.fromkeys(suffix for f in FORMATS for suffix in f.suffixes))
    raise LogError(path, f"not a log that we can read (known endings: {endings})")


def _head(path: Path) -> bytes:
    """The beginning of a file, unpacked if it is packed. Raises LogError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    if head.startswith(b"\x1f\x8b"):
        # what is damaged is told by the reader
        with suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    return head


def read_logs(
    sources: Sequence[Source], *, chunk: int | None = None, start: float = -math.inf, stop: float = math.inf
) -> Iterator[Batch]:
    """The samples of all logs as one stream; in batches of `chunk` samples if that is given."""
    merged = merge_by_time([source.batches(start=start, stop=stop) for source in sources])
    return merged if chunk is None else rechunk(merged, chunk)
