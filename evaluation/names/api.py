"""Every attack through the whole pipeline, incidents and all: what is each of them called, and how sure is that?

The name that stands when an attack ends is what counts; the first one and how often it changed are kept next to it.
Only attacks that raise an alarm are judged. Flights that took part in the fit are told apart from those that did not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.detectors.incidents.by_pattern import OF_NAME
from watchkeeper.evaluation.attacks.catalogue import Attack, AttackError, check_room
from watchkeeper.evaluation.attacks.flight import Flight, FlightData, flights_in
from watchkeeper.evaluation.names.truth import NAME_OF
from watchkeeper.evaluation.protocol.cases import plan
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.run import ANY_CLOCK_S, WAIT_S, Through
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame

# Bins of the reliability diagram.
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COLUMNS = {"flight": TEXT, "attack": TEXT, "family": TEXT, "repeat": COUNT, "truth": TEXT, "first": TEXT, "last": TEXT,
           "pattern": TEXT, "confidence": NUMBER, "names": COUNT, "after_s": NUMBER, "right": FLAG,
           "fitted": FLAG}  # fmt: skip
# Samples of detectors that say something about one vehicle's sensors.
KINDS = ("gps_imu", "silence", "link")
log = logging.getLogger(__name__)


class Named(msgspec.Struct, frozen=True):
    """One attack that raised an alarm."""

    flight: str
    attack: str
    family: str
    repeat: int
    truth: str
    """Fault type."""
    first: str
    last: str
    """Fault types that were said: the first, and the one that stood at the end of the attack."""
    pattern: str
    """The finer name that stood there; empty where the diagnosis came from elsewhere."""
    confidence: float
    names: int
    """How many different names were said in all."""
    after_s: float
    """From the alarm to the first name."""

    @property
    def right(self) -> bool:
        """Whether the last name is the right one."""
        return self.last == self.truth


class Bin(msgspec.Struct, frozen=True):
    """A bar of the reliability diagram."""

    low: float
    high: float
    cases: int
    confidence: float | None
    right: float | None


class Result(msgspec.Struct, frozen=True):
    """All attacks that were named, and the alarms without any name."""

    named: list[Named]
    unnamed: int
    fitted: list[str]
    """Flights that took part in the fit of the coefficients."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"bins": msgspec.to_builtins(bins(self.named))}

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per attack that was named; `fitted`: its flight took part in the fit."""
        rows = [{**msgspec.to_builtins(n), "right": n.right, "fitted": n.flight in self.fitted} for n in self.named]
        return rows_frame(rows, COLUMNS, backend)


def roomy(flights: Sequence[Flight], attacks: Sequence[Attack]) -> list[Flight]:
    """Flights in which the attacks have room, begun at t = 0; the others are named in the log."""
    found = []
    for flight in flights:
        try:
            for attack in attacks:
                check_room(attack, flight)
        except AttackError as error:
            log.warning("%s: left out", error)
        else:
            found.append(flight.from_zero())
    return found


def names(
    flights: FlightData | Sequence[Flight], attacks: Sequence[Attack], config: Config = DEFAULT, *, repeats: int = 1,
    fitted: Sequence[str] = (), through: Through | None = None,
) -> Result:  # fmt: skip
    """Run all attacks that have a name in these flights.

    `flights` are a folder of logs, a frame of vehicles, or frames and logs by name; those without room for the attacks
    are left out, with a line in the log.

    >>> from watchkeeper.evaluation.attacks.catalogue import catalogue
    >>> names("recordings/", catalogue().attacks).to_frame()  # doctest: +SKIP
    >>> from watchkeeper.evaluation.protocol.splits import Recipe, simulated
    >>> (found,) = names([simulated("quad-1", Recipe(901, 150))], [catalogue().find("gps_bias_20m")]).named
    >>> found.last, found.pattern, found.right
    ('gps_spoofing', 'spoofing', True)
    """
    attacks = [attack for attack in attacks if attack.family in NAME_OF]
    chosen = plan((), roomy(flights_in(flights), attacks), attacks, repeats)
    if not chosen.variants:
        raise EvaluationError("nothing to name: no flight that is long enough for the attacks")
    pipeline = Pipeline(_roomy_config(config, len(chosen.variants)))
    slices = batches(chosen.variants, strict=True)
    fed = through(slices, sum(v.samples for v in chosen.variants)) if through else slices
    heard: dict[int, list[AlarmEvent]] = {}
    for event in events_of(pipeline, fed):
        if event.kind in ("gps_imu", "incident"):
            heard.setdefault(int(event.subjects[0]), []).append(event)
    found: list[Named] = []
    unnamed = 0
    for i, (variant, repeat) in enumerate(zip(chosen.variants, chosen.repeats, strict=True)):
        named = _named(variant, repeat, heard.get(i, []))
        unnamed += named is False
        if isinstance(named, Named):
            found.append(named)
    return Result(found, unnamed, list(fitted))


def _roomy_config(config: Config, vehicles: int) -> Config:
    """The configuration with room for every variant, of which many are named at once."""
    replace = msgspec.structs.replace
    sections = {n: replace(s, enabled=n in KINDS) for n, s in config.detectors.sections().items()}
    return replace(
        config,
        detectors=config.detectors.replaced(sections),
        time=replace(config.time, lateness_s=WAIT_S, clock_tolerance_s=ANY_CLOCK_S),
        fleet=replace(config.fleet, max_vehicles=vehicles + vehicles // 8 + 8, evict_idle_s=86_400.0),
        limits=replace(config.limits, pending_samples=100_000_000),
        alarms=replace(config.alarms, max_active=max(4 * vehicles, 8)),
        diagnosis=replace(config.diagnosis, per_tick=1000, max_incidents=max(vehicles, config.diagnosis.max_incidents)),
    )


def _named(variant: Variant, repeat: int, events: Sequence[AlarmEvent]) -> Named | bool:
    """What one attack was called; False: an alarm without a name, True: no alarm, or one from before."""
    made = variant.injection
    assert made is not None
    alarms = [e for e in events if e.kind == "gps_imu"]
    raised = [e.t_raised for e in alarms if made.t_start <= e.t_raised <= made.t_end]
    if not raised or any(e.t_raised < made.t_start and (e.t_cleared or np.inf) > made.t_start for e in alarms):
        return True
    said = [
        (e.t, e.diagnosis) for e in events
        if e.kind == "incident" and e.diagnosis is not None and min(raised) <= e.t <= made.t_end + WAIT_S
    ]  # fmt: skip
    if not said:
        return False
    first, last = said[0][1], said[-1][1]
    patterns = [entry["pattern"] for entry in last["evidence"] if "pattern" in entry]
    return Named(
        variant.flight.id, made.attack.name, made.attack.family, repeat, OF_NAME[NAME_OF[made.attack.family]][0],
        first["type"], last["type"], patterns[0] if patterns else "", last["confidence"],
        len({(d["type"], d["location"]) for _, d in said}), said[0][0] - min(raised),
    )  # fmt: skip


def bins(named: Sequence[Named]) -> list[Bin]:
    """The reliability diagram: how sure, and how often right."""
    found = []
    for low, high in pairwise(EDGES):
        own = [n for n in named if low <= n.confidence < high or (high == 1.0 == n.confidence)]
        mean = float(np.mean([n.confidence for n in own])) if own else None
        found.append(Bin(low, high, len(own), mean, float(np.mean([n.right for n in own])) if own else None))
    return found
