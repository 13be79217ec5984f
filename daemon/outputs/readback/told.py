"""What the broker has of the events that a crash left unconfirmed, so that none is published a second time.

    <output>/instance/<client id>/told   retained: {"told": [[number, alarm, state, t], …]}, the last raises and ends

Between an event's way to the broker and the broker's confirmation on our disk (journal.sent) a crash may come. The next
run then asks the broker before it sends anything again. That note is published behind the events, in the same write: a
broker that has the note has the events. Of events after the note, a raise has arrived if its alarm is retained, and an
end if the raise had arrived and the alarm is not retained any more. A broker that came back with an older memory has an
older note, or none, and what it retains is as old.

A disk that does not answer loses events that the broker was told. Of an alarm whose end is in the note and not in our
journal, and that is not retained, nothing is published again up to the time of that end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping

import msgspec

from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.status import instance_topic
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder

TOLD = "told"


# Events in a note: as many as a failing disk may have taken from the journal, and a few more.
NOTED = 32

# Number in the journal, id of the alarm, state and time.
Told = tuple[int, str, str, float]


class _Note(msgspec.Struct, frozen=True):
    told: list[Told]


_decode = json_decoder(_Note)


def told_topic(output: str, client_id: str) -> str:
    """Where the note is."""
    return f"{instance_topic(output, client_id)}/{TOLD}"


class Notes:
    """The note as it grows."""

    def __init__(self) -> None:
        self._told: deque[Told] = deque(maxlen=NOTED)

    def follow(self, note: bytes) -> None:
        """Go on from the note of the run before."""
        self._told.extend(_told(note))

    def add(self, number: int, event: AlarmEvent) -> None:
        """A raise or an end goes to the broker."""
        self._told.append((number, event.id, event.state, event.t))

    def payload(self) -> bytes:
        """The broker has every event up to the last that was added."""
        return msgspec.json.encode(_Note(list(self._told)))


def arrived(past: Past, note: bytes, is_shown: Callable[[AlarmEvent], bool]) -> set[int]:
    """The numbers of the unconfirmed events that the broker has; `is_shown`: whether this alarm is retained there."""
    told = _told(note)
    up_to = max((number for number, *event, _ in told if past.changes.get(number) == tuple(event)), default=0)
    # what is known last of the alarms that the note covers; the note may know what the journal has lost
    later = {event.id for number, event in past.unsent if number > up_to}
    newest = {event.id: event.state for _, event in past.unsent if event.id not in later}
    newest |= {alarm: state for _, alarm, state, _ in told if alarm in newest}
    if any(is_shown(event) == (newest[event.id] == CLEARED) for _, event in past.unsent if event.id in newest):
        # it refused some of them
        up_to = 0
    raised = {alarm for number, (alarm, state) in past.changes.items() if number <= up_to and state == RAISED}
    return {
        number
        for number, event in past.unsent
        if number <= up_to or (is_shown(event) if event.state == RAISED else event.id in raised and not is_shown(event))
    }


def noted_ends(note: bytes, shown: Collection[str]) -> dict[str, float]:
    """Alarms whose end the broker was told, and when they ended; `shown`: ids of those that are retained."""
    return {alarm: t for _, alarm, state, t in _told(note) if state == CLEARED and alarm not in shown}


def lost_ends(past: Past, note: bytes, ends: Mapping[str, float]) -> dict[str, float]:
    """Those of `noted_ends` that our journal has lost."""
    if not any(past.changes.get(number) == (alarm, state) for number, alarm, state, _ in _told(note)):
        # the note is of another journal: one that was deleted, to begin afresh perhaps
        return {}
    known = {alarm for alarm, state in past.changes.values() if state == CLEARED} | {event.id for event in past.ended}
    return {alarm: t for alarm, t in ends.items() if alarm not in known}


def _told(note: bytes) -> list[Told]:
    try:
        return _decode(note).told
    except ForeignError:
        return []
