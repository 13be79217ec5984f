"""What a recorded log tells beyond its telemetry: flight modes, failsafes, messages, a receiver's own figures.

It is shown to people in reports. Nothing of it is judged, and no alarm depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.base import Source, one_line

What = Literal["mode", "armed", "failsafe"]
# As many messages and states of a log as a reader looks at, and as many characters of one.
MARKS_MAX, SPANS_MAX, WORDS_MAX = 200, 500, 160


@dataclass(frozen=True, slots=True)
class Span:
    """A state of the vehicle from `t` until `until_t`, in the log's time, as the autopilot calls it."""

    what: What
    word: str
    t: float
    until_t: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A message of the autopilot at one moment."""

    t: float
    words: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of numbers over time. `worst` says which end of it is bad."""

    name: str
    unit: str
    meaning: str
    t: F8
    value: F8
    worst: Literal["high", "low"] = "high"


@dataclass(frozen=True, slots=True)
class Told:
    """All of it, of one vehicle."""

    vehicle: str
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    figures: tuple[Figure, ...] = ()


NOTHING = Told("")


@runtime_checkable
class Telling(Protocol):
    """A source that has something to tell."""

    told: Told


def told_by(source: Source) -> Told:
    """What a source tells, whatever fence it stands behind."""
    inner = getattr(source, "source", source)
    return inner.told if isinstance(inner, Telling) else NOTHING


def spans_of(what: What, times: Sequence[float], words: Sequence[str], until_t: float) -> tuple[Span, ...]:
    """Spans from a state that is told again and again; an empty word is no state.

    >>> [(s.word, s.t, s.until_t) for s in spans_of("mode", [0.0, 1.0, 2.0], ["Hold", "Hold", "Land"], 3.0)]
    [('Hold', 0.0, 2.0), ('Land', 2.0, 3.0)]
    """
    starts = [i for i, word in enumerate(words) if i == 0 or word != words[i - 1]]
    ends = [times[i] for i in starts[1:]] + [max(until_t, times[-1])] if starts else []
    return tuple(
        Span(what, one_line(words[i])[:WORDS_MAX], times[i], end)
        for i, end in zip(starts, ends, strict=True)
        if words[i]
    )[:SPANS_MAX]


def mark(t: float, words: str) -> Mark:
    """A message as one line of printable characters."""
    return Mark(t, one_line(" ".join(words.split()))[:WORDS_MAX])
