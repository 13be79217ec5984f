"""From the pipeline to every way out: the journal first, in order, and what does not work is said where it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journal_lines import journal_lines

from watchkeeper.config.outputs import Webhook
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.app import App
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.outputs import journal_file
from watchkeeper.daemon.outputs.base import SinkError, idle
from watchkeeper.daemon.outputs.fence import Fenced, fenced
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_sink import JournalSink
from watchkeeper.daemon.outputs.router import AlarmRouter
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event


def event(name: str, state: str, t: float) -> AlarmEvent:
    return AlarmEvent(
        id=name, kind="silence", state=state, severity="caution", subjects=(name,), t=t, t_onset=0.0, t_raised=0.0,
        t_cleared=t if state == CLEARED else None, score=2.0, threshold=1.0, evidence={},
    )  # fmt: skip


class Witness:
    """Notes each event, and whether the journal had it by then."""

    name = "witness"
    failures = refused = dropped = waiting = 0

    def __init__(self, journal: Path | None = None) -> None:
        self.delivered = 0
        self.seen: list[AlarmEvent] = []
        self._journal = journal

    def put(self, event: AlarmEvent) -> None:
        if self._journal is not None:
            assert encode_event(event) in journal_lines(self._journal)
        self.seen.append(event)
        self.delivered += 1

    async def run(self) -> None:
        await idle()

    async def flush(self) -> None:
        pass

    def health(self) -> list[str]:
        return []


class Broken(Witness):
    """Raises wherever it is called."""

    name = "broken"

    def put(self, event: AlarmEvent) -> None:
        raise RuntimeError("no lamp")

    async def run(self) -> None:
        raise RuntimeError("no socket")

    async def flush(self) -> None:
        raise RuntimeError("no end")


def lives() -> Iterator[AlarmEvent]:
    for i in range(50):
        for n, state in enumerate((RAISED, UPDATED, CLEARED)):
            yield event(f"d{i}", state, float(i + n))


def test_every_sink_has_each_event_once_in_order_and_only_when_the_journal_has_it(tmp_path: Path) -> None:
    async def main() -> None:
        first = JournalSink(Journal(tmp_path, fsync=False))
        witness = Witness(first.journal.path)
        router = AlarmRouter(first, [witness])
        events = list(lives())
        # an event that is submitted before the journal runs waits for it
        router.submit(events[:3], None)
        running = asyncio.create_task(first.run())
        for i in range(3, len(events), 7):
            router.submit(events[i : i + 7], None)
            await asyncio.sleep(0)
        await router.flush()
        assert witness.seen == events
        assert router.events == {("silence", state): 50 for state in (RAISED, UPDATED, CLEARED)}
        running.cancel()
        first.close()
        # nobody confirms, so nothing is sent again
        assert Journal(tmp_path, fsync=False).past.unsent == []

    asyncio.run(main())


def test_what_goes_wrong_behind_the_journal_ends_its_task(tmp_path: Path) -> None:
    async def main() -> None:
        first = JournalSink(Journal(tmp_path, fsync=False))
        router = AlarmRouter(first, [Broken()])
        running = asyncio.create_task(first.run())
        await asyncio.sleep(0)
        router.submit([event("a", RAISED, 1.0)], None)
        with pytest.raises(RuntimeError, match="no lamp"):
            await asyncio.wait_for(running, 10)
        first.close()

    asyncio.run(main())


def test_a_guest_that_raises_hurts_nobody_and_is_said() -> None:
    async def main() -> None:
        witness, fenced = Witness(), Fenced(Broken())
        router = AlarmRouter(None, [fenced, witness])
        running = asyncio.create_task(fenced.run())
        await asyncio.sleep(0.01)
        router.submit(list(lives()), None)
        await router.flush()
        assert len(witness.seen) == 150
        assert fenced.dropped == 150
        assert router.warnings() == [
            "broken: flush raised RuntimeError: no end",
            "broken: put raised RuntimeError: no lamp",
            "broken: run raised RuntimeError: no socket",
        ]
        running.cancel()

    asyncio.run(main())


def test_two_sinks_of_one_name_do_not_start(tmp_path: Path) -> None:
    sinks = msgspec.structs.replace(DEFAULT.sinks, state_dir=str(tmp_path))
    config = msgspec.structs.replace(DEFAULT, sinks=sinks, webhooks=(Webhook(name="mqtt", url="http://127.0.0.1:9"),))
    with pytest.raises(SinkError, match="mqtt"):
        App(config)


def test_a_receiver_that_is_away_is_a_warning_and_a_full_disk_a_reason(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = Webhook(name="pager", url=f"http://127.0.0.1:{free_port()}", retry_max_s=0.5)
    app = start(msgspec.structs.replace(configure(broker.url), webhooks=(webhook,)))
    assert json.loads(app.get("/readyz")[1]) == {"ready": True, "reasons": [], "warnings": []}
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)
    wait_for(lambda: json.loads(app.get("/readyz")[1])["warnings"])
    status, body = app.get("/readyz")
    assert status == 200
    assert json.loads(body)["warnings"][0].startswith("pager: does not take events:")
    page = app.get("/metrics")[1]
    assert 'watchkeeper_sink_healthy{sink="pager"} 0.0' in page
    assert 'watchkeeper_sink_healthy{sink="mqtt"} 1.0' in page

    def full(_handle: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal_file, "write_all", full)
        listener.fixes("quiet busy", 116, 120)
        # people hear of it all the same
        wait_for(lambda: listener.alarms("cleared"))
        wait_for(lambda: not app.ready())
        assert json.loads(app.get("/readyz")[1])["reasons"] == ["journal not written: No space left on device"]
        assert 'watchkeeper_sink_healthy{sink="journal"} 0.0' in app.get("/metrics")[1]
    wait_for(app.ready)


class BrokenConfirming(Broken):
    """Ours, and wrong: the sink that confirms to the journal raises."""

    def put_recorded(self, event: AlarmEvent, number: int, arrived_s: float | None) -> None:
        raise ZeroDivisionError("a mistake of ours")


def test_a_mistake_in_the_confirming_sink_or_the_journals_task_reaches_nobody_else(tmp_path: Path) -> None:
    async def play() -> None:
        first = JournalSink(Journal(tmp_path, fsync=False))
        witness, broken = Witness(tmp_path / "journal.jsonl"), fenced(BrokenConfirming())
        router = AlarmRouter(first, [broken, fenced(witness)])
        tasks = [asyncio.create_task(sink.run()) for sink in router.tasks]
        await asyncio.sleep(0)
        events = list(lives())
        router.submit(events, None)
        await first.flush()
        assert [encode_event(e) for e in witness.seen] == [encode_event(e) for e in events]
        assert broken.dropped == len(events)
        assert any("put raised ZeroDivisionError: a mistake of ours" in words for words in router.warnings())
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        first.close()

    asyncio.run(play())
