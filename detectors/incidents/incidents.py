"""Incidents: alarms with one cause become one, with one diagnosis.

An alarm that rises opens an incident or joins one: of the same vehicle, or, within `join_s`, with the same symptom
behind the same gateway. After `settle_s` the diagnoser looks into it with the live tools, again as long as alarms join
or answers may change, and whenever its answer changes the incident and all its alarms are told.

Where sensors contradict each other and nothing else is wrong, the answer changes with what they go on to show. It is
told once it is clear, or at the last look, and stands until another alarm joins: an incident is not called one thing
and then another. Until then the alarm stands alone.

An incident lives like an alarm, of the kind `incident`: raised with its first diagnosis, updated, cleared when the last
of its alarms is. Its subjects are those of its first alarm, so its id is stable. Called by the pipeline once per tick;
pure, event time only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import repeat
from math import inf, isinf
from typing import Any, TypeVar

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import (
    CLEARED,
    RAISED,
    UPDATED,
    AlarmBook,
    AlarmEvent,
    Finding,
    event_of,
    plain_event,
)
from watchkeeper.detectors.base import SEVERITIES, Detector
from watchkeeper.detectors.declaration import Ended
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.by_pattern import accused_by, by_pattern, likely, outweighs
from watchkeeper.detectors.incidents.clock import Memory, Situation
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.diagnoser import Diagnosis, Rule, investigate
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.live_tools import LiveTools
from watchkeeper.detectors.incidents.network import LiveNetwork
from watchkeeper.detectors.incidents.scan import GpsLook
from watchkeeper.detectors.incidents.tools import SYMPTOMS, Symptom
from watchkeeper.detectors.incidents.topology import Topology
from watchkeeper.detectors.link.detector import LinkDetector
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.periods import periods_until, reaches

# Alarms about one vehicle's telemetry; conflicts are about what aircraft do, not about what is broken.
DIAGNOSED = frozenset({"silence", "link", "gps_imu"})
# Incidents are looked into at ticks that reach a multiple of this, in seconds of event time: by then what the looks
# need has been brought together from wherever it is.
LOOK_S = 1.0
# An answer this probable that is found again stands until another alarm joins; a pattern this clear is told at once.
SETTLED = 0.9
# Below this probability an IMU is not accused by its pattern alone where the vehicle sends its attitude: forces and
# velocities are compared then. Chosen: a slow pull of the GPS and an accelerometer bias look alike at first, up to 0.83
# in the scenario `spoof`.
UNSURE = 0.85
LATE = frozenset({"latency", "early"})
# What alarms say when fixes stop, and nothing else does: a stream that falls silent has lost its rate as well.
OF_A_STOP = {"silence": ["gps"], "link": ["gps_rate"]}
Key = tuple[str, tuple[str, ...]]
T = TypeVar("T")


def _raise(_subjects: str, error: Exception) -> None:
    raise error


@dataclass(slots=True)
class Case:
    """One incident: its alarms by (kind, subjects), and how far the diagnosis has come."""

    subjects: tuple[str, ...]
    t_open: float
    t_joined: float
    gateway: int
    alarms: dict[Key, AlarmEvent]
    words: set[str]
    due_t: float
    tries: int = 0
    said: bool = False
    diagnosis: dict[str, Any] | None = None
    leading: tuple[str, str] = ("", "")
    """Type and location that the last look found, while another may take their place."""
    memory: Memory = field(default_factory=Memory)


def link_stats(detectors: Iterable[Detector]) -> LinkStats | None:
    """The statistics that the link detector keeps; None when it is switched off."""
    return next((detector.stats for detector in detectors if isinstance(detector, LinkDetector)), None)


class Incidents:
    """All open incidents."""

    def __init__(
        self, config: Config, fleet: Fleet, stats: LinkStats, book: AlarmBook, gateways: Mapping[str, int]
    ) -> None:
        self._fleet, self._stats, self._book = fleet, stats, book
        # numbers of the samples' `via`; the pipeline adds to them as they come
        self._gateways = gateways
        self.cases: list[Case] = []
        self.refused = 0
        # told of what raises: one incident that cannot be diagnosed must not cost the others
        self.on_error: Callable[[str, Exception], None] = _raise
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new settings."""
        self._config, self._frames, self._tick_s = config.diagnosis, config.frames, config.time.tick_s
        self._rule = Rule(sure=config.diagnosis.sure)

    def step(self, t: float, events: Sequence[AlarmEvent]) -> list[AlarmEvent]:
        """Take in one tick's alarm events; the events of incidents, and of alarms that now have a diagnosis."""
        for event in events:
            if event.kind in DIAGNOSED:
                self._safely(event.subjects, partial(self._take, event))
        told: list[AlarmEvent] = self._risen(t, events)
        looks = reaches(t, self._tick_s, LOOK_S)
        due = [case for case in self.cases if case.alarms and case.due_t <= t] if looks else []
        due.sort(key=lambda case: (case.due_t, case.subjects))
        for case in due[: self._config.per_tick]:
            found = self._safely(case.subjects, partial(self._diagnose, case, t))
            if found is None:
                case.due_t = inf  # not again before another alarm joins
            told += found or []
        for case in [case for case in self.cases if not case.alarms]:
            told += self._safely(case.subjects, partial(self._close, case, t)) or []
        return told

    def quiet_until(self) -> float:
        """When the next incident is to be looked into."""
        due_t = min((case.due_t for case in self.cases), default=inf)
        return due_t if isinf(due_t) else periods_until(due_t, LOOK_S) * LOOK_S

    def _safely(self, subjects: tuple[str, ...], work: Callable[[], T]) -> T | None:
        """None when it raises, which is told with the names of the incident."""
        try:
            return work()
        except Exception as error:
            self.on_error(" and ".join(subjects), error)
            return None

    def follow(self, stats: LinkStats) -> None:
        """The link detector was started again: its statistics are others now."""
        self._stats = stats

    # -- grouping -------------------------------------------------------------------------------------------

    def _take(self, event: AlarmEvent) -> None:
        key = (event.kind, event.subjects)
        case = next((c for c in self.cases if key in c.alarms), None)
        if event.state == CLEARED:
            if case is not None:
                del case.alarms[key]
            return
        if case is not None:
            case.alarms[key] = event
            return
        words = {symptom.word for symptom in symptoms_of([event], self._streams)}
        gateway = self._gateway(event)
        case = self._home(event, words, gateway)
        wait_t = event.t + self._config.settle_s
        if case is None:
            if len(self.cases) >= self._config.max_incidents:
                self.refused += 1
                return
            self.cases.append(Case(event.subjects, event.t, event.t, gateway, {key: event}, words, wait_t))
            return
        case.alarms[key] = event
        case.words |= words
        case.t_joined = event.t
        case.tries = 0
        case.due_t = min(case.due_t, wait_t) if case.due_t > event.t else wait_t

    def _home(self, event: AlarmEvent, words: set[str], gateway: int) -> Case | None:
        """The incident that an alarm belongs to: its vehicle's own first."""
        for case in self.cases:
            if any(subjects == event.subjects for _, subjects in case.alarms):
                return case
        for case in self.cases:
            near = gateway >= 0 and case.gateway == gateway and event.t - case.t_joined <= self._config.join_s
            if near and words & case.words:
                return case
        return None

    def _gateway(self, event: AlarmEvent) -> int:
        """The number of the gateway that an alarm's vehicle is behind, -1 for none."""
        slot = self._fleet.slot_of.get(event.subjects[0], -1)
        return int(self._stats.home(self._gateways)[slot]) if slot >= 0 else -1

    @property
    def _streams(self) -> tuple[str, ...]:
        return tuple(kind.word for kind in self._stats.kinds)

    # -- the diagnosis --------------------------------------------------------------------------------------

    def _diagnose(self, case: Case, t: float) -> list[AlarmEvent]:
        cfg = self._config
        case.tries += 1
        case.due_t = t + cfg.retry_s if case.tries <= cfg.retries else inf
        vehicles = {subjects[0] for _, subjects in case.alarms}
        network = self.network
        topology = network.around(vehicles)
        known = [s for s in symptoms_of(case.alarms.values(), self._streams) if s.sensor in topology]
        now = self._situation(case, topology, t)
        tools = LiveTools(self._fleet, self._stats, network, topology, self._frames, now, case.memory)
        named = self._named(case, tools)
        found = named or investigate(tools, topology, known, self._rule).diagnosis()
        if found is not None and found.confidence >= cfg.sure and not now.contradicted:
            # nothing to wait for: only where sensors contradict each other the story goes on for a while
            case.due_t = inf
        before = case.diagnosis
        if found is not None and before is not None and named is None:
            # one look at the forces may contradict the one before; the pattern has seen what was between
            pattern = case.memory.likely.get(case.subjects[0], {})
            answer = found.type, found.location
            if answer != _answer(before) and not outweighs(answer, _answer(before), pattern, cfg.switch_odds):
                found = None
        if found is not None:
            newest = msgspec.to_builtins(found)
            newest["evidence"] += network.remarks(vehicles)
            waits = all(kind == "gps_imu" for kind, _ in case.alarms)
            if waits and before is None and not self._clear(case, newest, by_pattern=named is not None):
                case.leading = _answer(newest)
                return []
            case.diagnosis = keep_name(before, newest, cfg.switch_odds)
            case.due_t = inf if waits else case.due_t
        same = _answer(before) == _answer(case.diagnosis)
        if same and case.said and not self._joined(case):
            if found is not None and found.confidence >= SETTLED and not now.contradicted:
                # twice the same: a third look would only give chance another chance
                case.due_t = inf
            return []
        return self._tell(case, t)

    def _clear(self, case: Case, found: dict[str, Any], *, by_pattern: bool) -> bool:
        """Whether the answer to a contradiction may be told: it is probable, or so at two looks, or there is no other.

        One look at the forces is never enough: it compares a few seconds.
        """
        if isinf(case.due_t) or (by_pattern and found["confidence"] >= SETTLED):
            return True
        rival = max((rival["confidence"] for rival in found["alternatives"]), default=0.0)
        return case.leading == _answer(found) and found["confidence"] >= self._config.switch_odds * rival

    def _named(self, case: Case, tools: LiveTools) -> Diagnosis | None:
        """The diagnosis by the pattern of one vehicle's sensors, if nothing else can be at fault."""
        events = {kind: event for (kind, _), event in case.alarms.items()}
        own, known = events.get("gps_imu"), case.memory.likely
        (vehicle, *_), *others = {subjects for _, subjects in case.alarms}
        if others or tools.misread(vehicle):
            return None
        # a stream that stops may be the end of the contradiction; one that stopped before is another story
        stops = [events[kind] for kind in OF_A_STOP if kind in events]
        silent = bool(stops) and all(event.evidence.get("causes") == OF_A_STOP[event.kind] for event in stops)
        if "link" in events and not silent:
            return None
        if own is not None:
            if any(event.t_onset < own.t_onset for event in stops):
                return None
            known[vehicle] = {f"{name}_p": p for name, p in likely(own.evidence).items()}
        elif not silent:
            return None
        found = by_pattern(vehicle, known.get(vehicle, {}), silent=silent)
        unsure = found is not None and found.type == "imu_fault" and found.confidence < UNSURE
        if unsure and tools.sees_forces(vehicle):
            return None
        return found

    def _situation(self, case: Case, topology: Topology, t: float) -> Situation:
        """What the alarms are about, of those vehicles that are still known."""
        contradicted, late_t, lossy = set(), {}, False
        for (kind, (vehicle, *_)), event in case.alarms.items():
            if vehicle not in topology:
                continue
            causes = set(event.evidence.get("causes", ()))
            if kind == "gps_imu":
                contradicted.add(vehicle)
                if accused := accused_by(event.evidence):
                    case.memory.accused[vehicle] = accused
            elif kind == "link":
                lossy |= bool(causes - LATE)
                if causes & LATE:
                    late_t[vehicle] = event.t_onset
        return Situation(t, frozenset(contradicted), late_t, lossy)

    def _risen(self, t: float, events: Sequence[AlarmEvent]) -> list[AlarmEvent]:
        """Events of incidents that one of these alarms makes more severe, at once."""
        severe = {(e.kind, e.subjects): SEVERITIES.index(e.severity) for e in events if e.kind in DIAGNOSED}
        told = []
        for case in self.cases if severe else ():
            own = self._book.active.get((INCIDENT, case.subjects))
            if own is not None and max(map(severe.get, case.alarms, repeat(-1)), default=-1) > SEVERITIES.index(
                own.severity
            ):
                told.append(self._book.still(self._finding(case, t), news=True))
        return [event for event in told if event is not None]

    def _finding(self, case: Case, t: float) -> Finding:
        worst = max((event.severity for event in case.alarms.values()), key=SEVERITIES.index)
        alarms = sorted(event.id for event in case.alarms.values())
        return Finding(INCIDENT, case.subjects, t, float(len(alarms)), 1.0, worst, {"alarms": alarms})

    def _tell(self, case: Case, t: float) -> list[AlarmEvent]:
        """The incident's own event, and every alarm of it with the diagnosis."""
        finding = self._finding(case, t)
        own = self._book.still(finding, news=True) if case.said else self._book.raised(finding, case.t_open)
        told = [] if own is None else [self._book.attach(own, case.diagnosis)]
        case.said = True
        for key in sorted(case.alarms):
            active = self._book.active.get(key)
            if active is not None:
                state = UPDATED if active.state == RAISED else active.state
                fresh = msgspec.structs.replace(active, state=state, t=max(active.t, t))
                told.append(self._book.attach(fresh, case.diagnosis, told[0].id if told else active.incident))
        return told

    def _joined(self, case: Case) -> bool:
        """Whether an alarm of an incident does not know yet that it belongs to it."""
        return any((active := self._book.active.get(key)) is not None and not active.incident for key in case.alarms)

    def _close(self, case: Case, t: float) -> list[AlarmEvent]:
        self.cases.remove(case)
        event = self._book.end(INCIDENT, case.subjects, t, "alarms_cleared") if case.said else None
        return [] if event is None else [event]

    def end(self, t: float, ended: Ended) -> list[AlarmEvent]:
        """Everything is over: end all incidents."""
        told = [self._book.end(INCIDENT, case.subjects, t, ended) for case in self.cases]
        self.cases = []
        return [event for event in told if event is not None]

    # -- life beyond one process ----------------------------------------------------------------------------

    def reconcile(self, events: Iterable[AlarmEvent], changed: Set[Key]) -> None:
        """Agree with a journal, which has these last events; the alarms that it has changed are in the book by now.

        What it does not change stays as it is, down to when it will be looked into again. An incident that only the
        journal knows is opened as far as its event tells.
        """
        book = self._book
        told = {event.subjects: event for event in events if event.kind == INCIDENT and event.state != CLEARED}
        for case in self.cases:
            own = ((key, event) for key, event in case.alarms.items() if key in book.active)
            case.alarms = {key: book.active[key] if key in changed else event for key, event in own}
        self.cases = [case for case in self.cases if case.alarms and (case.subjects in told or not case.said)]
        known = {case.subjects: case for case in self.cases}
        for subjects, event in told.items():
            if subjects not in known:
                self._adopt(event)
            elif (INCIDENT, subjects) in changed:
                known[subjects].said, known[subjects].diagnosis = True, event.diagnosis
                book.adopt(event)
        open_now = {case.subjects for case in self.cases}
        for key in [key for key in book.active if key[0] == INCIDENT and key[1] not in open_now]:
            del book.active[key]  # none of its alarms is active any more
        taken = {key for case in self.cases for key in case.alarms}
        for key in sorted(changed - taken):
            if key[0] in DIAGNOSED and key in book.active:
                # opened when it was raised, so that the incident has the id that it would have had
                self._take(msgspec.structs.replace(book.active[key], t=book.active[key].t_raised))

    def _adopt(self, event: AlarmEvent) -> None:
        ids = set(event.evidence.get("alarms", ()))
        alarms = {key: alarm for key, alarm in self._book.active.items() if alarm.id in ids}
        if not alarms:
            return
        words = {symptom.word for symptom in symptoms_of(alarms.values(), self._streams)}
        case = Case(event.subjects, event.t_onset, event.t, self._gateway(event), alarms, words, inf)
        case.said, case.diagnosis = True, event.diagnosis
        self.cases.append(case)
        self._book.adopt(event)

    def snapshot(self) -> dict[str, Any]:
        """All open incidents."""
        return {"cases": [_plain(case) for case in self.cases], "refused": self.refused}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.cases, self.refused = [_case(saved) for saved in state["cases"]], state["refused"]

    def gauges(self) -> dict[str, float]:
        """How many incidents are open, of which fault types, how many alarms they hold, and how many found no room."""
        types = Counter(case.diagnosis["type"] for case in self.cases if case.diagnosis is not None)
        return {
            "open": float(len(self.cases)),
            "alarms": float(sum(len(case.alarms) for case in self.cases)),
            "refused": float(self.refused),
            **{fault_type: float(types[fault_type]) for fault_type in FAULT_TYPES},
        }

    @property
    def network(self) -> LiveNetwork:
        """All that is known of the network now."""
        return LiveNetwork(self._fleet, self._stats, self._gateways)


