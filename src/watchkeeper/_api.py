"""The functions of the Python API: `watch` and `scores`. `watchkeeper/__init__.py` re-exports them.

Both drive the one Pipeline by the one loop (detectors/engine/replay.py), so that a frame, a log and the daemon give the
same alarms for the same samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from watchkeeper._alarms import Alarms
from watchkeeper.config.guests import discover
from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.detectors.fleet.reasons import CODE_OF, words
from watchkeeper.streams.frames.cells import Clock
from watchkeeper.streams.frames.read import FrameLog
from watchkeeper.streams.frames.sources import FrameT, Log, sources_of
from watchkeeper.streams.frames.write import NUMBER, TEXT, Backend, backend_of, frame_of, time_cells, time_type
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, read_logs


@overload
def watch(data: Log | Sequence[Log] | Mapping[str, object], *, config: Config | None = None) -> Alarms[Any]: ...
@overload
def watch(data: FrameT, *, config: Config | None = None) -> Alarms[FrameT]: ...
def watch(data: Any, *, config: Config | None = None) -> Alarms[Any]:
    """The alarms in a recording: what the daemon would have raised.

    `data` is a frame (pandas, Polars, pyarrow, or anything that gives an Arrow stream), a dictionary of columns, the
    path of a log, a log from `open_log`, a simulation from `simulate`, or a list of logs, which are merged by time. A
    frame has the columns of the messages: `id`, `t` (Unix seconds or dates), and for aircraft `lat`, `lon`, `alt_ft`,
    `gs_kt`, `trk_deg`, `vs_fpm`; docs/python.md lists all. Its rows are taken in order of time.

    Raises LogError for a file, FrameError (a ValueError) for a frame that cannot be used.

    >>> import watchkeeper as wk
    >>> two = {"t": [0, 0, 1, 1], "id": ["a", "b"] * 2, "lat": [50.0] * 4, "lon": [8.0, 8.01] * 2}
    >>> wk.watch(two).samples
    {'adsb': 4}
    """
    settings = _config(config)
    sources = sources_of(data, settings.recordings)
    pipeline = Pipeline(settings)
    judged: set[str] = set()

    def look(_window: Window, evidence: list[Evidence]) -> None:
        judged.update(found.kind for found in evidence if len(found))

    pipeline.on_evidence = look
    events = list(events_of(pipeline, shown(read_logs(sources), sources, "watching")))
    not_judged = _not_judged(pipeline, judged)
    return Alarms(
        events,
        samples=pipeline.samples,
        drops=pipeline.drops + sum((log.drops for log in _frames(sources)), Counter[tuple[str, str]]()),
        not_judged=not_judged,
        coverage=_coverage(pipeline),
        judged=_judged_in_part(pipeline, not_judged),
        problems=[f"{info.path}: {problem}" for info in (s.info() for s in sources) for problem in info.problems],
        clock=_clock(sources),
        backend=backend_of(data),
        reported=lambda path: _report(sources, settings, path),
    )


def _report(sources: Sequence[Source], config: Config, path: Path) -> None:
    # here, not above: whoever wants alarms only need not wait for what makes pages
    from watchkeeper.daemon.report.make import report, write  # noqa: PLC0415

    logs = ", ".join(repr(str(source.info().path)) for source in sources)
    write(report(sources, config, [f"watchkeeper.watch({logs}).report({str(path)!r})"]), path)


@overload
def scores(
    data: Log | Sequence[Log] | Mapping[str, object], *, config: Config | None = None, backend: Backend | None = None
) -> Any: ...
@overload
def scores(data: FrameT, *, config: Config | None = None, backend: None = None) -> FrameT: ...
@overload
def scores(data: FrameT, *, config: Config | None = None, backend: Backend) -> Any: ...
def scores(data: Any, *, config: Config | None = None, backend: Backend | None = None) -> Any:
    """A frame of all scores before debouncing: `t`, `kind`, `subject`, `score`, `threshold`.

    A score at or over its threshold is evidence for an alarm; N measurement epochs in a row make one. Of pairs only
    those that come near each other are in it. Takes what `watch` takes; `backend` names the library of the result.

    >>> import watchkeeper as wk
    >>> found = wk.scores(wk.simulate("head-on", seed=1, seconds=120), backend="polars")
    >>> found.columns
    ['t', 'kind', 'subject', 'score', 'threshold']
    >>> sorted(set(found["kind"]))[:2]
    ['conflict', 'kinematics']
    """
    settings = _config(config)
    sources = sources_of(data, settings.recordings)
    ledger = _Ledger(Pipeline(settings))
    for _ in events_of(ledger.pipeline, shown(read_logs(sources), sources, "scoring")):
        pass
    return ledger.frame(_clock(sources), backend or backend_of(data))


class _Ledger:
    """Keeps every row of evidence of a pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        pipeline.on_evidence, pipeline.every_tick = self._tick, True
        self._kinds: list[str] = []
        self._subjects: list[str] = []
        self._numbers: list[NDArray[np.float64]] = [np.empty((3, 0))]

    def _tick(self, _window: Window, evidence: list[Evidence]) -> None:
        ids = self.pipeline.fleet.ids
        for found in evidence:
            names: Sequence[str] = found.places or ids
            if found.b is None:
                subjects = [names[a] for a in found.a.tolist()]
            else:
                subjects = ["~".join((ids[a], ids[b])) for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)]
            self._subjects += subjects
            self._kinds += [found.kind] * len(found)
            self._numbers.append(np.stack((found.t, found.score, found.threshold)))

    def frame(self, clock: Clock, backend: Backend | None) -> Any:
        t, score, threshold = np.concatenate(self._numbers, axis=1)
        columns = {
            "t": time_cells(t.tolist(), clock),
            "kind": self._kinds,
            "subject": self._subjects,
            "score": score,
            "threshold": threshold,
        }
        schema = {"t": time_type(clock), "kind": TEXT, "subject": TEXT, "score": NUMBER, "threshold": NUMBER}
        return frame_of(columns, schema, backend)


