"""A progress bar for long work over logs: on a terminal only, silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import SourceInfo


class Measured(Protocol):
    """What a bar needs to know of a source: how large it is and how much of it has been read, in one unit."""

    @property
    def position(self) -> int:
        """How much of it has been read."""
        ...

    def info(self) -> SourceInfo:
        """Its size, among others."""
        ...


def shown(batches: Iterable[Batch], sources: Sequence[Measured], what: str, *, hidden: bool = False) -> Iterator[Batch]:
    """The same batches; meanwhile a bar says how much of the files has been read, and how many samples."""
    console = Console(file=sys.stderr)
    if hidden or not console.is_terminal:
        yield from batches
        return
    samples = 0
    total = sum(source.info().size_bytes for source in sources)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[n]:,} samples"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total, n=0)
        for batch in batches:
            samples += len(batch)
            progress.update(task, completed=sum(source.position for source in sources), n=samples)
            yield batch