def symptoms_of(events: Iterable[AlarmEvent], streams: Sequence[str]) -> list[Symptom]:
    """What alarms say about streams: one symptom for each, the most telling where there are several."""
    found: dict[str, Symptom] = {}
    for event in events:
        vehicle = event.subjects[0]
        for stream, word, size in _said(event.kind, event.evidence, streams):
            sensor = f"{vehicle}/{stream}"
            before = found.get(sensor)
            if before is None or SYMPTOMS.index(word) < SYMPTOMS.index(before.word):
                found[sensor] = Symptom(sensor, word, size)
    return [found[sensor] for sensor in sorted(found)]


def _said(kind: str, evidence: Mapping[str, Any], streams: Sequence[str]) -> Iterable[tuple[str, str, float]]:
    """(stream, word, size) of each statement in an alarm's evidence."""
    causes = evidence.get("causes", [])
    if kind == "silence":
        yield from ((stream, "silence", 1.0) for stream in causes)
    elif kind == "gps_imu":
        blamed = accused_by(evidence) or "gps"
        yield blamed, blamed, 1.0
    else:
        excess_s = evidence.get("latency_excess_s") or 0.0
        for cause in causes:
            if cause in LATE:
                yield from ((stream, cause, excess_s) for stream in streams)
            else:
                stream, word = cause.rsplit("_", 1)
                yield stream, word, 1.0 - (evidence.get("rate_ratio") or 0.0)


