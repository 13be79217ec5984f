"""What a detector declares about itself, once, in its own folder. Everything else about it is derived from this.

    settings         its section of the configuration: checked, listed, documented, reloaded
    kinds            the alarms it gives evidence for: meaning, evidence fields, a sentence for a person, threshold
    gauges           its figures, with their Prometheus names and help
    subjects         what its evidence is about
    scenario         telemetry that excites it: the conformance tests play it, before and after a restart

Metric names, the thresholds shown, the references, the live page's headlines, the dashboards, Home Assistant's classes,
warm-up and the conformance tests read these. A detector from another package declares the same and needs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from watchkeeper.config.section import Section
from watchkeeper.detectors.words import known, listed  # noqa: F401  packages of others import them from here
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

Subject = Literal["vehicle", "pair", "place"]
# How an alarm ended: the closed vocabulary of an event's `ended`, each with what it means to a person.
Ended = Literal[
    "cause_gone", "taken_as_normal", "out_of_sight", "forgotten", "accepted", "clock_reset", "alarms_cleared",
    "merged", "faded", "replaced", "not_resumed", "not_known",
]  # fmt: skip
ENDINGS: dict[Ended, str] = {
    "cause_gone": "back to normal",
    "taken_as_normal": "taken as normal, but it may go on",
    "out_of_sight": "no more evidence came, but it may go on",
    "forgotten": "not heard for so long that the vehicle was removed",
    "accepted": "a person accepted the state as it is",
    "clock_reset": "time went back for good and everything began again",
    "alarms_cleared": "every alarm of the incident has ended",
    "merged": "its area and an older one have become one",
    "faded": "no part of the area is affected any more",
    "replaced": "new settings draw other areas in its place",
    "not_resumed": "after a restart nothing follows it any more",
    "not_known": "the record of its end was damaged; how and when it ended is not known",
}
# How the name of a field of evidence ends for each unit, where that is not the unit itself.
UNIT_SUFFIX: dict[str, str] = {"m/s": "mps", "ft/min": "fpm", "NM": "nm"}
# What each unit of a figure's name is called in Prometheus, which spells base units out.
METRIC_UNITS: dict[str, str] = {"_s": "_seconds", "_m": "_meters", "_nm": "_nautical_miles"}


def fact(unit: str, meaning: str) -> Meta:
    """Unit and meaning of a field of evidence."""
    return Meta(description=meaning, extra={"unit": unit})


class Facts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evidence of one kind of alarm, typed. A number that is not known is None.

    Each kind has its own; `msgspec.convert(event.evidence, kind.facts)` reads an event's.
    """

    causes: Annotated[tuple[str, ...], fact("", "what is wrong, the kind's causes by name")] = ()
    unwatched: Annotated[
        str, fact("", "set while nobody can judge the alarm, which stays active meanwhile: why not")
    ] = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of evidence as the references show it."""

    name: str
    unit: str
    meaning: str

    @property
    def words(self) -> str:
        """The name for a person, without the unit.

        >>> Field("position_off_m", "m", "").words, Field("rate_ratio", "ratio", "").words
        ('position off', 'rate')
        """
        suffix = UNIT_SUFFIX.get(self.unit, self.unit)
        return self.name.removesuffix(f"_{suffix}").replace("_", " ")


@cache
def fields_of(facts: type[Facts]) -> tuple[Field, ...]:
    """The fields of a kind's evidence, its own first."""
    hints = get_type_hints(facts, include_extras=True)
    written = dict(zip(facts.__struct_fields__, facts.__struct_encode_fields__, strict=True))
    found = []
    for name in sorted(written, key=lambda name: name in Facts.__struct_fields__):
        meta = next((m for m in get_args(hints[name]) if isinstance(m, Meta)), None)
        if get_origin(hints[name]) is not Annotated or meta is None or not meta.description:
            raise TypeError(f"{facts.__name__}.{name}: say its unit and meaning with fact(unit, meaning)")
        found.append(Field(written[name], (meta.extra or {}).get("unit", ""), meta.description))
    return tuple(found)


