"""Home Assistant finds us by itself: retained discovery messages make one device with sensors for each kind of alarm.

    <prefix>/sensor/<node>/<kind>/config          how many alarms of this kind are active
    <prefix>/binary_sensor/<node>/<kind>/config   is any?
    <prefix>/sensor/<node>/vehicles/config        vehicles in the fleet table
    <output>/summary                              what they all show: {"vehicles", "alarms": {kind: n}}; retained

Available is what <output>/status says, which has our last will. Off by default. When it is turned off, or the prefix
changes, what an earlier run announced is removed again: home-assistant.json in the state directory remembers it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.daemon.outputs.mqtt import status_topic
from watchkeeper.detectors.catalog import kinds
from watchkeeper.streams.mqtt.transport import Transport

if TYPE_CHECKING:
    from watchkeeper.detectors.engine.pipeline import Pipeline

MEMORY = "home-assistant.json"
# Counts may change with every tick; a wall display needs no more than this.
PERIOD_S = 1.0


def summary_topic(config: Config) -> str:
    """Where the counts are published."""
    return f"{config.topics.output}/summary"


def announcements(config: Config, version: str) -> dict[str, dict[str, Any]]:
    """Topic to payload of every discovery message."""
    node = re.sub(r"[^a-zA-Z0-9_-]", "_", config.broker.client_id)
    name = config.home_assistant.name
    shared: dict[str, Any] = {
        "state_topic": summary_topic(config),
        "availability": [
            {
                "topic": status_topic(config),
                "value_template": "{{ value_json.state }}",
                "payload_available": "online",
                "payload_not_available": "offline",
            }
        ],
        "device": {"identifiers": [node], "name": name, "manufacturer": "Watchkeeper", "sw_version": version},
        "origin": {"name": "Watchkeeper", "sw_version": version},
        "qos": 1,
    }

    def topic(component: str, thing: str) -> str:
        return f"{config.home_assistant.prefix}/{component}/{node}/{thing}/config"

    found = {
        topic("sensor", "vehicles"): {
            "name": "Vehicles", "unique_id": f"{node}_vehicles", "value_template": "{{ value_json.vehicles }}",
            "state_class": "measurement", "icon": "mdi:radar", **shared,
        }
    }  # fmt: skip
    for kind, declared in kinds().items():
        words, count = kind.replace("_", " "), f"value_json.alarms.{kind}"
        found[topic("sensor", kind)] = {
            "name": f"Alarms: {words}", "unique_id": f"{node}_{kind}_count", "value_template": f"{{{{ {count} }}}}",
            "state_class": "measurement", "icon": "mdi:alert", **shared,
        }  # fmt: skip
        found[topic("binary_sensor", kind)] = {
            "name": words.capitalize(), "unique_id": f"{node}_{kind}",
            "value_template": f"{{{{ 'ON' if {count} > 0 else 'OFF' }}}}",
            "device_class": "safety" if declared.safety else "problem", **shared,
        }  # fmt: skip
    return found


class HomeAssistantSink:
    """Announces, counts and, when turned off, takes back. `connected` after each connect, `run` is a task."""

    def __init__(self, config: Config, version: str, pipeline: Pipeline, state_dir: Path | None) -> None:
        self._config = config
        self._pipeline = pipeline
        self._memory = state_dir / MEMORY if state_dir else None
        self._wanted = announcements(config, version) if config.home_assistant.enabled else {}
        self._shown = b""
        self._greet = asyncio.Event()

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._greet.set()

    async def run(self, transport: Transport) -> None:
        """Task: announce or take back after each connect; while on, publish the counts when they change."""
        while True:
            if self._greet.is_set():
                self._greet.clear()
                self._shown = b""
                await self._announce(transport)
            if not self._wanted:
                await self._greet.wait()
                continue
            summary = self._summary()
            if transport.connected and summary != self._shown:
                self._shown = summary
                transport.post(summary_topic(self._config), summary, retain=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PERIOD_S):
                    await self._greet.wait()

    def _summary(self) -> bytes:
        active = Counter(event.kind for event in self._pipeline.active.values())
        counts = {kind: active[kind] for kind in kinds()}
        return msgspec.json.encode({"vehicles": len(self._pipeline.fleet), "alarms": counts})

    async def _announce(self, transport: Transport) -> None:
        kept = {*self._wanted, summary_topic(self._config)} if self._wanted else set()
        gone = self._remembered() - kept
        # noted first: what is announced can always be taken back
        self._remember(kept | gone)
        posts = [transport.post(topic, b"", retain=True) for topic in sorted(gone)]
        posts += [transport.post(topic, msgspec.json.encode(told), retain=True) for topic, told in self._wanted.items()]
        if all(await asyncio.gather(*posts)):
            self._remember(kept)

    def _remembered(self) -> set[str]:
        if self._memory is None:
            return set()
        try:
            return set(msgspec.json.decode(self._memory.read_bytes(), type=list[str]))
        except (OSError, msgspec.MsgspecError):
            return set()

    def _remember(self, topics: set[str]) -> None:
        if self._memory is None:
            return
        with contextlib.suppress(OSError):
            if topics:
                self._memory.write_bytes(msgspec.json.encode(sorted(topics)))
            else:
                self._memory.unlink(missing_ok=True)