def _plain(case: Case) -> dict[str, Any]:
    """A case as plain values, for a snapshot."""
    return {
        **{field.name: getattr(case, field.name) for field in fields(case)},
        "subjects": list(case.subjects),
        "alarms": [plain_event(event) for event in case.alarms.values()],
        "words": sorted(case.words),
        "memory": asdict(case.memory),
    }


def _case(saved: dict[str, Any]) -> Case:
    events = map(event_of, saved["alarms"])
    jumps = {vehicle: GpsLook(**look) for vehicle, look in saved["memory"]["jumps"].items()}
    return Case(
        **saved
        | {
            "subjects": tuple(saved["subjects"]),
            "leading": tuple(saved["leading"]),
            "alarms": {(event.kind, event.subjects): event for event in events},
            "words": set(saved["words"]),
            "memory": Memory(**saved["memory"] | {"jumps": jumps}),
        }
    )


def keep_name(before: Mapping[str, Any] | None, found: dict[str, Any], odds: float) -> dict[str, Any]:
    """The new diagnosis under the name of the one before, unless another is `odds` times as probable now."""
    if before is None or _answer(before) == _answer(found):
        return found
    rivals = found["alternatives"]
    kept = next((rival for rival in rivals if _answer(rival) == _answer(before)), None)
    if kept is None or found["confidence"] >= odds * kept["confidence"]:
        return found
    first = {name: found[name] for name in ("type", "location", "confidence")}
    return {**found, **kept, "alternatives": [first, *(rival for rival in rivals if rival is not kept)]}


def _answer(diagnosis: Mapping[str, Any] | None) -> tuple[str, str]:
    return ("", "") if diagnosis is None else (diagnosis["type"], diagnosis["location"])