# Subjects as a person calls them, and the kind's own Facts. The sentence names them, what is wrong and how much, each
# number with its unit (words.py); the time goes where it has words.WHEN, else to its end.
Say = Callable[[Sequence[str], Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmKind:
    """One kind of alarm.

    `say` makes one sentence for a person, without state or severity; `was` the same of an alarm that is over, with the
    figures of its worst moment (default: `say`). sentence.py adds times, diagnosis and end. `threshold` is the score
    that counts, from the settings of the kind. A kind that is about `safety` is dangerous now, any other a problem to
    look after. `settings` is the kind's section of the configuration if it is not the detector's own. `needs` are the
    streams without which nothing can be judged: of each group in it, one at least. `accepts` are the causes that last
    until a person accepts them (`Pipeline.accept`). An alarm's worst moment is that of its highest score; or of the
    least value of the figure `least`, a name among its numbers. `grows`: the score grows with time alone, also without
    samples.
    """

    name: str
    help: str
    facts: type[Facts]
    say: Say
    was: Say | None = None
    causes: dict[str, str] = field(default_factory=dict)
    threshold: Callable[[Any], float] = lambda _settings: 1.0
    threshold_most: Callable[[Any], float] | None = None
    """Where the threshold is another one for each row of evidence, the highest; `threshold` is the lowest."""
    safety: bool = False
    settings: type[Section] | None = None
    needs: tuple[tuple[Kind, ...], ...] = ()
    accepts: tuple[str, ...] = ()
    least: str = ""
    grows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A figure of a detector, and the metric that it becomes: watchkeeper_<metric>.

    `metric` is empty for the name by rule: <detector>_<name> with its unit spelt out. Figures that share a metric are
    told apart by `label`.
    """

    name: str
    help: str
    metric: str = ""
    counter: bool = False
    label: tuple[str, str] | None = None

    def metric_of(self, detector: str) -> str:
        """The metric's name without `watchkeeper_`.

        >>> Gauge(name="latency_max_s", help="").metric_of("link")
        'link_latency_max_seconds'
        """
        if self.metric:
            return self.metric
        stem, mark, suffix = f"{detector}_{self.name}".rpartition("_")
        return stem + METRIC_UNITS.get(mark + suffix, mark + suffix) + ("_total" if self.counter else "")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Telemetry in which there is something to find: `batches()` plays `seconds` of it, the same each time."""

    seconds: int
    batches: Callable[[], Iterable[Batch]]


def simulated(name: str, seconds: int, *, seed: int = 3, vehicles: int | None = None) -> Scenario:
    """A scenario of the simulator (`watchkeeper simulate list`)."""
    return Scenario(seconds, lambda: simulate(name, seed=seed, seconds=seconds, vehicles=vehicles).batches())


@dataclass(frozen=True, slots=True, kw_only=True)
class PerVehicle:
    """Where the vehicles are in a detector's snapshot, so that they can move between operators (engines/regroup/).

    `axes`: arrays with a place for each slot, by key (dotted where nested), and the axis of the slots. Where the
    snapshot has `rows`, it has those slots only. `buckets`: lists of [bucket, state]. `turns`: arrays whose axis before
    the last is written in turns, to the key of the number of turns so far. `newest`: the key that is highest in the
    snapshot of the operator that is ahead; what is not per vehicle is taken from that one. `gateways`: arrays of
    gateways' numbers.
    """

    axes: Mapping[str, int]
    buckets: tuple[str, ...] = ()
    turns: Mapping[str, str] = field(default_factory=dict)
    newest: str = ""
    gateways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Everything that others need to know of a detector.

    `looks_every_s` is for one that does not look at every tick: warm-up crosses a multiple of it. `state_version` goes
    up when a snapshot of the version before cannot be taken over any more: such a snapshot is refused for this detector
    alone, which then starts without its past. `scratch` are attributes (dotted where nested) that every step fills
    again before it reads them: they are no state, and the conformance tests do not miss them in a snapshot.
    `alone`: it judges each vehicle by that vehicle's own samples, or by what its bucket has in common
    (streams/split.py), so that vehicles may be spread over several operators (engines/). `per_vehicle` says how the
    snapshot of one that is `alone` is taken apart when the number of operators changes; without it, the detector starts
    without its past then.
    """

    name: str
    help: str
    settings: type[Section]
    subjects: Subject
    kinds: tuple[AlarmKind, ...]
    gauges: tuple[Gauge, ...]
    scenario: Scenario
    looks_every_s: Callable[[Any], float] = lambda _settings: 0.0
    state_version: int = 1
    scratch: tuple[str, ...] = ()
    alone: bool = False
    per_vehicle: PerVehicle | None = None

    def sections(self) -> Iterator[tuple[str, type[Section]]]:
        """The sections of the configuration that belong to it: its own, then those of its other kinds."""
        yield self.name, self.settings
        for kind in self.kinds:
            if kind.settings is not None:
                yield kind.name, kind.settings

    def problems(self) -> Iterator[str]:
        """What is missing or wrong, in words; nothing when the declaration is complete."""
        if not self.kinds:
            yield "it has no alarm kind"
        for kind in self.kinds:
            if kind.name != self.name and kind.settings is None:
                yield f"the kind {kind.name!r} has no settings of its own"
            if not kind.help:
                yield f"the kind {kind.name!r} has no help"
            try:
                names = {field.name for field in fields_of(kind.facts)}
            except TypeError as error:
                yield str(error)
            else:
                if kind.least and kind.least not in names:
                    yield f"the kind {kind.name!r} has no evidence {kind.least!r} to be least"
        for name, section in self.sections():
            missing = {"enabled", "debounce"} - set(section.__struct_fields__)
            if missing:
                yield f"the settings of {name!r} have no {' and no '.join(sorted(missing))}"
        for gauge in self.gauges:
            if not gauge.help:
                yield f"the gauge {gauge.name!r} has no help"
