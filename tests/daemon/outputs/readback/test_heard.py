"""What is acknowledged must come back; what does not is overdue, however often it was published again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from watchkeeper.daemon.outputs.readback import heard as heard_module
from watchkeeper.daemon.outputs.readback.heard import Awaited

TOPIC = "watchkeeper/alarm/silence/quiet"


class World:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now_s = 100.0
        self._loop = loop
        self.awaited = Awaited(lambda: self.now_s)

    def post(self, payload: bytes, topic: str = TOPIC, taken: bool | None = True) -> None:
        done: asyncio.Future[bool] = self._loop.create_future()
        self.awaited.posted(topic, payload, done)
        if taken is not None:
            done.set_result(taken)
            self._loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def world() -> Iterator[World]:
    loop = asyncio.new_event_loop()
    yield World(loop)
    loop.close()


def test_what_is_heard_is_not_awaited_any_more_even_before_its_acknowledgement(world: World) -> None:
    world.post(b"1")
    assert world.awaited.overdue(99.0) == {}
    assert world.awaited.overdue(100.0) == {TOPIC: b"1"}
    world.awaited.heard(TOPIC, b"1")
    assert world.awaited.overdue(100.0) == {}
    world.post(b"2", taken=None)
    world.awaited.heard(TOPIC, b"2")
    assert world.awaited.overdue(1000.0) == {}


def test_what_is_refused_or_not_answered_is_not_awaited(world: World) -> None:
    world.post(b"1", taken=False)
    world.post(b"2", taken=None)
    assert world.awaited.overdue(1000.0) == {}


def test_later_messages_do_not_hide_that_the_first_was_never_heard(world: World) -> None:
    for second in range(10):
        world.now_s = 100.0 + second
        world.post(b"%d" % second)
    assert world.awaited.overdue(100.0) == {TOPIC: b"9"}
    # an echo that is some seconds behind is an echo
    world.awaited.heard(TOPIC, b"7")
    assert world.awaited.overdue(107.0) == {}
    assert world.awaited.overdue(108.0) == {TOPIC: b"9"}
    # something else on the same topic is none
    world.awaited.heard(TOPIC, b"old")
    assert world.awaited.overdue(108.0) == {TOPIC: b"9"}


def test_what_is_awaited_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard_module, "MOST_TOPICS", 2)
    monkeypatch.setattr(heard_module, "MOST_MESSAGES", 3)
    for number in range(10):
        world.post(b"%d" % number)
        world.post(b"x", topic=f"other/{number}")
    assert world.awaited.overdue(100.0) == {TOPIC: b"9", "other/0": b"x"}
    world.awaited.heard(TOPIC, b"9")
    world.awaited.clear()
    assert world.awaited.overdue(100.0) == {}
