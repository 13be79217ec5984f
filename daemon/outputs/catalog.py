"""The ways out besides MQTT, journal and terminal, as the configuration asks for them.

Each has `put(event)` for the publisher's listeners, `run()` as a task, `flush()` for the end, and counters that
http/metrics.py reads: delivered, failures, refused, dropped, waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from watchkeeper.config.schema import Config
from watchkeeper.daemon.outputs.alertmanager import AlertmanagerSink
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.webhook import WebhookSink

Sink = WebhookSink | AlertmanagerSink
# Of the time that a stopping daemon has, this much is for receivers that do not answer.
FLUSH_S = 2.0


def make_sinks(config: Config, state_dir: Path | None, journal: Journal | None) -> list[Sink]:
    """All sinks; OSError when a key to sign with is not there."""
    made: list[Sink] = []
    for settings in config.webhooks:
        webhook = WebhookSink(settings, state_dir)
        if journal is not None:
            webhook.catch_up(journal.past.active, journal.past.ended)
        made.append(webhook)
    if config.alertmanager.url:
        active = journal.past.active if journal is not None else ()
        made.append(AlertmanagerSink(config.alertmanager, config.broker.client_id, active))
    return made


async def flush(sinks: Sequence[Sink]) -> None:
    """Let receivers that answer have everything; the others have FLUSH_S."""
    tasks = [asyncio.create_task(sink.flush()) for sink in sinks]
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=FLUSH_S)
        for task in pending:
            task.cancel()
