"""What `run --once` says of what it heard: streams, vehicles and who would judge them, refused messages, alarms."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from watchkeeper.config.masking import masked
from watchkeeper.daemon.run.listening import Listening
from watchkeeper.detectors.fleet.reasons import CODE_OF, words
from watchkeeper.detectors.incidents.fold import counted, without_symptoms
from watchkeeper.detectors.sentence import said
from watchkeeper.streams.codec.reasons import in_words
from watchkeeper.streams.messages import KIND_OF_WORD, Kind

# Rows of each table; further ones are counted.
ROWS = 20
SHOWN_BYTES = 60


def say(done: Listening, seconds: float, console: Console) -> bool:
    """Print it all; whether anything was heard that can be used."""
    for line in _ears(done):
        console.print(escape(line), soft_wrap=True)
    if done.heard.messages:
        _streams(done, seconds, console)
    if done.pipeline.samples:
        _vehicles(done, seconds, console)
    for line in (*_refused(done), *_dropped(done)):
        console.print(escape(line), soft_wrap=True)
    if not done.pipeline.samples:
        console.print("[bold]nothing was heard that can be judged.[/] Likely reasons:")
        for reason in _reasons(done):
            console.print(escape(f"  - {reason}"), soft_wrap=True)
        return False
    for line in _alarms(done):
        console.print(escape(line), soft_wrap=True)
    return True


def _ears(done: Listening) -> Iterator[str]:
    heard, url = done.heard, masked(done.config.broker.url)
    if done.transport.deaf:
        yield f"broker {url}: {'; '.join(done.transport.health())}"
    elif heard.connected:
        yield f"broker {url}: connected, {heard.messages.total():,} messages on {done.config.topics.telemetry}/#"
    else:
        yield f"broker {url}: no connection: {masked(done.transport.last_error) or 'no answer'}"
    for live in done.sources:
        refused = f", {live.refused.total():,} messages refused" if live.refused else ""
        problem = (
            "" if live.samples else f"; {masked(live.health.problem)}" if live.health.problem else "; silent so far"
        )
        yield f"source {live.source.type} {masked(live.source.url)}: {live.samples:,} samples{refused}{problem}"


def _streams(done: Listening, seconds: float, console: Console) -> None:
    table = Table("topic", "messages", "per second", box=None, pad_edge=False)
    for topic, n in done.heard.messages.most_common(ROWS):
        table.add_row(escape(topic or "(others)"), f"{n:,}", f"{n / seconds:.1f}")
    console.print(table)
    if (more := len(done.heard.messages) - ROWS) > 0:
        console.print(f"  and {more:,} more topics")


def _vehicles(done: Listening, seconds: float, console: Console) -> None:
    fleet, coverage = done.pipeline.fleet, done.pipeline.guard.coverage
    table = Table("vehicle", "streams, samples per second", "judged by", "not judged", box=None, pad_edge=False)
    heard = sorted((name, slot) for name, slot in fleet.slot_of.items() if fleet.count[:, slot].any())
    for name, slot in heard[:ROWS]:
        kinds = [(kind.word, int(fleet.count[kind, slot])) for kind in Kind if kind is not Kind.LINK]
        rates = ", ".join(f"{word} {n / seconds:.1f}" for word, n in kinds if n)
        rows = coverage.of(slot)
        judged = ", ".join(detector for detector, row in rows.items() if row["watched"])
        why: dict[str, list[str]] = {}
        for detector, row in rows.items():
            if row["reason"] not in {"watched", "not_applicable"}:
                why.setdefault(words(CODE_OF[row["reason"]]), []).append(detector)
        unjudged = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in why.items())
        table.add_row(*map(escape, (name, rates, judged or "nobody", unjudged)))
    console.print(table)
    if (more := len(heard) - ROWS) > 0:
        console.print(f"  and {more:,} more vehicles")


def _refused(done: Listening) -> Iterator[str]:
    found = sorted(done.heard.refused.items(), key=lambda item: -item[1].count)
    for (topic, reason), refused in found[:ROWS]:
        stream = topic.removeprefix(f"{done.config.topics.telemetry}/").partition("/")[0]
        start = refused.payload[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
        stated = in_words(reason, refused.payload, stream)
        yield f"refused: {refused.count:,} on {topic} ({reason}): {stated}; it begins {start!r}"
    if (more := len(found) - ROWS) > 0:
        yield f"refused: {more:,} more topics or reasons"


def _dropped(done: Listening) -> Iterator[str]:
    """Samples that were read and could not be used: late, repeated, or with a clock that is off."""
    for (stream, reason), n in done.pipeline.drops.most_common(ROWS):
        yield f"not used: {n:,} samples of {stream} ({reason}): {in_words(reason)}"


def _alarms(done: Listening) -> Iterator[str]:
    """Each alarm by its newest sentence; those that an incident explains only in their number."""
    raised = done.heard.raised.values()
    if not raised:
        yield "alarms in this time: none. Nothing was sent to anybody."
        return
    yield f"alarms in this time: {counted(raised)}. Nothing was sent to anybody."
    heads = without_symptoms(raised)
    yield from (f"  {event.severity:<9}{said(event)}" for event in heads[:ROWS])
    if (more := max(0, len(heads) - ROWS) + done.heard.unkept) > 0:
        yield f"  and {more:,} more alarms"


def _reasons(done: Listening) -> Iterator[str]:
    heard, topics = done.heard, done.config.topics
    if heard.refused:
        yield "every message was refused, as said above: docs/messages.md has what is expected"
    if not heard.connected:
        yield "the broker is not there, at another address, or does not let us in: watchkeeper check-config --connect"
    elif done.transport.deaf:
        yield f"the broker's rules do not let us subscribe to {topics.telemetry}/#"
    elif not heard.messages:
        kinds = ", ".join(f"{topics.telemetry}/{word}/<id>" for word in list(KIND_OF_WORD)[:3])
        yield f"nobody publishes on {kinds} now, or not within this time: --seconds 60 listens longer"
        if others := [name for name, _ in heard.others.most_common(5) if name != topics.output]:
            found = ", ".join(f"{name}/…" for name in others)
            yield f"another prefix: the broker carries {found}; see topics.telemetry"
        yield "rules of the broker that grant the subscription and deliver nothing (mosquitto's acl_file)"
    yield from (
        f"source {masked(live.source.url)}: {masked(live.health.problem) or 'it is connected and sends nothing'}"
        for live in done.sources
        if not live.samples
    )
