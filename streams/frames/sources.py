"""Whatever a user has, as sources: paths, frames, simulations, open logs, or several of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from narwhals.typing import IntoDataFrame

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.frames.read import FrameLog, is_frame
from watchkeeper.streams.logs.chunks import select_time
from watchkeeper.streams.logs.source import Source, SourceInfo, open_log


@runtime_checkable
class Made(Protocol):
    """Something that makes batches, such as a simulation."""

    def batches(self) -> Iterator[Batch]:
        """All of them, from the start."""
        ...


Log: TypeAlias = str | PathLike[str] | Source | Made
"""A recording, as a path or open, or a simulation."""
Data: TypeAlias = Log | Sequence[Log] | IntoDataFrame | Mapping[str, object]
"""All that can be watched."""
FrameT = TypeVar("FrameT", bound=IntoDataFrame)


class _MadeLog:
    """A simulation that reads like a log."""

    def __init__(self, made: Made) -> None:
        self._made = made
        self.position = 0

    def info(self) -> SourceInfo:
        """Nothing is known of its size."""
        return SourceInfo(Path(f"<{type(self._made).__name__.lower()}>"), "made", 0, ())

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:  # noqa: ARG002
        """As they are made."""
        whole = start == -math.inf and stop == math.inf
        for batch in self._made.batches():
            selected = batch if whole else select_time(batch, start, stop)
            if len(selected):
                yield selected


def sources_of(data: object, recordings: Recordings | None = None) -> list[Source]:
    """Open everything. Raises LogError for a file, FrameError for a frame, TypeError for what is neither."""
    if isinstance(data, (list, tuple)) and data:
        return [source for part in data for source in sources_of(part, recordings)]
    if isinstance(data, (str, PathLike)):
        return [open_log(Path(data), recordings)]
    # before what has batches: so may a frame, as a column
    if is_frame(data):
        return [FrameLog(data)]
    if hasattr(data, "batches") and hasattr(data, "info"):
        return [cast("Source", data)]
    if isinstance(data, Made):
        return [_MadeLog(data)]
    kinds = "a frame (pandas, Polars, pyarrow), a dictionary of columns, a path, an open log or a simulation"
    raise TypeError(f"{type(data).__name__} cannot be watched; allowed: {kinds}, or a list of paths")
