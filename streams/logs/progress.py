"""A progress bar for long work over logs: on a terminal only, silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import Source


def shown(batches: Iterable[Batch], sources: Sequence[Source], what: str, *, hidden: bool = False) -> Iterator[Batch]:
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
