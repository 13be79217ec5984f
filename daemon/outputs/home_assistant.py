"""Home Assistant finds us by itself: retained discovery messages make one device with sensors for each kind of alarm.

    <prefix>/sensor/<node>/alarms/config          how many alarms are active, without symptoms of incidents
    <prefix>/sensor/<node>/<kind>/config          how many alarms of this kind are active
    <prefix>/binary_sensor/<node>/<kind>/config   is any?
    <prefix>/sensor/<node>/vehicles/config        vehicles in the fleet table
    <output>/summary                              what they all show, retained: {"vehicles", "active",
                                                  "alarms": {kind: n}, "said": {kind: {"alarm": the sentence of its
                                                  worst active alarm, "link": that alarm on the live page}}}

Available is what <output>/status says, which has our last will. Off by default. When it is turned off, or the prefix
changes, what an earlier run announced is removed again: home-assistant.json in the state directory remembers it, as a
checked line (state/checked.py). When that is damaged, it may have been what the settings of now announce.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.outputs import HomeAssistant
from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import NO_BROKER, Context, Declaration
from watchkeeper.daemon.outputs.status import status_topic
from watchkeeper.daemon.state.checked import replace_file, seal, unseal
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.incidents.fold import counted
from watchkeeper.detectors.sentence import said
from watchkeeper.streams.foreign.decode import ForeignError, from_json

log = logging.getLogger(__name__)

MEMORY = "home-assistant.json"
# Counts may change with every tick; a wall display needs no more than this.
PERIOD_S = 1.0


def summary_topic(output: str) -> str:
    """Where the counts are published."""
    return f"{output}/summary"


def announcements(settings: HomeAssistant, client_id: str, output: str, version: str) -> dict[str, dict[str, Any]]:
    """Topic to payload of every discovery message."""
    node = re.sub(r"[^a-zA-Z0-9_-]", "_", client_id)
    shared: dict[str, Any] = {
        "state_topic": summary_topic(output),
        "availability": [
            {
                "topic": status_topic(output),
                "value_template": "{{ value_json.state }}",
                "payload_available": "online",
                "payload_not_available": "offline",
            }
        ],
        "device": {"identifiers": [node], "name": settings.name, "manufacturer": "Watchkeeper", "sw_version": version},
        "origin": {"name": "Watchkeeper", "sw_version": version},
        "qos": 1,
    }

    def topic(component: str, thing: str) -> str:
        return f"{settings.prefix}/{component}/{node}/{thing}/config"

    found = {
        topic("sensor", "vehicles"): {
            "name": "Vehicles", "unique_id": f"{node}_vehicles", "value_template": "{{ value_json.vehicles }}",
            "state_class": "measurement", "icon": "mdi:radar", **shared,
        },
        topic("sensor", "alarms"): {
            "name": "Alarms", "unique_id": f"{node}_alarms", "value_template": "{{ value_json.active }}",
            "state_class": "measurement", "icon": "mdi:alert", **shared,
        },
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
            "json_attributes_topic": summary_topic(output),
            "json_attributes_template": f"{{{{ value_json.said.{kind} | tojson }}}}",
            "device_class": "safety" if declared.safety else "problem", **shared,
        }  # fmt: skip
    return found


class _Announced(msgspec.Struct, frozen=True):
    topics: list[str]


class HomeAssistantSink:
    """Announces, counts and, when turned off, takes back. `connected` after each connect, `run` is a task."""

    name = "home_assistant"
    refused = 0
    dropped = 0

    def __init__(self, settings: HomeAssistant, context: Context) -> None:
        self.delivered = 0
        self.failures = 0
        self._context = context
        self._memory = context.state_dir / MEMORY if context.state_dir else None
        told = announcements(settings, context.client_id, context.output, context.version)
        self._wanted = told if settings.enabled else {}
        self._announced = self._remembered({*told, summary_topic(context.output)})
        if context.state is not None:
            context.state.on_return.append(lambda: self._remember(self._announced))
        self._active = {event.id: event for event in context.past.active}
        self._shown = b""
        # events that no summary has shown, and those whose summary is on its way
        self._fresh = self._posted = 0
        self._greet = False
        self._wake = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Events that are not in the counts at the broker."""
        return self._fresh + self._posted

    def health(self) -> list[str]:
        """Is there a broker?"""
        return [] if self._context.transport.connected else [NO_BROKER]

    def put(self, event: AlarmEvent) -> None:
        """Count one event; the summary follows within PERIOD_S."""
        if event.state == CLEARED:
            self._active.pop(event.id, None)
        else:
            self._active[event.id] = event
        self._fresh += bool(self._wanted)

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._greet = True
        self._wake.set()

    def disconnected(self) -> None:
        """What is posted meanwhile waits in the transport."""

    async def run(self) -> None:
        """Task: announce or take back after each connect; while on, publish the counts when they change."""
        while True:
            self._wake.clear()
            if self._greet:
                self._greet, self._shown = False, b""
                await self._announce()
            if not self._wanted:
                await self._wake.wait()
                continue
            if self._context.transport.connected:
                self._show()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PERIOD_S):
                    await self._wake.wait()

    async def flush(self) -> None:
        """Publish the counts now and wait for the broker, unless there is none."""
        self._wake.set()
        while self.waiting and self._context.transport.connected:
            await asyncio.sleep(0.005)

    def _show(self) -> None:
        summary, taken = self._summary(), self._fresh
        if summary == self._shown and not self._posted:
            # what came and went between two looks
            self.delivered += taken
            self._fresh = 0
        elif summary != self._shown:
            self._shown, self._fresh = summary, 0
            self._posted += taken
            done = self._context.transport.post(summary_topic(self._context.output), summary, retain=True)
            done.add_done_callback(partial(self._settle, taken))

    def _settle(self, taken: int, done: asyncio.Future[bool]) -> None:
        self._posted -= taken
        if not done.cancelled() and done.result():
            self.delivered += taken
            if self._fresh:
                self._wake.set()
        else:
            # refused, or cut off: again after PERIOD_S or the next connect, not at once and for ever
            self.failures += 1
            self._fresh += taken
            self._shown = b""

    def _summary(self) -> bytes:
        active = Counter(event.kind for event in self._active.values())
        worst: dict[str, AlarmEvent] = {}
        for event in sorted(self._active.values(), key=lambda e: (SEVERITIES.index(e.severity), e.t_raised, e.id)):
            worst[event.kind] = event
        sentences = {kind: self._said(worst.get(kind)) for kind in kinds()}
        counts = {kind: active[kind] for kind in kinds()}
        vehicles, in_all = self._context.vehicles(), counted(self._active.values()).alarms
        return msgspec.json.encode({"vehicles": vehicles, "active": in_all, "alarms": counts, "said": sentences})

    def _said(self, event: AlarmEvent | None) -> dict[str, str]:
        """The attributes of a kind whose worst active alarm has this event."""
        if event is None:
            return {"alarm": "", "link": ""}
        # at the moment when it was raised: attributes that change with every update fill a recorder's disk
        raised = msgspec.structs.replace(event, t=event.t_raised)
        return {"alarm": said(event), "link": self._context.link(raised)}

    async def _announce(self) -> None:
        transport, summary = self._context.transport, summary_topic(self._context.output)
        kept = {*self._wanted, summary} if self._wanted else set()
        gone = self._announced - kept
        # noted first: what is announced can always be taken back
        self._remember(kept | gone)
        posts = [transport.post(topic, b"", retain=True) for topic in sorted(gone)]
        posts += [transport.post(topic, msgspec.json.encode(told), retain=True) for topic, told in self._wanted.items()]
        if all(await asyncio.gather(*posts)):
            self._remember(kept)

    def _remembered(self, likely: set[str]) -> set[str]:
        """What an earlier run has announced; `likely`, when the file is damaged."""
        if self._memory is None:
            return set()
        try:
            data = self._memory.read_bytes()
        except FileNotFoundError:
            return set()
        except OSError as error:
            return self._damaged(f"not read: {error.strerror}", likely)
        try:
            # earlier versions wrote the list alone
            body = unseal(data)
            return set(from_json(data, list[str]) if data[:1] == b"[" else from_json(body or b"", _Announced).topics)
        except ForeignError:
            return self._damaged("damaged", likely)

    def _damaged(self, problem: str, likely: set[str]) -> set[str]:
        words = f"{MEMORY} is {problem}: sensors of earlier settings may stay in Home Assistant"
        log.warning("Home Assistant", extra=kv(problem=words))
        if self._context.state is not None:
            self._context.state.notes.append(words)
        return likely

    def _remember(self, topics: set[str]) -> None:
        self._announced = topics
        if self._memory is None:
            return
        problem = ""
        try:
            if topics:
                replace_file(self._memory, [seal(msgspec.json.encode(_Announced(sorted(topics))))])
            else:
                self._memory.unlink(missing_ok=True)
        except OSError as error:
            problem = error.strerror or str(error)
        if self._context.state is not None:
            self._context.state.fault(f"{MEMORY} not written", problem)


def _asked(config: Config) -> list[HomeAssistant]:
    """Also while it is off, if an earlier run has announced something that must be taken back."""
    state_dir, announced = config.sinks.state_dir, False
    # a disk that cannot be read says nothing; a later start takes it back
    with contextlib.suppress(OSError):
        announced = bool(state_dir) and (Path(state_dir) / MEMORY).exists()
    return [config.home_assistant] if config.home_assistant.enabled or announced else []


HOME_ASSISTANT = Declaration(
    name="home_assistant",
    help="a device in Home Assistant with a sensor for each kind of alarm, by MQTT discovery",
    settings=HomeAssistant,
    make=HomeAssistantSink,
    asked=_asked,
)
