"""Acknowledging alarms: what it marks, how long that lasts, and that the alarm itself stays as it is."""

from __future__ import annotations

import pytest

from watchkeeper.daemon.live.desk import RECENT, Desk
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent, encode_event


def alarm(name: str, state: str = RAISED) -> AlarmEvent:
    return AlarmEvent(
        id=name, kind="conflict", state=state, severity="caution", subjects=("a", "b"), t=1.0, t_onset=0.0,
        t_raised=1.0, t_cleared=None, score=1.0, threshold=1.0, evidence={},
    )  # fmt: skip


class Book:
    """Active alarms, as the pipeline holds them."""

    def __init__(self, *names: str) -> None:
        self.events = {name: alarm(name) for name in names}
        self.desk = Desk(self.events.values, now=lambda: 1234.5678)

    def clear(self, name: str) -> None:
        del self.events[name]
        self.desk.note(alarm(name, CLEARED))


def test_an_acknowledgement_says_who_and_when_and_changes_nothing_else() -> None:
    book = Book("x", "y")
    before = [encode_event(event) for event in book.events.values()]
    answer = book.desk.acknowledge("x", "tower")
    assert (answer.by, answer.t) == ("tower", 1234.568)
    assert [encode_event(event) for event in book.events.values()] == before
    shown = book.desk.everything()
    assert shown.acknowledged == {"x": answer}


def test_the_first_who_acknowledges_stands_until_it_is_taken_back() -> None:
    desk = Book("x").desk
    desk.acknowledge("x", "first")
    assert desk.acknowledge("x", "second").by == "first"
    assert desk.acknowledge("x", "anybody", on=False) is None
    assert desk.acknowledge("x", "second").by == "second"


def test_only_what_is_shown_can_be_acknowledged() -> None:
    book = Book("x")
    with pytest.raises(KeyError):
        book.desk.acknowledge("z", "")
    book.clear("x")
    assert book.desk.acknowledge("x", "late").by == "late"


def test_a_cleared_alarm_keeps_its_mark_as_long_as_it_is_shown() -> None:
    names = [f"n{i}" for i in range(RECENT + 1)]
    book = Book(*names)
    book.desk.acknowledge("n0", "")
    for name in names[:-1]:
        book.clear(name)
    assert "n0" in book.desk.acknowledged
    book.clear(names[-1])
    assert "n0" not in book.desk.acknowledged
    shown = book.desk.everything().alarms
    assert len(shown) == RECENT
    with pytest.raises(KeyError):
        book.desk.acknowledge("n0", "")


def test_a_mark_without_an_alarm_is_dropped() -> None:
    book = Book("x")
    book.desk.acknowledge("x", "")
    del book.events["x"]
    assert book.desk.everything().acknowledged == {}
