"""A daemon that has never heard telemetry says so; one that has heard any does not."""

from __future__ import annotations

import msgspec

from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.intake.hearing import LEAST_S, Hearing


class World:
    def __init__(self, config: object = DEFAULT) -> None:
        self.now_s, self.arrived = 1000.0, 0
        self.hearing = Hearing(config, lambda: self.arrived, now=lambda: self.now_s)  # type: ignore[arg-type]

    def after(self, seconds: float) -> list[str]:
        self.now_s += seconds
        return self.hearing.health()


def test_nothing_ever_heard_is_said_after_a_minute_of_connection_and_ends_with_the_first_message() -> None:
    world = World()
    assert world.after(10 * LEAST_S) == []
    world.hearing.connected()
    assert world.after(LEAST_S - 1) == []
    # a second greeting on the same connection does not begin again
    world.hearing.connected()
    [said] = world.after(1)
    assert said.startswith("input: nothing has arrived on telemetry/# since the start: no sender")
    world.hearing.disconnected()
    assert world.after(10 * LEAST_S) == []
    world.hearing.connected()
    assert world.after(LEAST_S) == [said]
    world.arrived = 1
    assert world.after(0) == []
    assert world.after(10 * LEAST_S) == []


def test_receivers_next_to_the_broker_are_ears_too() -> None:
    source = {"type": "sbs", "url": "tcp://127.0.0.1:30003"}
    world = World(load(None, env={}, overrides={"sources": [source]}))
    world.hearing.connected()
    assert world.after(10 * LEAST_S) == []


def test_the_prefix_is_the_one_of_the_configuration() -> None:
    topics = msgspec.structs.replace(DEFAULT.topics, telemetry="boats/in")
    world = World(msgspec.structs.replace(DEFAULT, topics=topics))
    world.hearing.connected()
    assert "boats/in/#" in world.after(LEAST_S)[0]
