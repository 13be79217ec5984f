"""Alarms as alerts in a real Alertmanager (Debian): they appear, change severity, stay while active, and end."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import msgspec
import pytest
from aiohttp import web
from waiting import PATIENCE_S, end_program, until, wait_for

from watchkeeper.config.outputs import Alertmanager
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.outputs.alertmanager import AlertmanagerSink
from watchkeeper.detectors.alarms.events import AlarmEvent

from where import ROOT


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if program is None:
        pytest.skip("Alertmanager is not installed: apt install prometheus-alertmanager")
    folder, port = tmp_path_factory.mktemp("alertmanager"), free_port()
    (folder / "config.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    words = [f"--config.file={folder / 'config.yml'}", f"--storage.path={folder}", "--cluster.listen-address="]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: answers(f"{url}/-/ready"))
    yield url
    end_program(process)


def answers(url: str) -> bool:
    with suppress(URLError), urlopen(url, timeout=5):
        return True
    return False


def event(subjects: tuple[str, ...], state: str = "raised", severity: str = "caution", **changes: Any) -> AlarmEvent:
    t = time.time()
    fields: dict[str, Any] = {
        "id": "-".join(subjects), "kind": "conflict", "state": state, "severity": severity, "subjects": subjects,
        "t": t, "t_onset": t - 5, "t_raised": t - 3, "t_cleared": t if state == "cleared" else None, "score": 0.7,
        "threshold": 0.5, "evidence": {"dcpa_nm": 1.5},
    }  # fmt: skip
    return AlarmEvent(**{**fields, **changes})


def alerts(url: str, subject: str) -> list[dict[str, Any]]:
    """The alerts that are firing there."""
    with urlopen(f"{url}/api/v2/alerts?active=true", timeout=5) as answer:
        return [alert for alert in json.load(answer) if alert["labels"]["subject"] == subject]


async def asked(what: Callable[[], Any]) -> Any:
    """The first true answer of Alertmanager, which is asked in a thread: the sink runs meanwhile."""
    return await asyncio.to_thread(wait_for, what)


async def flushed(sink: AlertmanagerSink) -> None:
    """Alertmanager shows an alert before the sink has its answer: the counters are right once nothing waits."""
    async with asyncio.timeout(PATIENCE_S):
        await sink.flush()


def test_an_alarm_is_one_alert_from_raised_to_cleared(sending: Any, alertmanager: str) -> None:
    async def scene() -> None:
        async with sending(AlertmanagerSink(Alertmanager(url=alertmanager), "tower")) as sink:
            sink.put(event(("a", "b")))
            (alert,) = await asked(lambda: alerts(alertmanager, "a~b"))
            assert alert["labels"] == {
                "alertname": "Watchkeeper", "kind": "conflict", "subject": "a~b", "severity": "caution",
                "watchkeeper": "tower",
            }  # fmt: skip
            assert alert["annotations"]["alarm_id"] == "a-b"
            assert json.loads(alert["annotations"]["evidence"]) == {"dcpa_nm": 1.5}
            sink.put(event(("a", "b"), "updated", "warning"))
            await asked(lambda: [a["labels"]["severity"] for a in alerts(alertmanager, "a~b")] == ["warning"])
            sink.put(event(("a", "b"), "cleared", "warning"))
            await asked(lambda: not alerts(alertmanager, "a~b"))
            await flushed(sink)
            assert (sink.waiting, sink.refused, sink.failures) == (0, 0, 0)

    asyncio.run(scene())


def test_an_active_alarm_outlives_its_expiry_while_we_live_and_not_when_we_die(sending: Any, alertmanager: str) -> None:
    async def scene() -> None:
        settings = Alertmanager(url=alertmanager, resend_s=1.0, expire_s=5.0)
        async with sending(AlertmanagerSink(settings, "tower")) as sink:
            sink.put(event(("c", "d")))
            await asked(lambda: alerts(alertmanager, "c~d"))
            await asyncio.sleep(6.0)
            assert alerts(alertmanager, "c~d")
        await asked(lambda: not alerts(alertmanager, "c~d"))

    asyncio.run(scene())


def test_after_a_restart_what_the_journal_knows_is_sent_again(sending: Any, alertmanager: str) -> None:
    async def scene() -> None:
        settings = Alertmanager(url=alertmanager)
        async with sending(AlertmanagerSink(settings, "tower", [event(("e", "f"), "updated")])) as sink:
            await asked(lambda: alerts(alertmanager, "e~f"))
            sink.put(event(("e", "f"), "cleared"))
            await asked(lambda: not alerts(alertmanager, "e~f"))

    asyncio.run(scene())


def test_a_real_alarm_of_a_real_daemon_is_an_alert_until_it_clears(
    alertmanager: str, broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    start(msgspec.structs.replace(configure(broker.url), alertmanager=Alertmanager(url=alertmanager)))
    listener.fixes("quiet busy", 100, 105)
    listener.fixes("busy", 106, 115)
    (alert,) = wait_for(lambda: alerts(alertmanager, "quiet"))
    (alarm,) = wait_for(lambda: listener.alarms("raised"))
    assert alert["labels"]["kind"] == "silence"
    assert alert["annotations"]["alarm_id"] == alarm["id"]
    listener.fixes("quiet busy", 116, 125)
    wait_for(lambda: not alerts(alertmanager, "quiet"))


def test_clocks_of_senders_may_be_anywhere(sending: Any, alertmanager: str) -> None:
    async def scene() -> None:
        async with sending(AlertmanagerSink(Alertmanager(url=alertmanager), "tower")) as sink:
            sink.put(event(("future",), t_raised=time.time() + 1e6))
            sink.put(event(("past",), t_raised=3.0))
            sink.put(event(("nonsense",), t_raised=-1e18))
            for subject in ("future", "past", "nonsense"):
                await asked(lambda subject=subject: alerts(alertmanager, subject))
            await flushed(sink)
            assert sink.refused == 0

    asyncio.run(scene())


def test_many_alarms_and_a_manager_that_comes_late(sending: Any) -> None:
    async def scene() -> None:
        got: list[list[dict[str, Any]]] = []

        async def take(request: web.Request) -> web.Response:
            got.append(await request.json())
            return web.Response(status=503 if len(got) == 1 else 200)

        port = free_port()
        sink = AlertmanagerSink(Alertmanager(url=f"http://127.0.0.1:{port}/"), "tower")
        async with sending(sink):
            for i in range(1200):
                sink.put(event((f"v{i}",)))
            sink.put(event(("v0",), "cleared"))
            await until(lambda: sink.failures >= 1)
            site = web.Application()
            site.add_routes([web.post("/api/v2/alerts", take)])
            runner = web.AppRunner(site, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            await flushed(sink)
            await runner.cleanup()
        assert [len(part) for part in got] == [500, 500, 500, 200]
        ends = {alert["labels"]["subject"]: alert["endsAt"] for part in got[1:] for alert in part}
        assert len(ends) == 1200
        assert min(ends, key=lambda subject: ends[subject]) == "v0", "the one that is over ends now"

    asyncio.run(scene())


def test_the_configuration_of_the_deployment_is_valid(tmp_path: Path) -> None:
    amtool = shutil.which("amtool")
    config = ROOT / "deploy" / "prometheus" / "alertmanager.yml"
    if amtool is None:
        pytest.skip("amtool is not installed: apt install prometheus-alertmanager")
    assert subprocess.run([amtool, "check-config", str(config)], check=False, capture_output=True).returncode == 0
