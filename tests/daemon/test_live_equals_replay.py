"""The live daemon behind a real broker writes the same alarms, byte for byte, as a replay of the same recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from journal_lines import journal_lines

from watchkeeper.daemon.cli import main

CONFIG = """
[broker]
url = "{url}"
client_id = "live-equals-replay"
transport = "{transport}"
[http]
port = 0
[time]
idle_timeout_s = 3600
[sinks]
terminal = false
state_dir = "{state_dir}"
"""


def same_bytes(
    scenario: list[str], transport: str, broker: Any, daemon: Any, wait_for: Any, tmp_path: Path, *how: str
) -> int:
    """Record, replay, and send the recording through broker and daemon; the number of alarm events."""
    log, replayed, summary = str(tmp_path / "log.wklog"), tmp_path / "replayed.jsonl", tmp_path / "summary.json"
    config = tmp_path / "wk.toml"
    config.write_text(CONFIG.format(url=broker.url, transport=transport, state_dir=tmp_path / "state"))
    assert main(["simulate", *scenario, "--out", log]) == 0
    assert main(["replay", log, "-c", str(config), "--alarms", str(replayed), "--summary", str(summary)]) == 0
    samples = json.loads(summary.read_text())["samples"]
    process = daemon(config)
    wait_for(lambda: "connected to the broker" in process.log)

    def arrived() -> float:
        """Of the recording's streams: the daemon adds samples of the links, which it measures itself."""
        taken = sum(process.figure(f'watchkeeper_samples_total{{stream="{name}"}}') for name in samples)
        return taken + process.figure("watchkeeper_drops_total")

    assert main(["replay", log, "--to-mqtt", broker.url, *how]) == 0
    # an empty queue does not say that the broker has nothing left for us
    wait_for(lambda: arrived() >= sum(samples.values()))
    assert process.figure("watchkeeper_drops_total") == 0
    assert process.end() == 0
    live = b"".join(line + b"\n" for line in journal_lines(tmp_path / "state" / "journal.jsonl"))
    wanted = replayed.read_bytes()
    # a replay judges its last second without waiting for stragglers, a daemon in its next run
    rest = [json.loads(line)["t"] for line in wanted[len(live) :].splitlines()]
    assert wanted.startswith(live)
    assert not rest or min(rest) > json.loads(wanted.splitlines()[-1])["t"] - 2.0
    return live.count(b"\n")


@pytest.mark.parametrize("transport", ["mqtt5", "aiomqtt"])
def test_a_minute_of_the_demo(transport, broker, daemon, wait_for, tmp_path):
    assert same_bytes(["demo", "--seconds", "60"], transport, broker, daemon, wait_for, tmp_path) > 10


@pytest.mark.long
@pytest.mark.parametrize("how", [["--speed", "50"], ["--speed", "max"], ["--speed", "50", "--samples"]])
def test_ten_minutes_of_two_hundred_aircraft_and_twenty_drones(how, broker, daemon, wait_for, tmp_path):
    assert same_bytes(["mixed", "--seed", "1"], "mqtt5", broker, daemon, wait_for, tmp_path, *how) > 100
