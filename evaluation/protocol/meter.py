"""A progress bar for flights that run through the pipeline: on a terminal only, silent in a pipe.

Called by api.py and by the evaluation of biases that last (evaluation/lasting/command.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from watchkeeper.evaluation.protocol.run import Through
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import SourceInfo


class _Progress:
    """Stands in for a log, of which the progress bar asks how much has been read."""

    def __init__(self, total: int) -> None:
        self.position, self._total = 0, total

    def info(self) -> SourceInfo:
        """Its size is counted in samples."""
        return SourceInfo(Path("flights"), "flights", self._total, ())


def meter(*, hidden: bool) -> Through:
    """What `run` passes its batches through."""

    def through(batches: Iterator[Batch], total: int) -> Iterator[Batch]:
        seen = _Progress(total)

        def counted() -> Iterator[Batch]:
            for batch in batches:
                seen.position += len(batch)
                yield batch

        return shown(counted(), [seen], "evaluating", hidden=hidden)

    return through
