"""The wait for the broker's note after a start: behind all that it has kept for us, but not for ever."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from watchkeeper.config.schema import Sinks
from watchkeeper.daemon.outputs import mqtt
from watchkeeper.daemon.outputs.base import Context
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.detectors.alarms.events import AlarmEvent

EVENT = AlarmEvent(
    id="a000000000000000", kind="silence", state="raised", severity="caution", subjects=("a",), t=1.0, t_onset=1.0,
    t_raised=1.0, t_cleared=None, score=1.0, threshold=1.0, evidence={}, diagnosis=None,
)  # fmt: skip


class Transport(SimpleNamespace):
    """Counts what is published."""

    def post(self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1) -> asyncio.Future[bool]:
        self.posted += 1
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        return done


def context_of(state_dir: Path | None, transport: SimpleNamespace) -> Context:
    return Context(
        version="0", client_id="test", output="watchkeeper", state_dir=state_dir, past=Past(), transport=transport,
        max_active=10, vehicles=lambda: 0, callsigns=dict, watched=SimpleNamespace(),
    )  # type: ignore[arg-type]  # fmt: skip


async def waited(
    tmp_path: Path | None, *, busy: bool = False, owed: int = 0, half_blind: bool = False, heard: bool = False
) -> float:
    """How long until the first event goes out, in NOTE_S."""
    transport = Transport(received=0, unacknowledged=owed, half_blind=half_blind, connected=True, posted=0)
    sink = mqtt.MqttSink(Sinks(), context_of(tmp_path, transport))
    sink.connected()
    sink.put(EVENT)
    began = asyncio.get_running_loop().time()
    while not transport.posted:
        transport.received += busy
        if heard:
            sink.told(b"", {})
            sink.resume()
        await asyncio.sleep(mqtt.NOTE_S / 100)
    return (asyncio.get_running_loop().time() - began) / mqtt.NOTE_S


@pytest.fixture(autouse=True)
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt, "NOTE_S", 0.05)
    monkeypatch.setattr(mqtt, "NOTE_MOST_S", 0.2)


@pytest.mark.parametrize(("busy", "owed", "least"), [(False, 0, 1.0), (True, 0, 4.0), (False, 1, 4.0)])
def test_events_wait_behind_what_the_broker_has_kept_and_then_go_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, busy: bool, owed: int, least: float
) -> None:
    caplog.set_level(logging.WARNING)
    assert asyncio.run(waited(tmp_path, busy=busy, owed=owed)) >= least
    assert "has not shown what it retains" in caplog.text


def test_nothing_waits_that_has_nothing_to_wait_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # no journal: no earlier run; the broker does not let us read our topics; it has shown them
    assert asyncio.run(waited(None)) < 1.0
    assert asyncio.run(waited(tmp_path, half_blind=True)) < 1.0
    caplog.clear()
    assert asyncio.run(waited(tmp_path, heard=True)) < 1.0
    assert not caplog.text


def test_the_end_of_a_strangers_alarm_is_told_once_it_was_taken(tmp_path: Path) -> None:
    async def work() -> None:
        answers: list[asyncio.Future[bool]] = []
        transport = Transport(received=0, unacknowledged=0, half_blind=False, connected=True, posted=0)

        def post(_topic: str, _payload: bytes, *, retain: bool = False, qos: int = 1) -> asyncio.Future[bool]:
            answers.append(asyncio.get_running_loop().create_future())
            return answers[-1]

        transport.post = post
        sink = mqtt.MqttSink(Sinks(), context_of(tmp_path, transport))
        for taken in (False, True):
            # the line may break before the broker has it
            sink.remove("watchkeeper/alarm/silence/a", EVENT)
            answers[-2].set_result(taken)
            await asyncio.sleep(0)
            assert sink.is_over(EVENT.id) == taken

    asyncio.run(work())


def test_the_note_is_back_as_soon_as_the_broker_has_taken_what_it_had_refused(tmp_path: Path) -> None:
    kept: dict[str, bytes] = {}
    refuses = False

    def post(topic: str, payload: bytes, *, retain: bool = False, qos: int = 1) -> asyncio.Future[bool]:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        taken = not (refuses and "/alarm/" in topic)
        done.set_result(taken)
        if taken:
            kept[topic] = payload
        return done

    async def work() -> None:
        nonlocal refuses
        transport = SimpleNamespace(received=0, unacknowledged=0, half_blind=False, connected=True, post=post)
        sink = mqtt.MqttSink(Sinks(), context_of(tmp_path, transport))
        sink.connected()
        sink.told(b"", {})
        sink.resume()
        for number, state in enumerate(("raised", "updated", "cleared"), 1):
            refuses = state == "updated"
            sink.put_recorded(msgspec.structs.replace(EVENT, state=state, t=float(number)), number, None)
            await asyncio.sleep(0.01)
            told = [] if refuses else [[1, EVENT.id, "raised", 1.0], [3, EVENT.id, "cleared", 3.0]][: (number + 1) // 2]
            note = kept["watchkeeper/instance/test/told"]
            assert (msgspec.json.decode(note)["told"] if note else []) == told

    asyncio.run(work())
