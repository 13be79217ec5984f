"""What the API is asked and answers, as types: OpenAPI is made from them.

Times are event time in Unix seconds unless a name says otherwise. A number that is not known is null. Alarm events are
passed on exactly as they were published, so that a field of a newer version is there too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct, field

from watchkeeper.daemon.live.shelves import Area, Shelf
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.incidents.clues import Vocabulary

Time = Annotated[float, Meta(ge=-1e11, le=1e11, description="event time, Unix seconds")]
EraNumber = Annotated[int, Meta(ge=0, le=2**53, description="which time axis, see `timeline`; without it the newest")]
Limit = Annotated[int, Meta(ge=1, le=1000, description="at most so many on one page")]
Cursor = Annotated[str, Meta(max_length=400, description="`next` of the page before")]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
Step = Annotated[float, Meta(ge=0, le=86_400, description="at most one sample in so many seconds; 0: all of them")]


class Query(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters of a path."""


# -- alarms -----------------------------------------------------------------------------------------------------


class AlarmQuery(Query, frozen=True):
    """Which alarms, in which order."""

    kind: Annotated[list[Word], Meta(max_length=32, description="of these kinds, separated by commas")] = field(
        default_factory=list
    )
    severity: Annotated[
        list[Literal["advisory", "caution", "warning"]],
        Meta(max_length=3, description="whose highest was one of these"),
    ] = field(default_factory=list)
    subject: Annotated[str, Meta(max_length=256, description="about this vehicle, or place")] | None = None
    state: (
        Annotated[Literal["raised", "updated", "cleared"], Meta(description="whose last event has this state")] | None
    ) = None
    active: Annotated[bool, Meta(description="true: those that go on; false: those that ended")] | None = None
    text: (
        Annotated[str, Meta(max_length=200, description="whose sentence, kind, id or subjects contain this")] | None
    ) = None
    t0: Annotated[Time, Meta(description="that were not over before this time")] | None = None
    t1: Annotated[Time, Meta(description="that were raised up to this time")] | None = None
    at: (
        Annotated[Time, Meta(description="that were active at this moment, each with what was known of it then")] | None
    ) = None
    era: EraNumber | None = None
    symptoms: (
        Annotated[
            bool,
            Meta(description="false: without symptoms of an incident, which is what people count; true: only those"),
        ]
        | None
    ) = None
    shelved: Annotated[bool, Meta(description="true: only those on a shelf; false: without them")] | None = None
    sort: Literal["t_raised", "t_last", "severity", "kind", "score"] = "t_raised"
    order: Literal["desc", "asc"] = "desc"
    limit: Limit = 100
    cursor: Cursor | None = None
    format: Annotated[
        Literal["json", "csv"], Meta(description="csv: a table to download; also by `Accept: text/csv`")
    ] = "json"


class Ack(Struct, frozen=True):
    """Who looks after an alarm, and since when by the wall clock; `given` false: that was taken back."""

    by: str
    t_wall: float
    given: bool = True


class AlarmRow(Struct, frozen=True, kw_only=True):
    """One alarm. `severity` and `score` (over its threshold) are the highest that it had, `event` is its last event."""

    id: str
    era: int
    kind: str
    state: str
    severity: str
    subjects: list[str]
    t_onset: float
    t_raised: float
    t_cleared: float | None
    t: float
    score: float | None
    say: str
    events: int
    acknowledged: Ack | None
    shelved: str | None
    """The shelf that it is on."""
    event: AlarmEvent


class AlarmPage(Struct, frozen=True):
    """One page of alarms. `total` counts all pages, `shelved` those of this page that are on a shelf.

    `symptoms` of `total` are explained by an incident: what people count is `total` less these.
    """

    alarms: list[AlarmRow]
    total: int
    symptoms: int
    shelved: int
    next: str | None


class AlarmLifeQuery(Query, frozen=True):
    """Up to when."""

    t: Annotated[Time, Meta(description="only what was known at this moment")] | None = None
    era: EraNumber | None = None


class AlarmLife(Struct, frozen=True):
    """All events of an alarm, and who acknowledged it."""

    alarm: AlarmRow
    events: list[AlarmEvent]
    acknowledgements: list[Ack]


class Acknowledge(Struct, frozen=True, forbid_unknown_fields=True):
    """An acknowledgement."""

    by: Annotated[str, Meta(max_length=256, description="your name; empty: the name of the token")] = ""
    on: Annotated[bool, Meta(description="false takes it back")] = True


