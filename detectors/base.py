"""What a detector is: it sees one window of samples per tick and answers with evidence. Nothing else detects.

Life cycle, all calls from one thread, in this order, driven by the Pipeline:
`Detector(config, fleet)` once; then for each tick `step(window)`; `forget(slots)` before slots are reused;
`snapshot()` / `restore()` between ticks; `retune(config)` when thresholds change, which keeps all state.

Rules: score first, learn after, and do not learn from what is being called anomalous. No wall clock, no I/O,
no randomness without a fixed seed: the same windows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.guests import add_section, remove_section
from watchkeeper.config.schema import Config
from watchkeeper.detectors.declaration import Declaration, Ended
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.messages import Kind

# Places watched at once, per alarm kind; each is an area of the map, so the whole Earth has room.
MAX_PLACES = 1000
SEVERITIES: tuple[str, ...] = ("advisory", "caution", "warning")


@dataclass(frozen=True, slots=True)
class Window:
    """Everything that was measured in (t - tick_s, t]. The fleet already contains these samples."""

    t: float
    samples: dict[Kind, Samples]


@dataclass(frozen=True, slots=True)
class Hindsight:
    """For each row of evidence the worst of the latest moments: when, how bad (-inf: not known), and its numbers.

    Of two moments the one of the larger rank is worse. Numbers that are not given are those of the row.
    """

    t: F8
    rank: F8
    numbers: dict[str, F8]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Scores of one alarm kind: one row per subject and measurement epoch, sorted by (subject, epoch).

    Subjects are vehicles (`a` is a slot), pairs (`a` and `b` are) or places (`a` is an index into `places`, the
    names). `t` is when the statement holds, `epoch` when its newest measurement was
    made: the debouncer counts a subject's row only if its epoch is newer than the last one counted, so a
    measurement used twice is one piece of evidence. A row is anomalous when score >= threshold.
    `sparse` evidence names only the anomalous subjects: a subject that is missing is at score 0 now.
    `numbers` goes into the alarm's evidence, and so does a row's entry of `details`, for what is no number; bit i of
    `cause_bits` says that `causes[i]` applies. Rows that are `news` are told at once if their alarm is active.
    `ended`: names of places that are no more, each with how its alarm ended. Rows that are `taken_as_normal` are under
    the threshold only because a new state was taken as normal: an alarm that ends with one says so. `hindsight`: the
    worst moments so far as they are known by now, where the rows themselves are not at them. `further`: evidence that
    takes long to work out, of the row with this number; asked in the same tick, for rows whose alarm is raised or
    updated.
    """

    kind: str
    a: I4
    t: F8
    epoch: F8
    score: F8
    threshold: F8
    severity: U1
    b: I4 | None = None
    numbers: dict[str, F8] = field(default_factory=dict)
    causes: tuple[str, ...] = ()
    cause_bits: I8 | None = None
    sparse: bool = False
    places: tuple[str, ...] = ()
    details: tuple[dict[str, Any], ...] = ()
    news: Bool | None = None
    ended: dict[str, Ended] = field(default_factory=dict)
    taken_as_normal: Bool | None = None
    hindsight: Hindsight | None = None
    further: Callable[[int], dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.a)


class Detector(Protocol):
    """See the module's docstring for the life cycle."""

    declaration: ClassVar[Declaration]
    """Name, settings, alarm kinds, gauges and a scenario; see declaration.py."""

    def __init__(self, config: Config, fleet: Fleet) -> None: ...

    def step(self, window: Window) -> list[Evidence]:
        """Score this window, then learn from it."""
        ...

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots: other vehicles will get them."""
        ...

    def retune(self, config: Config) -> None:
        """Take new thresholds, keep all state."""
        ...

    def gauges(self) -> dict[str, float]:
        """Figures of the last step, for Prometheus: name (with unit) to value."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """State as nested dicts of arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        ...


@runtime_checkable
class AcceptingDetector(Detector, Protocol):
    """A detector with states that last until a person accepts them."""

    def accept(self, slot: int) -> bool:
        """Take the vehicle's present state as normal; False when nothing lasts there."""
        ...


@runtime_checkable
class PlaceDetector(Detector, Protocol):
    """A detector whose subjects are places: it names them, so after a restart it must know the names in use."""

    def adopt(self, place: str, t_onset: float, t: float, evidence: dict[str, Any]) -> None:
        """An alarm about this place was active at t, with this evidence; called before the first `step`."""
        ...


@runtime_checkable
class Covering(Detector, Protocol):
    """A detector that knows itself whom it judges. Of any other that follows from the streams that its kinds need."""

    def coverage(self, t: float) -> U1:
        """For every slot below `fleet.high` a code of detectors/fleet/reasons.py; asked about once a second."""
        ...

    def explain(self, slot: int) -> str:
        """More about why this vehicle is not judged, for a person; empty when the reason says it all."""
        ...


@runtime_checkable
class Resting(Detector, Protocol):
    """A detector that knows how long it has nothing to say without new samples. Any other sees every tick."""

    def quiet_until(self, t: float) -> float:
        """After the step at t: ticks without samples that end before this time would change nothing that counts.

        In each of them every subject would be where it was in this step, over its threshold or under it, with the same
        severity, or would not be named; and `coverage` would say the same. The pipeline leaves such ticks out, so that
        a log costs by its samples and not by its span. `t` or less: ask again after the next tick; inf: never.
        """
        ...


@runtime_checkable
class Heavy(Detector, Protocol):
    """A detector with kernels that take long to compile, which can be compiled apart and at the same time as others."""

    def kernels(self) -> list[Callable[[], object]]:
        """Calls that compile them, the longest first, with arguments of the right types and nothing to do."""
        ...


REGISTRY: dict[str, type[Detector]] = {}
D = TypeVar("D", bound=type[Detector])


def register(detector: D) -> D:
    """Class decorator: makes a detector known under its name, and its settings a part of the configuration.

    TypeError: its declaration is not complete. ValueError: its name, or that of one of its kinds, is taken.
    """
    declared: Declaration | None = getattr(detector, "declaration", None)
    if not isinstance(declared, Declaration):
        raise TypeError(f"{detector.__name__}: a detector has a class attribute `declaration` (see declaration.py)")
    if problems := list(declared.problems()):
        raise TypeError(f"{detector.__name__}: {'; '.join(problems)}")
    if REGISTRY.get(declared.name) is detector:
        return detector
    taken = {kind.name for known in REGISTRY.values() for kind in known.declaration.kinds}
    if double := taken & {kind.name for kind in declared.kinds}:
        raise ValueError(f"{detector.__name__}: alarms of the kind {', '.join(sorted(double))} exist already")
    own = Detectors().sections()
    for name, section in declared.sections():
        if type(own.get(name)) is not section:
            add_section("detectors", name, section)
    REGISTRY[declared.name] = detector
    return detector


def unregister(name: str) -> None:
    """Forget a detector from outside, for tests and notebooks."""
    known = REGISTRY.pop(name, None)
    if known is not None:
        for section, _ in known.declaration.sections():
            remove_section("detectors", section)


def next_after(times: F8, t: float) -> float:
    """The first of these times that is at t or later; inf when there is none.

    >>> next_after(np.array([3.0, 9.0, np.nan, 7.0]), 5.0)
    7.0
    """
    return float(np.min(times, where=times >= t, initial=np.inf))


def full(n: int, value: float) -> F8:
    """A constant column, for thresholds and the like."""
    return np.full(n, value)
