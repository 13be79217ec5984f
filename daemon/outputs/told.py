"""The last raise or end that the broker has, noted at the broker itself, so that a crash repeats none.

    <output>/instance/<client id>/told   retained: {"number", "alarm", "state"} of an event of the journal

It is published behind the events, in the same write: a broker that has the note has the events. Between an event's way
to the broker and the broker's confirmation on our disk (journal.sent) a crash may come. The next run then reads the
note before it sends anything again. A broker that came back with an older memory has an older note, or none. A note
about an event that our journal does not have, because it was lost or is another's, says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from watchkeeper.daemon.outputs.status import instance_topic
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder

TOLD = "told"


class Note(msgspec.Struct, frozen=True):
    """One event of the journal."""

    number: int
    alarm: str
    state: str


_decode = json_decoder(Note)


def told_topic(output: str, client_id: str) -> str:
    """Where the note is."""
    return f"{instance_topic(output, client_id)}/{TOLD}"


def note_of(number: int, event: AlarmEvent) -> bytes:
    """The broker has every event up to this one."""
    return msgspec.json.encode(Note(number, event.id, event.state))


def told_up_to(payload: bytes, unsent: Iterable[tuple[int, AlarmEvent]]) -> int:
    """The number of the last of these events that a broker with this note has; 0: it tells nothing about them."""
    try:
        note = _decode(payload)
    except ForeignError:
        return 0
    same = ((note.alarm, note.state) == (event.id, event.state) for number, event in unsent if number == note.number)
    return note.number if any(same) else 0
