"""What holds for every sink there is, against a real receiver: a new one is tested the moment it is declared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.config.schema import DEFAULT, Broker
from watchkeeper.daemon.background import end
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.base import AnyDeclaration, Context, Linked, Sink
from watchkeeper.daemon.outputs.catalog import declarations, discover
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.mqtt.transport import make_transport

from sink_receivers import COUNTERPARTS, from_page, until

# More than the smallest pipe holds.
EVENTS = 60
# For all of them: a put that waited for its receiver would take seconds.
PUT_S = 1.0


def event(number: int, state: str = RAISED) -> AlarmEvent:
    t = time.time()
    return AlarmEvent(
        id=f"alarm-{number}", kind="silence", state=state, severity="caution", subjects=(f"d{number}",), t=t,
        t_onset=t, t_raised=t, t_cleared=t if state == CLEARED else None, score=2.0, threshold=1.0,
        evidence={"silence_s": 3.0},
    )  # fmt: skip


@dataclass(frozen=True)
class Scene:
    sink: Sink
    receiver: Any

    def adds_up(self, put: int) -> bool:
        sink = self.sink
        return sink.delivered + sink.refused + sink.dropped + sink.waiting == put

    def put(self, numbers: range, state: str = RAISED) -> None:
        began = time.perf_counter()
        for number in numbers:
            self.sink.put(event(number, state))
        assert time.perf_counter() - began < PUT_S, "put returns at once"


@asynccontextmanager
async def scene(kind: AnyDeclaration, folder: Path) -> AsyncIterator[Scene]:
    """A sink that runs beside its receiver."""
    receiver = (COUNTERPARTS.get(kind.name) or kind.counterpart)(folder)
    await receiver.start()
    linked: list[Linked] = []
    transport = make_transport(
        getattr(receiver, "broker", Broker()),
        subscribe=[],
        on_message=lambda _topic, _payload: None,
        on_connect=lambda: [each.connected() for each in linked] and None,
        on_disconnect=lambda: [each.disconnected() for each in linked] and None,
    )
    context = Context(
        version="0", client_id="test", output="watchkeeper", state_dir=folder, past=Past(), transport=transport,
        max_active=1000, vehicles=lambda: 0, callsigns=dict, watched=Watched(Pipeline(DEFAULT), "0"),
    )  # fmt: skip
    sink = kind.make(receiver.settings, context)
    if hasattr(receiver, "page"):
        receiver.page = sink
    tasks = [asyncio.create_task(sink.run())]
    if isinstance(sink, Linked):
        linked.append(sink)
        tasks.append(asyncio.create_task(transport.run()))
        await until(lambda: transport.connected)
    try:
        yield Scene(sink, receiver)
    finally:
        await end(*tasks)
        # some leave by coming back: the disk that was full
        await getattr(receiver, "close", receiver.stop)()


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> AnyDeclaration:
    found: AnyDeclaration = from_page(tmp_path_factory.mktemp("page")).SIREN
    return found


discover()
KINDS = {kind.name: kind for kind in declarations()}


@pytest.fixture(params=[*KINDS, "the page's example"])
def kind(request: pytest.FixtureRequest, example: AnyDeclaration) -> AnyDeclaration:
    found = KINDS.get(request.param, example)
    if found.name not in COUNTERPARTS and found.counterpart is None:
        pytest.skip(f"{found.name} declares no counterpart to test it with")
    return found


def test_what_is_put_is_delivered_by_the_time_that_flush_returns(kind: AnyDeclaration, tmp_path: Path) -> None:
    async def main() -> None:
        async with scene(kind, tmp_path) as here:
            assert here.sink.name == kind.name
            await until(lambda: not here.sink.health())
            for put, state in ((EVENTS, RAISED), (2 * EVENTS, CLEARED)):
                here.put(range(EVENTS), state)
                assert here.adds_up(put)
                async with asyncio.timeout(20):
                    await here.sink.flush()
                assert (here.sink.waiting, here.sink.delivered) == (0, put)
            assert (here.sink.refused, here.sink.dropped, here.sink.health()) == (0, 0, [])

    asyncio.run(main())


def test_a_receiver_that_is_away_is_said_and_what_waited_is_delivered_when_it_is_back(
    kind: AnyDeclaration, tmp_path: Path
) -> None:
    async def main() -> None:
        async with scene(kind, tmp_path) as here:
            here.put(range(EVENTS))
            await here.sink.flush()
            await here.receiver.stop()
            here.put(range(EVENTS, 3 * EVENTS))
            await until(here.sink.health)
            assert all(isinstance(reason, str) and reason for reason in here.sink.health())
            assert here.adds_up(3 * EVENTS)
            await here.receiver.start()
            await until(lambda: not here.sink.health() and not here.sink.waiting)
            assert here.sink.delivered == 3 * EVENTS
            assert here.adds_up(3 * EVENTS)

    asyncio.run(main())


def test_every_declaration_says_what_it_is(kind: AnyDeclaration) -> None:
    assert kind.name.isidentifier()
    assert kind.help
    assert kind.settings.__doc__
