"""Acknowledging alarms: what it marks, how long that lasts, and that the alarm itself stays as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from watchkeeper.daemon.live.desk import RECENT, Desk
from watchkeeper.daemon.state.folder import StateFolder
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
        self.state: StateFolder | None = None
        self.restart(None)

    def restart(self, folder: Path | None) -> None:
        """Another run with what this folder has; None: nothing is kept."""
        if self.state is not None:
            self.state.release()
        self.state = StateFolder(folder) if folder is not None else None
        self.desk = Desk(self.events.values, lambda _name: None, self.state, now=lambda: 1234.5678)

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


# -- over a restart ---------------------------------------------------------------------------------------------


def test_a_restart_keeps_who_looks_after_what_while_the_alarm_is_there(tmp_path: Path) -> None:
    book = Book("x", "y")
    book.restart(tmp_path)
    given = book.desk.acknowledge("x", "tower")
    book.desk.acknowledge("y", "tower")
    asyncio.run(book.desk.written())
    # alarms come back while the input of the run before is read again: until then none of them is given up
    events, book.events = book.events, {}
    book.restart(tmp_path)
    assert book.desk.everything().acknowledged == {}
    book.events |= events
    del book.events["y"]
    book.restart(tmp_path)
    book.desk.settle()
    assert book.desk.everything().acknowledged == {"x": given}
    asyncio.run(book.desk.written())
    book.events |= events
    book.restart(tmp_path)
    assert book.desk.everything().acknowledged == {"x": given}


def test_what_is_taken_back_stays_taken_back(tmp_path: Path) -> None:
    book = Book("x")
    book.restart(tmp_path)
    book.desk.acknowledge("x", "tower")
    book.desk.acknowledge("x", "tower", on=False)
    asyncio.run(book.desk.written())
    book.restart(tmp_path)
    assert book.desk.acknowledged == {}


def test_no_more_is_kept_than_alarms_are_shown(tmp_path: Path) -> None:
    book = Book()
    book.restart(tmp_path)
    book.desk.settle()
    for n in range(RECENT * 3):
        name = f"n{n}"
        book.events[name] = alarm(name)
        book.desk.acknowledge(name, "tower")
        # every second one ends without an event
        if n % 2:
            book.clear(name)
        else:
            del book.events[name]
    assert len(book.desk.acknowledged) <= RECENT + 1
