"""Which reader opens which file: the formats of all adapters (streams/adapters/catalog.py), and logs read together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import discover, formats
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.files import first_bytes
from watchkeeper.streams.foreign.library import Fenced, unforeseen
from watchkeeper.streams.logs.base import Format, LogError, Source, SourceInfo
from watchkeeper.streams.logs.chunks import merge_by_time, rechunk

__all__ = ["Format", "LogError", "Source", "SourceInfo", "open_log", "read_logs"]

# How much of a file is looked at to tell it.
HEAD_BYTES = 4096
STDIN = Path("-")
_READS_STDIN = "watchkeeper.streams.adapters.messages.adapter:StdinLog"


def open_log(path: Path | str, recordings: Recordings | None = None) -> Source:
    """The reader for a file, told by its first bytes and otherwise by its name. Raises LogError.

    `-` is standard input. `recordings` is that section of a configuration.
    """
    path = Path(path)
    if path == STDIN:
        return Fenced(path, resolve(_READS_STDIN)())
    known = format_of(path)
    opener: Callable[..., Source] = resolve(known.reader)
    with unforeseen(path):
        return Fenced(path, opener(path, recordings) if known.chooses and recordings else opener(path))


def format_of(path: Path) -> Format:
    """What kind of log a file is. Raises LogError."""
    # a folder with a description is what ROS 2 records into
    folder = path.is_dir() and (path / "metadata.yaml").exists()
    head = b"" if folder else first_bytes(path, HEAD_BYTES)
    name = f"{path.name}.db3" if folder else path.name.lower()
    by_magic = [f for f in formats() if f.magic and head.startswith(f.magic)]
    for known in by_magic or [f for f in formats() if name.endswith(f.suffixes)]:
        if all(part in head for part in known.holds):
            return known
    declared = (known for adapter in discover().values() for known in adapter.formats)
    endings = ", ".join(dict.fromkeys(suffix for f in declared for suffix in f.suffixes))
    raise LogError(path, f"not a log that we can read (known endings: {endings})")


def read_logs(
    sources: Sequence[Source], *, chunk: int | None = None, start: float = -math.inf, stop: float = math.inf
) -> Iterator[Batch]:
    """The samples of all logs as one stream; in batches of `chunk` samples if that is given."""
    merged = merge_by_time([source.batches(start=start, stop=stop) for source in sources])
    return merged if chunk is None else rechunk(merged, chunk)
