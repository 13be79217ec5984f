"""How many alarms there are: every output that says a number to a person says the same one, with symptoms folded.

A gateway becomes slow, so that its drones have alarms with one cause, while aircraft are in conflict. The counts of the
alarm file, by a rule written once more here, are held next to those of the replay's last line, its summary and its
report; and then, of what is active at the end, next to those of a daemon's page, terminal, API, Prometheus and Home
Assistant.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from waiting import PATIENCE_S

from watchkeeper.config.outputs import HomeAssistant
from watchkeeper.daemon.outputs.notify.message import message
from watchkeeper.daemon.outputs.terminal import LiveView
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

SECONDS = 100.0
COUNTS = """() => ({
  shown: ['warning', 'caution', 'advisory'].map((name) => Number(document.getElementById(`f-${name}`).textContent)),
  badge: Number(document.getElementById('unseen').textContent),
  title: Number(document.title.match(/\\((\\d+)\\)/)?.[1] ?? 0),
  listed: document.querySelectorAll('.alarm:not(.cleared)').length,
})"""


@dataclass(frozen=True, slots=True)
class Played:
    """A replay that is over: its files, its last line, and every alarm by its newest event."""

    folder: Path
    said: str
    last: list[AlarmEvent]

    @property
    def active(self) -> list[AlarmEvent]:
        return [event for event in self.last if event.state != CLEARED]


def alone(events: list[AlarmEvent]) -> list[AlarmEvent]:
    """Those that no incident of these names as its own: by the incidents' evidence, not by the alarms' field."""
    named = {name for event in events if event.kind == "incident" for name in event.evidence["alarms"]}
    return [event for event in events if event.id not in named]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("counts")
    with LogWriter(folder / "traffic.wklog") as log:
        for batch in simulate("random", seed=5, vehicles=60, seconds=SECONDS).batches():
            log.write(batch)
    fault = NetworkFault("latency", "gw-2", 50.0, 0.6)
    with LogWriter(folder / "drones.wklog") as log:
        for batch in network_batches(network_source(11, 12, 3, SECONDS, fault), SECONDS):
            log.write(batch)
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", "traffic.wklog", "drones.wklog"]
    command += ["--alarms", "alarms.jsonl", "--summary", "summary.json", "--report", "report.html"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    events = map(AlarmEvent.of, (folder / "alarms.jsonl").read_bytes().splitlines())
    return Played(folder, done.stderr, list({event.id: event for event in events}.values()))


def test_there_is_something_to_fold(played: Played) -> None:
    assert len(played.last) > len(alone(played.last)) + 2
    assert len(played.active) > len(alone(played.active)) > 1


def test_line_summary_and_report_of_a_replay_count_alike(played: Played) -> None:
    raised, active = len(alone(played.last)), len(alone(played.active))
    symptoms = len(played.last) - raised
    assert f"; {raised} alarms with {symptoms} symptoms raised, {active} active at the end" in played.said
    summary = json.loads((played.folder / "summary.json").read_text())
    assert (summary["raised"], summary["symptoms"]) == (raised, symptoms)
    assert (summary["active"], summary["active_symptoms"]) == (active, len(played.active) - active)
    page = (played.folder / "report.html").read_text()
    assert re.findall(r"<dt>alarms</dt><dd>([\d,]+)</dd>", page) == [str(raised)]
    assert re.findall(r"<h2>Alarms <span class=\"?n\"?>([\d,]+)</span>", page) == [str(raised)]
    assert f"{raised} alarms with {symptoms} symptoms about" in page
    were = "was" if active == 1 else "were"
    assert f"{active} alarm{'s' * (active != 1)} {were} still active when the log ended" in page


def test_every_output_of_a_daemon_counts_alike(
    played: Played, broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, browser: Any
) -> None:
    expected = len(alone(played.active))
    severities = [sum(event.severity == name for event in alone(played.active)) for name in reversed(SEVERITIES)]
    config = msgspec.structs.replace(
        configure(broker.url, sinks={"journal_fsync": False}), home_assistant=HomeAssistant(enabled=True)
    )
    running = start(config)
    app = running.app

    def raise_them() -> None:
        for event in played.active:
            app.pipeline.book.adopt(event)
        app.router.submit(list(played.active), None)

    running._loop.call_soon_threadsafe(raise_them)

    def summed() -> int | None:
        found = [json.loads(p) for topic, p, _ in list(listener.messages) if topic == "watchkeeper/summary" and p]
        whole = found and sum(found[-1]["alarms"].values()) == len(played.active)
        return found[-1]["active"] if whole else None

    assert wait_for(summed) == expected
    api = json.loads(running.get("/api/v1/alarms?active=true&limit=1000")[1])
    assert (api["total"] - api["symptoms"], api["total"]) == (expected, len(played.active))
    assert json.loads(running.get("/api/v1/alarms?active=true&symptoms=false")[1])["total"] == expected
    metrics = running.get("/metrics")[1]
    counted = [
        sum(float(n) for n in re.findall(rf'alarms_without_symptoms{{kind="\w+",severity="{name}"}} (\S+)', metrics))
        for name in reversed(SEVERITIES)
    ]
    assert counted == severities
    console = Console(record=True, width=160, file=(played.folder / "terminal.txt").open("w"))
    console.print(LiveView(app.watched).picture())
    assert f"active: {expected} alarms with {len(played.active) - expected} symptoms" in console.export_text()
    phone = message(played.active, lambda _event: "", {})
    assert phone.title.startswith(f"{expected} alarms with {len(played.active) - expected} symptoms: ")

    tab = browser.new_context().new_page()
    tab.goto(app.http.url)
    seen = wait_for(lambda: (found := tab.evaluate(COUNTS))["listed"] and found, PATIENCE_S)
    assert seen["shown"] == severities
    assert (seen["badge"], seen["listed"], seen["title"]) == (expected, expected, severities[0])
    tab.context.close()
