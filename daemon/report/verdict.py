"""The verdict of a report, in words: what happened, how bad it was and when, and what could not be judged and why.

`verdict(findings)` is a pure function of what a replay found. Its tone is one of TONES. The rule above all others:
silence is called good only where somebody looked. A log of which nothing could be judged has a tone of its own, and so
has one of which only a part was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from watchkeeper.daemon.report.gather.lives import Group
from watchkeeper.daemon.report.words import count, lasted
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.coverage.declaration import WATCH, spoken
from watchkeeper.detectors.coverage.table import Tally
from watchkeeper.detectors.fleet.reasons import CODE_OF, words
from watchkeeper.detectors.incidents.fold import Count, counted
from watchkeeper.detectors.words import listed

Tone = Literal["warning", "caution", "advisory", "clean", "partly", "unjudged"]
# How many alarms and reasons the verdict tells one by one; the sections below it have all of them.
SENTENCES, REASONS = 3, 4
NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a verdict rests on.

    `raised`: how many alarms there were, those beyond `groups` too. `tallies`: by detector, who was judged. `arrival`
    are the detectors that look only at whether messages come, and `needs` the seconds of good data that a detector
    needs before it judges, where it says so.
    """

    seconds: float
    vehicles: int
    samples: int
    groups: Sequence[Group]
    raised: Count
    tallies: Mapping[str, Tally]
    arrival: frozenset[str] = frozenset()
    needs: Mapping[str, float] = field(default_factory=dict)
    callsigns: Mapping[str, str] = field(default_factory=dict)
    dropped: int = 0
    interrupted: bool = False
    troubles: Sequence[str] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`headline` is one sentence; `happened` tells the worst alarms, `unjudged` what nobody looked at, `notes` more."""

    tone: Tone
    headline: str
    happened: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def verdict(found: Findings) -> Verdict:
    """See the module's docstring."""
    told = [g for g in found.groups if g.head.first.kind != WATCH]
    content = {name: tally for name, tally in found.tallies.items() if name not in found.arrival and tally.vehicles}
    judged = max((tally.judged for tally in content.values()), default=0)
    gaps = {name: tally for name, tally in content.items() if tally.not_judged or tally.partly}
    unjudged = tuple(_unjudged(found, gaps)) + tuple(
        g.head.say for g in found.groups if g.head.first.kind == WATCH and g.head.active
    )
    notes = tuple(_notes(found, content))
    if told:
        rank = max(group.rank for group in told)
        return Verdict(SEVERITIES[rank], _headline(found, told), tuple(_happened(told)), unjudged, notes)  # type: ignore[arg-type]
    if not found.samples:
        return Verdict(
            "unjudged", "Nothing was judged: the log has no samples that could be used.", (), unjudged, notes
        )
    if not judged:
        heard = f"{lasted(found.seconds)} of {count(found.vehicles, 'vehicle')} were heard"
        return Verdict(
            "unjudged", f"Nothing could be judged, so no alarm means nothing here: {heard}.", (), unjudged, notes
        )
    span = lasted(found.seconds)
    if found.raised.alarms:
        about = f"{found.raised} about the watch itself in {span}"
        return Verdict("partly", f"{about}, no other: not everything was judged.", (), unjudged, notes)
    if gaps or found.troubles or found.interrupted:
        return Verdict("partly", f"No alarm in {span}, but not everything was judged.", (), unjudged, notes)
    return Verdict("clean", f"No alarm in {span}, and everything that could be judged was.", (), unjudged, notes)


def _headline(found: Findings, groups: Sequence[Group]) -> str:
    lives = [life for group in groups for life in (group.head, *group.alarms)]
    worst = max(lives, key=lambda life: life.rank).severity
    who = sorted({name for life in lives for name in life.first.subjects})
    about = _names(found, who) if len(who) <= NAMES else count(len(who), "vehicle")
    article = "an" if worst == "advisory" else "a"
    return f"{found.raised} about {about} in {lasted(found.seconds)}; the worst is {article} {worst}."


def _happened(groups: Sequence[Group]) -> list[str]:
    said = []
    by_kind = Counter(group.head.first.kind for group in groups)
    if by_kind.total() > SENTENCES:
        said.append(f"By kind: {listed([f'{n:,} {spoken(kind)}' for kind, n in by_kind.most_common()])}.")
    # one of each subject: a conflict and the loss of separation that follows tell the same story
    told: dict[tuple[str, ...], Group] = {}
    for group in groups:
        told.setdefault(group.head.first.subjects, group)
    for group in list(told.values())[:SENTENCES]:
        # an incident names the cause, its first alarm what was seen
        said += [life.say for life in (group.head, *group.alarms[:1])]
    active = counted(life.last for g in groups for life in (g.head, *g.alarms) if life.active).alarms
    if active:
        said.append(f"{count(active, 'alarm')} {'was' if active == 1 else 'were'} still active when the log ended.")
    return said


def _unjudged(found: Findings, gaps: Mapping[str, Tally]) -> list[str]:
    """A sentence for each detector and reason."""
    said = []
    for name, tally in sorted(gaps.items(), key=lambda item: -sum(item[1].not_judged.values())):
        for reason, n in sorted(tally.not_judged.items(), key=lambda item: -item[1]):
            why = words(CODE_OF[reason])
            if reason == "too_short" and name in found.needs:
                why += f" ({lasted(found.seconds)} long; it needs {lasted(found.needs[name])} of good data at least)"
            said.append(f"{spoken(name)} did not judge {_some(found, tally, reason, n)}: {why}.")
        for reason, n in sorted(tally.partly.items()):
            said.append(
                f"{spoken(name)} judged {_some(found, tally, reason, n)} only in part: {words(CODE_OF[reason])}."
            )
    if (more := len(said) - REASONS) > 0:
        said[REASONS:] = [f"{more} more in the table of what was judged."]
    return said


def _some(found: Findings, tally: Tally, reason: str, n: int) -> str:
    names = tally.examples.get(reason, [])
    if n <= min(NAMES, len(names)):
        return _names(found, names[:n])
    return f"{n:,} of {count(tally.vehicles, 'vehicle')}"


def _names(found: Findings, names: Sequence[str]) -> str:
    return listed([found.callsigns.get(name, name) for name in names])


def _notes(found: Findings, content: Mapping[str, Tally]) -> list[str]:
    notes = [*found.troubles, *found.problems]
    if not content and found.samples:
        notes.append("The log has no streams that any detector judges; only whether messages came was watched.")
    if found.dropped:
        notes.append(f"{count(found.dropped, 'sample')} of {found.samples + found.dropped:,} were refused.")
    if found.interrupted:
        notes.append("The replay was interrupted: what follows is the log up to there.")
    return notes