class Accept(Struct, frozen=True, forbid_unknown_fields=True):
    """A state that lasts is as it should be."""

    by: Annotated[str, Meta(max_length=256)] = ""


# -- shelves ----------------------------------------------------------------------------------------------------


Reason = Annotated[str, Meta(max_length=500, description="why, for those who wonder later")]
Minutes = Annotated[float, Meta(gt=0, le=43_200, description="for how long, by the wall clock; 30 days at most")]


class ShelveAlarm(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Put an alarm on a shelf: `what` says whether only this one, or all about the same subjects, or of its kind."""

    minutes: Minutes
    reason: Reason = ""
    by: Annotated[str, Meta(max_length=256)] = ""
    what: Literal["alarm", "subjects", "vehicle", "kind"] = "alarm"


class NewShelf(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule: alarms that fit all that is given are shelved until it expires. At least one thing must be given."""

    minutes: Minutes
    reason: Reason = ""
    by: Annotated[str, Meta(max_length=256)] = ""
    alarm: Annotated[str, Meta(max_length=64, description="one alarm by id")] | None = None
    vehicle: Annotated[str, Meta(max_length=256, description="alarms in which this vehicle takes part")] | None = None
    pair: Annotated[list[str], Meta(min_length=2, max_length=2, description="alarms about these two")] | None = None
    kind: Annotated[str, Meta(max_length=64, description="alarms of this kind")] | None = None
    area: Area | None = None


class Shelves(Struct, frozen=True):
    """What is shelved now."""

    shelves: list[Shelf]
    shelved_alarms: int
    """Active alarms that are on one of them, without symptoms of incidents that are too."""


# -- vehicles ---------------------------------------------------------------------------------------------------


class VehicleQuery(Query, frozen=True):
    """Which vehicles, and when."""

    t: Annotated[Time, Meta(description="as they were at this moment, from the history; without it now")] | None = None
    era: EraNumber | None = None
    text: Annotated[str, Meta(max_length=200, description="whose id or callsign contains this")] | None = None
    limit: Annotated[int, Meta(ge=1, le=20_000)] = 5000
    cursor: Cursor | None = None


# thousands in one answer: the collector need not look at each
class VehicleRow(Struct, frozen=True, kw_only=True, gc=False):
    """One vehicle: where it is, how fast, its highest score over a threshold, and who watches it."""

    id: str
    callsign: str
    kind: Literal["adsb", "gps", "local"]
    t: float
    age_s: float
    lat: float | None
    lon: float | None
    north_m: float | None
    east_m: float | None
    alt_m: float | None
    speed_mps: float | None
    track_deg: float | None
    climb_mps: float | None
    on_ground: bool
    score: float | None
    score_kind: str | None
    alarms: int
    """Active ones about it, without symptoms of incidents that are about it too."""
    not_watched: list[str]
    """Detectors that should judge it and do not, each with the reason: `gps_imu: no_imu`. Now only."""


class VehiclePage(Struct, frozen=True):
    """Vehicles by id."""

    vehicles: list[VehicleRow]
    t: float | None
    total: int
    next: str | None


class VehicleDetail(Struct, frozen=True, kw_only=True):
    """One vehicle: `now` is what the live page shows of it, the rest is from the history."""

    id: str
    callsign: str
    now: dict[str, Any] | None
    t_first: float | None
    t_last: float | None
    era: int | None
    alarms: int


class SpanQuery(Query, frozen=True):
    """From when to when, and how finely."""

    t0: Annotated[Time, Meta(description="from; without it an hour before t1")] | None = None
    t1: Annotated[Time, Meta(description="to; without it the newest")] | None = None
    step: Step | None = None
    era: EraNumber | None = None


class Track(Struct, frozen=True, kw_only=True):
    """Where a vehicle was, as columns of equal length: `lat`, `lon`, or in a local frame `north_m`, `east_m`."""

    id: str
    era: int
    step_s: float
    t: list[float]
    lat: list[float | None]
    lon: list[float | None]
    north_m: list[float | None]
    east_m: list[float | None]
    alt_m: list[float | None]
    speed_mps: list[float | None]
    track_deg: list[float | None]
    climb_mps: list[float | None]
    score: list[float | None]


class Channels(Struct, frozen=True, kw_only=True):
    """Columns over time, by alarm kind or channel: the highest since the sample before."""

    id: str
    era: int
    step_s: float
    unit: str
    t: list[float]
    columns: dict[str, list[float | None]]
    meaning: dict[str, str]


class WatchChange(Struct, frozen=True):
    """What was watched of a vehicle from t on."""

    t: float
    coverage: dict[str, Any]


class WatchHistory(Struct, frozen=True):
    """All changes of what was watched of a vehicle."""

    id: str
    changes: list[WatchChange]


# -- the whole --------------------------------------------------------------------------------------------------


class MomentQuery(Query, frozen=True):
    """A moment of the past."""

    t: Annotated[Time, Meta(description="without it the newest")] | None = None
    era: EraNumber | None = None


class TimelineQuery(Query, frozen=True):
    """Which part, and in how many steps."""

    t0: Time | None = None
    t1: Time | None = None
    steps: Annotated[int, Meta(ge=1, le=2000)] = 200
    era: EraNumber | None = None


class EraExtent(Struct, frozen=True):
    """One time axis. A clock that went back for good begins another."""

    era: int
    t_first: float
    t_last: float


class TimelineStep(Struct, frozen=True):
    """Alarms that were raised from t on, up to the next step, without symptoms of incidents."""

    t: float
    alarms: int
    by_severity: dict[str, int]
    by_kind: dict[str, int]


class Timeline(Struct, frozen=True, kw_only=True):
    """How far the history reaches, and when alarms were raised; steps without alarms are left out."""

    eras: list[EraExtent]
    era: int | None
    t0: float | None
    t1: float | None
    step_s: float
    steps: list[TimelineStep]


class Ready(Struct, frozen=True):
    """Whether alarms can be relied on, and if not why; `warnings` are what else is wrong."""

    ready: bool
    reasons: list[str]
    warnings: list[str]
    version: str


class NotWatched(Struct, frozen=True):
    """A vehicle that a detector should judge and does not."""

    id: str
    detector: str
    reason: str
    say: str
    since_t: float | None
    partly: bool


class WatchState(Struct, frozen=True, kw_only=True):
    """What is watched: vehicles by detector and reason, and who is not, up to a limit."""

    t: float | None
    detectors: list[str]
    counts: dict[str, dict[str, int]]
    troubles: list[str]
    not_watched: list[NotWatched]
    total: int


class Settings(Struct, frozen=True):
    """The configuration in use; secrets are `(hidden)`."""

    config: dict[str, Any]
    hidden: list[str]
    """Keys that are set and not shown."""


class FactField(Struct, frozen=True):
    """A field of an alarm's evidence."""

    name: str
    unit: str
    meaning: str


class KindInfo(Struct, frozen=True, kw_only=True):
    """One kind of alarm, from its declaration."""

    name: str
    help: str
    safety: bool
    threshold: float | None
    causes: dict[str, str]
    accepts: list[str]
    evidence: list[FactField]


class Kinds(Struct, frozen=True):
    """Every kind of alarm there is, and words for what diagnoses call by a short name."""

    kinds: list[KindInfo]
    diagnoses: Vocabulary


class Glossary(Struct, frozen=True):
    """The words of alarms and of what is not watched, each with its meaning."""

    kinds: dict[str, str]
    severities: list[str]
    states: list[str]
    endings: dict[str, str]
    not_watched: dict[str, str]


# -- replay -----------------------------------------------------------------------------------------------------


class Seek(Struct, frozen=True, forbid_unknown_fields=True):
    """To this moment."""

    t: Time


class Speed(Struct, frozen=True, forbid_unknown_fields=True):
    """How many times faster than it was."""

    speed: Annotated[float, Meta(gt=0, le=10_000)]


class Pause(Struct, frozen=True, forbid_unknown_fields=True):
    """Stand still, or go on."""

    on: bool = True


class StepBy(Struct, frozen=True, forbid_unknown_fields=True):
    """So many seconds on, or back."""

    seconds: Annotated[float, Meta(ge=-86_400, le=86_400)] = 1.0


class ReplayState(Struct, frozen=True, kw_only=True):
    """Where the playback is, and how far the log has been read into the history."""

    t: float | None
    speed: float
    paused: bool
    t_first: float | None
    t_last: float | None
    read: bool
    """The whole log is in the history."""


def whole(event: bytes) -> AlarmEvent:
    """An event's own bytes in the place of an event: they are passed on as they are."""
    return cast(AlarmEvent, msgspec.Raw(event))
