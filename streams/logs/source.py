"""Which reader opens which file: the formats of all adapters (streams/adapters/catalog.py), and logs read together."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import discover, formats
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format, LogError, Source, SourceInfo
from watchkeeper.streams.logs.chunks import merge_by_time, rechunk

__all__ = ["Format", "LogError", "Source", "SourceInfo", "open_log", "read_logs"]

# How much of a file is looked at to tell it.
HEAD_BYTES = 4096


def open_log(path: Path | str) -> Source:
    """The reader for a file, told by its first bytes and otherwise by its name. Raises LogError."""
    path = Path(path)
    # a folder with a description is what ROS 2 records into
    folder = path.is_dir() and (path / "metadata.yaml").exists()
    head = b"" if folder else _head(path)
    name = f"{path.name}.db3" if folder else path.name.lower()
    by_magic = [f for f in formats() if f.magic and head.startswith(f.magic)]
    for known in by_magic or [f for f in formats() if name.endswith(f.suffixes)]:
        if not all(part in head for part in known.holds):
            continue
        opener: Callable[[Path], Source] = resolve(known.reader)
        return opener(path)
    declared = (known for adapter in discover().values() for known in adapter.formats)
    endings = ", ".join(dict.fromkeys(suffix for f in declared for suffix in f.suffixes))
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
