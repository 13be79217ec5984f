"""Replay: the one loop that puts finished input through the Pipeline. Pure: no I/O, no wall clock.

    batches → Pipeline.feed … → Pipeline.finish → alarm events

`events_of` is the loop as a generator; `Replay` counts what passes, for a summary. The command `replay`, the
evaluations and the Python API use one of the two. Batches are pulled one at a time, so memory does not grow with the
input. The events depend on the samples and the configuration only: not on speed, chunk size or machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.coverage.table import Tally as Coverage
from watchkeeper.detectors.engine.pipeline import OnEvidence, Pipeline
from watchkeeper.detectors.fleet.reasons import CODE_OF, words
from watchkeeper.detectors.incidents.fold import Tally, counted
from watchkeeper.streams.batch import Batch

# Digits after the point in the span of a summary: a microsecond.
SPAN_DIGITS = 6
# Detectors that judge whether samples come, not what they say.
ARRIVAL = frozenset({"link", "silence"})


def events_of(pipeline: Pipeline, batches: Iterable[Batch], *, finish: bool = True) -> Iterator[AlarmEvent]:
    """The events of all batches, in order, and then those of the end of the input (not without `finish`)."""
    for batch in batches:
        yield from pipeline.feed(batch)
    if finish:
        yield from pipeline.finish()


class Replay:
    """One run. `listeners` get each alarm event in order, `watchers` each tick's window and evidence."""

    def __init__(self, config: Config, *on_event: Callable[[AlarmEvent], None]) -> None:
        self.pipeline = Pipeline(config, on_evidence=self._tick)
        self.events: Counter[tuple[str, str]] = Counter()
        self.raised = Tally()
        self.t_first, self.t_last = math.inf, -math.inf
        self.listeners = list(on_event)
        self.watchers: list[OnEvidence] = []

    def run(self, batches: Iterable[Batch]) -> None:
        """Put everything through the pipeline, to the end."""
        self._emit(events_of(self.pipeline, batches))

    def feed(self, batch: Batch) -> None:
        """One batch."""
        self._emit(self.pipeline.feed(batch))

    def finish(self) -> None:
        """The input has ended."""
        self._emit(self.pipeline.finish())

    def _emit(self, events: Iterable[AlarmEvent]) -> None:
        for event in events:
            self.events[event.kind, event.state] += 1
            self.raised.take(event)
            for listener in self.listeners:
                listener(event)

    def _tick(self, window: Window, evidence: list[Evidence]) -> None:
        for samples in window.samples.values():
            self.t_first = min(self.t_first, float(samples.t.min()))
            self.t_last = max(self.t_last, float(samples.t.max()))
        for watcher in self.watchers:
            watcher(window, evidence)

    def outcome(self) -> Outcome:
        """Where the pipeline is."""
        pipeline = self.pipeline
        # who is expected, and what became of them: only where somebody is
        network = None
        if pipeline.fleet.declared.any and pipeline.incidents is not None:
            network = pipeline.incidents.network.listing(pipeline.watermark)
        return Outcome(
            detectors=sorted(detector.declaration.name for detector in pipeline.detectors),
            samples=pipeline.samples, drops=pipeline.drops, active=pipeline.active.values(),
            span=(self.t_first, self.t_last), ticks=pipeline.ticks, tallies=pipeline.guard.coverage.tallies(),
            troubles=pipeline.guard.troubles(), network=network,
        )  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """What went in, what was refused and what came out, ready for JSON."""
        return summary_of(self.outcome(), self.events, self.raised)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What there is to say at the end of a run, of one pipeline or of several that share the work."""

    detectors: list[str]
    samples: Counter[str]
    drops: Counter[tuple[str, str]]
    active: Iterable[AlarmEvent]
    span: tuple[float, float]
    ticks: int
    tallies: dict[str, Coverage]
    troubles: list[str]
    network: list[dict[str, Any]] | None = None


def summary_of(outcome: Outcome, events: Counter[tuple[str, str]], raised: Tally) -> dict[str, Any]:
    """A run for JSON. `alarms` has every event; `raised` and `active` count alarms as people read them."""
    active = counted(outcome.active)
    t_first, t_last = outcome.span
    spanned = t_first <= t_last
    network = {} if outcome.network is None else {"topology": outcome.network}
    return {
        "detectors": outcome.detectors,
        "samples": dict(sorted(outcome.samples.items())),
        "drops": _nested(outcome.drops),
        "alarms": _nested(events),
        "raised": raised.count.alarms,
        "symptoms": raised.count.symptoms,
        "active": active.alarms,
        "active_symptoms": active.symptoms,
        "span": {
            "t_first": t_first if spanned else None,
            "t_last": t_last if spanned else None,
            "seconds": round(t_last - t_first, SPAN_DIGITS) if spanned else 0.0,
        },
        "ticks": outcome.ticks,
        "coverage": {name: asdict(tally) for name, tally in sorted(outcome.tallies.items())},
        "troubles": outcome.troubles,
        **network,
    }


def coverage_words(outcome: Outcome) -> str:
    """Who was judged by whom, and who not and why, in one line."""
    tallies = {name: tally for name, tally in sorted(outcome.tallies.items()) if tally.vehicles}
    judged = ", ".join(f"{name} {tally.words()}" for name, tally in tallies.items())
    return f"vehicles judged: {judged or 'none'}" + "".join(f"; {said}" for said in outcome.troubles)


def unjudged_words(outcome: Outcome) -> list[str]:
    """Which vehicles which detectors did not judge, or only in part, and why: a heading and a line each; or nothing.

    "0 alarms" means that all is well only where these lines are absent.
    """
    tallies = {name: tally for name, tally in sorted(outcome.tallies.items()) if tally.vehicles}
    if not tallies:
        return ["nothing was judged: there is no sample in it that a detector judges"]
    rows: dict[tuple[str, str, int, tuple[str, ...]], list[str]] = {}
    for detector, tally in tallies.items():
        for how, counts in (("not judged", tally.not_judged), ("judged only in part", tally.partly)):
            for reason, n in sorted(counts.items()):
                rows.setdefault((how, reason, n, tuple(tally.examples[reason])), []).append(detector)
    if not rows:
        return []
    judged = {name for name, tally in tallies.items() if tally.judged}
    only = (
        f"nothing was judged but that samples arrive ({', '.join(sorted(judged))})" if judged else "nothing was judged"
    )
    heading = "not everything was judged" if judged - ARRIVAL else only
    lines = [
        f"  {', '.join(names)}{f' and {n - len(names):,} more' if n > len(names) else ''}: {how} by "
        f"{', '.join(detectors)}: {words(CODE_OF[reason])}"
        for (how, reason, n, names), detectors in rows.items()
    ]
    return [f"{heading}: no alarm does not mean that all is well", *lines]


def _nested(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), n in sorted(counts.items()):
        nested.setdefault(outer, {})[inner] = n
    return nested
