"""What the broker has of the events that a crash left unconfirmed, so that none is published a second time.

    <output>/instance/<client id>/told   retained: {"told": [[number, alarm, state], …]}, the last raises and ends

Between an event's way to the broker and the broker's confirmation on our disk (journal.sent) a crash may come. The next
run then asks the broker before it sends anything again. That note is published behind the events, in the same write: a
broker that has the note has the events. Of events after the note, a raise has arrived if its alarm is retained, and an
end if the raise had arrived and the alarm is not retained any more. A broker that came back with an older memory has an
older note, or none, and what it retains is as old. Events in the note that our journal does not have, because they
were lost or are another's, say nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.status import instance_topic
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder

TOLD = "told"


# Events in a note: as many as a failing disk may have taken from the journal, and a few more.
NOTED = 16


class _Note(msgspec.Struct, frozen=True):
    told: list[tuple[int, str, str]]


_decode = json_decoder(_Note)


def told_topic(output: str, client_id: str) -> str:
    """Where the note is."""
    return f"{instance_topic(output, client_id)}/{TOLD}"


class Notes:
    """The note as it grows."""

    def __init__(self) -> None:
        self._told: deque[tuple[int, str, str]] = deque(maxlen=NOTED)

    def add(self, number: int, event: AlarmEvent) -> None:
        """A raise or an end goes to the broker."""
        self._told.append((number, event.id, event.state))

    def payload(self) -> bytes:
        """The broker has every event up to the last that was added."""
        return msgspec.json.encode(_Note(list(self._told)))


def arrived(past: Past, note: bytes, is_shown: Callable[[AlarmEvent], bool]) -> set[int]:
    """The numbers of the unconfirmed events that the broker has; `is_shown`: whether this alarm is retained there."""
    told = _told(note)
    up_to = max((number for number, *event in told if past.changes.get(number) == tuple(event)), default=0)
    # what is known last of the alarms that the note covers; the note may know what the journal has lost
    later = {event.id for number, event in past.unsent if number > up_to}
    newest = {event.id: event.state for _, event in past.unsent if event.id not in later}
    newest |= {alarm: state for _, alarm, state in told if alarm in newest}
    if any(is_shown(event) == (newest[event.id] == CLEARED) for _, event in past.unsent if event.id in newest):
        # it refused some of them
        up_to = 0
    raised = {alarm for number, (alarm, state) in past.changes.items() if number <= up_to and state == RAISED}
    return {
        number
        for number, event in past.unsent
        if number <= up_to or (is_shown(event) if event.state == RAISED else event.id in raised and not is_shown(event))
    }


def _told(note: bytes) -> list[tuple[int, str, str]]:
    try:
        return _decode(note).told
    except ForeignError:
        return []