def _config(config: Config | str | Path | None) -> Config:
    # detectors of other packages too: silence must mean that they look as well
    discover()
    if isinstance(config, Config):
        return config
    return load(None if config is None else Path(config))


def _coverage(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Of each vehicle at the end and each detector that it sends something for: judged or why not, since when."""
    table = pipeline.guard.coverage
    return [
        {"id": name, "detector": detector, **row, "say": words(CODE_OF[row["reason"]])}
        for name, slot in sorted(pipeline.fleet.slot_of.items())
        for detector, row in table.of(slot, final=True).items()
        if row["reason"] != "not_applicable"
    ]


def _judged_in_part(pipeline: Pipeline, not_judged: Mapping[str, str]) -> dict[str, str]:
    """In words, who of the vehicles was not judged, or not in every way, by detectors that judged others."""
    silent = {d.declaration.name for d in pipeline.detectors if any(k.name in not_judged for k in d.declaration.kinds)}
    return {
        name: tally.words()
        for name, tally in sorted(pipeline.guard.coverage.tallies().items())
        if (tally.not_judged or tally.partly) and name not in silent
    }


def _frames(sources: Sequence[Source]) -> list[FrameLog]:
    return [source for source in sources if isinstance(source, FrameLog)]


def _clock(sources: Sequence[Source]) -> Clock:
    """How times are written: as in the frame, where there is one."""
    return next((log.clock for log in _frames(sources)), "seconds")


def _not_judged(pipeline: Pipeline, judged: set[str]) -> dict[str, str]:
    """Why there can be no alarm of a kind, where that is known."""
    found: dict[str, str] = {}
    tallies = pipeline.guard.coverage.tallies()
    for name, kind in ((d.declaration.name, kind) for d in pipeline.detectors for kind in d.declaration.kinds):
        tally = tallies[name]
        groups = [[stream.word for stream in group] for group in kind.needs]
        missing = [" or ".join(group) for group in groups if not any(pipeline.samples[word] for word in group)]
        if not pipeline.samples.total():
            found[kind.name] = "no samples"
        elif missing:
            found[kind.name] = ", ".join(f"no {words}" for words in missing)
        elif tally.vehicles and not tally.judged:
            found[kind.name] = f"vehicles judged: {tally.words()}"
        elif len(groups) > 1 and kind.name not in judged:
            found[kind.name] = f"too little {' and '.join(' or '.join(group) for group in groups)} of one vehicle"
    return found
