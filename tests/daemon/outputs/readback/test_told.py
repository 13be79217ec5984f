"""What the broker has of events that a crash left unconfirmed: for any cut of the line, none twice and none lost."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.readback.told import NOTED, Notes, arrived, lost_ends, noted_ends
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent

Numbered = tuple[int, AlarmEvent]


def event(name: str, state: str) -> AlarmEvent:
    return AlarmEvent(
        id=name, kind="silence", state=state, severity="caution", subjects=(name,), t=1.0, t_onset=0.0, t_raised=0.0,
        t_cleared=1.0 if state == CLEARED else None, score=2.0, threshold=1.0, evidence={},
    )  # fmt: skip


def note_of(number: int, one: AlarmEvent) -> bytes:
    notes = Notes()
    notes.add(number, one)
    return notes.payload()


def journal(events: list[Numbered], confirmed: int = 0) -> Past:
    """A journal with these events, of which the first are known to be confirmed."""
    changes = {number: (one.id, one.state) for number, one in events}
    return Past(unsent=events[confirmed:], changes=changes)


class Broker:
    """Takes packets in order: an end is two of them, then the topic is empty; the note comes behind each write."""

    def __init__(self) -> None:
        self.note = b""
        self.shown: set[str] = set()
        self.heard: list[Numbered] = []

    def take(self, packet: tuple[str, int, AlarmEvent]) -> None:
        what, number, about = packet
        if what == "note":
            self.note = note_of(number, about)
        elif what == "empty":
            self.shown.discard(about.id)
        else:
            self.heard.append((number, about))
            if about.state == RAISED:
                self.shown.add(about.id)


def packets(writes: list[list[Numbered]]) -> list[tuple[str, int, AlarmEvent]]:
    sent = []
    for events in writes:
        for number, one in events:
            sent += [("event", number, one)] + ([("empty", number, one)] if one.state == CLEARED else [])
        sent.append(("note", *events[-1]))
    return sent


@st.composite
def lives(draw: st.DrawFn) -> list[list[Numbered]]:
    """Alarms that are raised and end, in writes of one or more events."""
    active: list[str] = []
    events: list[AlarmEvent] = []
    for i in range(draw(st.integers(1, 8))):
        if active and draw(st.booleans()):
            events.append(event(active.pop(draw(st.integers(0, len(active) - 1))), CLEARED))
        else:
            active.append(f"{i:016x}")
            events.append(event(active[-1], RAISED))
    numbered = list(enumerate(events, 1))
    writes, at = [], 0
    while at < len(numbered):
        size = draw(st.integers(1, 3))
        writes.append(numbered[at : at + size])
        at += size
    return writes


@given(writes=lives(), data=st.data())
def test_wherever_the_line_is_cut_nothing_that_did_not_arrive_counts_as_arrived(
    writes: list[list[Numbered]], data: st.DataObject
) -> None:
    sent = packets(writes)
    cut = data.draw(st.integers(0, len(sent)))
    broker = Broker()
    for packet in sent[:cut]:
        broker.take(packet)
    everything = [one for write in writes for one in write]
    # the disk knows of some of what the broker has, perhaps of nothing
    confirmed = data.draw(st.integers(0, len(broker.heard)))
    past = journal(everything, confirmed)
    found = arrived(past, broker.note, lambda one: one.id in broker.shown)
    heard = {number for number, _ in broker.heard}
    assert found <= heard
    noted = max((number for number, *_ in msgspec.json.decode(broker.note)["told"]), default=0) if broker.note else 0
    assert {number for number, _ in past.unsent if number <= noted} <= found
    whole = not cut or sent[cut - 1][0] == "note"
    if whole and broker.note:
        assert found == heard - {number for number, _ in everything[:confirmed]}


def test_a_note_of_another_journal_or_of_an_older_memory_says_nothing_about_what_came_after() -> None:
    c_raised, b_raised = (4, event("c" * 16, RAISED)), (5, event("b" * 16, RAISED))
    a_raised, b_ended = (7, event("a" * 16, RAISED)), (9, event("b" * 16, CLEARED))
    past = journal([c_raised, b_raised, a_raised, b_ended], 2)

    def shown(_one: AlarmEvent) -> bool:
        return False

    # the raise of b is not in this memory either
    for note in (b"", b"{", note_of(9, event("d" * 16, CLEARED)), note_of(3, c_raised[1]), note_of(*c_raised)):
        assert arrived(past, note, shown) == set()
    # it had b, and does not show it any more: the end has arrived, though no note says so
    assert arrived(past, note_of(*b_raised), shown) == {9}
    # the record of what is confirmed is lost, and so nobody knows which raises were heard
    past.unsent = [b_ended]
    assert arrived(past, note_of(*c_raised), shown) == set()
    assert arrived(past, note_of(*a_raised), shown) == {9}


@pytest.mark.parametrize("state", [RAISED, CLEARED])
def test_a_note_about_what_the_broker_refused_is_not_believed(state: str) -> None:
    one = (3, event("a" * 16, state))
    past = journal([one])
    refused = {RAISED: False, CLEARED: True}[state]
    assert arrived(past, note_of(*one), lambda _one: refused) == set()
    assert arrived(past, note_of(*one), lambda _one: not refused) == {3}


def test_an_alarm_that_came_and_went_unheard_is_told_whole() -> None:
    a = "a" * 16
    past = journal([(1, event("b" * 16, RAISED)), (2, event(a, RAISED)), (3, event(a, CLEARED))], 1)
    assert arrived(past, note_of(1, event("b" * 16, RAISED)), lambda _one: False) == set()


def test_the_note_is_plain_json_and_does_not_grow() -> None:
    notes = Notes()
    for number in range(1, NOTED + 3):
        notes.add(number, event("a" * 16, RAISED))
    told = msgspec.json.decode(notes.payload())["told"]
    assert told[-1] == [NOTED + 2, "a" * 16, "raised", 1.0]
    assert len(told) == NOTED


def test_events_that_only_the_broker_has_do_not_hide_those_before_them() -> None:
    notes, kept = Notes(), (1, event("a" * 16, RAISED))
    notes.add(*kept)
    notes.add(2, event("b" * 16, RAISED))
    assert arrived(journal([kept]), notes.payload(), lambda _one: True) == {1}


def test_an_end_that_only_the_broker_has_explains_why_an_alarm_is_not_shown() -> None:
    notes, kept = Notes(), (1, event("a" * 16, RAISED))
    notes.add(*kept)
    notes.add(2, event("a" * 16, CLEARED))
    assert arrived(journal([kept]), notes.payload(), lambda _one: False) == {1}
    assert arrived(journal([kept]), notes.payload(), lambda _one: True) == {1}


def test_ends_that_the_journal_has_lost_are_known_from_the_note_of_the_same_journal() -> None:
    ends = [event(name, CLEARED) for name in ("kept", "lost", "shown")]
    raises = [event(name, RAISED) for name in ("kept", "lost", "shown", "active")]
    notes = Notes()
    for number, one in enumerate([*raises, *ends], 1):
        notes.add(number, one)
    first = Notes()
    first.follow(notes.payload())
    assert first.payload() == notes.payload()
    past = journal([*enumerate(raises, 1), (5, ends[0])])
    noted = noted_ends(notes.payload(), {"shown", "active"})
    assert noted == {"kept": 1.0, "lost": 1.0}
    assert lost_ends(past, notes.payload(), noted) == {"lost": 1.0}
    # a journal that was deleted: what is played again is heard again
    assert lost_ends(Past(), notes.payload(), noted) == {}
    assert noted_ends(b"", set()) == lost_ends(past, b"", {}) == {}
