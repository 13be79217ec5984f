"""What the broker has of the events that a crash left unconfirmed, so that none is published a second time.

    <output>/instance/<client id>/told   retained: {"number", "alarm", "state"} of the last raise or end, a note

Between an event's way to the broker and the broker's confirmation on our disk (journal.sent) a crash may come. The next
run then asks the broker before it sends anything again. The note is published behind the events, in the same write: a
broker that has the note has the events. Of events after the note, a raise has arrived if its alarm is retained, and an
end if its alarm is not any more. A broker that came back with an older memory has an older note, or none; a note about
an event that our journal does not have, because it was lost or is another's, says nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.status import instance_topic
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
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
    return msgspec.json.encode(_note(number, event))


def arrived(past: Past, note: bytes, is_shown: Callable[[AlarmEvent], bool]) -> set[int]:
    """The numbers of the unconfirmed events that the broker has; `is_shown`: whether this alarm is retained there."""
    up_to = _up_to(past, note)
    last = {event.id: event for number, event in past.unsent if up_to is not None and number <= up_to}
    if any(is_shown(event) == (event.state == CLEARED) for event in last.values()):
        # it refused some of them
        up_to = None
    found: set[int] = set()
    unheard: set[str] = set()
    for number, event in past.unsent:
        if up_to is not None and number <= up_to:
            found.add(number)
        elif event.state == RAISED and not is_shown(event):
            unheard.add(event.id)
        elif event.state == RAISED or (up_to is not None and event.id not in unheard and not is_shown(event)):
            found.add(number)
    return found


def _up_to(past: Past, payload: bytes) -> int | None:
    """The number in a note, if it is about our journal and not older than what is confirmed."""
    try:
        note = _decode(payload)
    except ForeignError:
        return None
    known = past.unsent if past.last_sent is None else [past.last_sent, *past.unsent]
    return note.number if any(_note(*event) == note for event in known) else None


def _note(number: int, event: AlarmEvent) -> Note:
    return Note(number, event.id, event.state)
