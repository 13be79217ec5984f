"""From logs to a report: the pipeline once over everything, then the page.

`report` runs a replay by itself; `Recorder` looks on at one that somebody else runs (`watchkeeper replay --report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from watchkeeper.config.schema import Config
from watchkeeper.daemon.compiling import prepare
from watchkeeper.daemon.report.gather.collect import Collector
from watchkeeper.daemon.report.html import page
from watchkeeper.daemon.report.result import Result
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, read_logs
from watchkeeper.streams.logs.told import told_by


class Recorder:
    """Looks on at a replay, from before its first batch; `result` once it has ended."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._collector = Collector(enu=replay.pipeline.config.frames.local == "enu")
        self._collector.follow(replay)

    def result(self, sources: Sequence[Source], command: Sequence[str], *, interrupted: bool = False) -> Result:
        """What was found in these logs."""
        self._collector.finish()
        told = [told_by(source) for source in sources]
        return Result(
            config=self._replay.pipeline.config,
            collector=self._collector,
            replay=self._replay,
            infos=[source.info() for source in sources],
            told={one.vehicle: one for one in told if one.vehicle},
            command=command,
            interrupted=interrupted,
        )


def report(sources: Sequence[Source], config: Config, command: Sequence[str], *, what: str = "reporting") -> Result:
    """Run the logs through the pipeline, with a bar on a terminal."""
    replay = Replay(config)
    recorder = Recorder(replay)
    batches = read_logs(sources)
    first = next(batches, None)
    if first is not None:
        prepare(config, first.kinds)
        batches = chain([first], batches)
    replay.run(shown(batches, sources, what))
    return recorder.result(sources, command)


def write(result: Result, path: Path) -> None:
    """The page of a result."""
    path.write_text(page(result), encoding="utf-8")
