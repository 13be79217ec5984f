"""A replay whose vehicles are judged by several processes: the same alarms, on as many cores as there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from types import TracebackType

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.coverage.table import Tally as Coverage
from watchkeeper.detectors.engine.replay import Outcome, summary_of
from watchkeeper.detectors.incidents.fold import Tally
from watchkeeper.engines.workers.figures import Figures
from watchkeeper.engines.workers.workers import Workers
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join

# A turn costs a few hundred microseconds whatever is in it, so small batches go together; joining costs as well.
TURN_SAMPLES = 8_192


class SpreadReplay:
    """One run with so many workers; the face of a Replay as far as files and words are made of it."""

    def __init__(self, config: Config, workers: int, on_event: Callable[[AlarmEvent], None]) -> None:
        self.config, self._number, self._listener = config, workers, on_event
        self.events: Counter[tuple[str, str]] = Counter()
        self.raised = Tally()
        self.figures: list[Figures] = []
        self._outcome: Outcome | None = None

    def __enter__(self) -> SpreadReplay:
        self._workers = Workers(self.config, self._number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.close()

    def run(self, batches: Iterable[Batch]) -> None:
        """Put everything through, to the end. WorkerError: a worker has ended or failed."""
        workers = self._workers
        try:
            for batch in _turns(batches):
                self._emit(workers.feed(batch))
            self._emit(workers.finish())
        except KeyboardInterrupt:
            self._emit(workers.settle())
            raise
        finally:
            if not workers.failed:
                self.figures = workers.figures()
                self._outcome = _outcome(workers, self.figures)

    def _emit(self, events: Iterable[AlarmEvent]) -> None:
        for event in events:
            self.events[event.kind, event.state] += 1
            self.raised.take(event)
            self._listener(event)

    def outcome(self) -> Outcome:
        """Where the workers were at the end."""
        if self._outcome is None:
            raise RuntimeError("the workers have not come to an end")
        return self._outcome

    def summary(self) -> dict[str, object]:
        """See Replay; `workers` says what each has used."""
        used = {f.name: {"cpu_s": f.cpu_s, "peak_rss_mb": f.peak_mb, "vehicles": f.vehicles} for f in self.figures}
        return summary_of(self.outcome(), self.events, self.raised) | {"workers": used}


def _outcome(workers: Workers, figures: list[Figures]) -> Outcome:
    vehicles = figures[:-1]
    drops = Counter(workers.drops)
    for one in vehicles:
        drops.update({(kind, reason): n for kind, reason, n in one.drops})
    names = dict.fromkeys(name for one in vehicles for name in one.tallies)
    tallies = {name: reduce(Coverage.plus, (Coverage(**one.tallies[name]) for one in vehicles)) for name in names}
    merge = workers.merge
    network = None
    if merge.scene.fleet.declared.any and merge.incidents is not None:
        network = merge.incidents.network.listing(merge.watermark)
    return Outcome(
        detectors=sorted({name for one in figures for name in one.detectors}),
        samples=workers.samples, drops=drops, active=list(workers.active.values()), span=workers.front.span,
        ticks=max(one.ticks for one in figures), tallies=tallies,
        troubles=sorted({trouble for one in figures for trouble in one.troubles}), network=network,
    )  # fmt: skip


def _turns(batches: Iterable[Batch]) -> Iterator[Batch]:
    waiting: list[Batch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= TURN_SAMPLES:
            yield waiting[0] if len(waiting) == 1 else join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)
