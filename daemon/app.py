"""The daemon: builds the parts, runs them as one group of tasks, and brings them down in order.

    transport, sources → Intake → Pump (decoder, pipeline) → AlarmRouter → journal → MQTT and all other sinks
    next to them: HTTP, snapshots, dead letters

Start: take the state directory, restore the snapshot, listen on HTTP, compile (`warm_up`), put the input log through
the pipeline, let the journal correct its alarms, and only then subscribe. Stop (SIGTERM, SIGINT): stop reading, judge
what was delivered, write and publish every alarm, save a snapshot, acknowledge, say "offline"; bounded by DRAIN_S.
SIGHUP: see reload.py. If a task fails the daemon ends with exit code 1, for its supervisor to restart it: half a watch
is worse than a short gap.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from watchkeeper.config.masking import masked
from watchkeeper.config.schema import Config
from watchkeeper.daemon.background import end, in_background
from watchkeeper.daemon.collector import keep_what_exists
from watchkeeper.daemon.compiling import compile_kernels
from watchkeeper.daemon.condition import Condition
from watchkeeper.daemon.families import Collect
from watchkeeper.daemon.footprint import give_back
from watchkeeper.daemon.handles import Handles
from watchkeeper.daemon.history.history import FILE as HISTORY_FILE
from watchkeeper.daemon.history.history import History, history_metrics
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.metrics import Metrics, journal_metrics, router_metrics, transport_metrics
from watchkeeper.daemon.http.pipeline_metrics import drop_metrics, pipeline_metrics
from watchkeeper.daemon.http.server import Health, HttpServer
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.hearing import Hearing
from watchkeeper.daemon.intake.ping import ping_gateways
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.intake.refusals import Refusals
from watchkeeper.daemon.intake.sources import LiveSource, source_metrics
from watchkeeper.daemon.live.view import Live, RefusedError, Watched
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context
from watchkeeper.daemon.outputs.catalog import make_sinks
from watchkeeper.daemon.outputs.coverage import CoverageTopics
from watchkeeper.daemon.outputs.fence import fenced
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.journal_sink import JournalSink
from watchkeeper.daemon.outputs.link import alarm_link, page_address
from watchkeeper.daemon.outputs.mqtt import deliver_dead_letters
from watchkeeper.daemon.outputs.readback.echo import Echo, Showing
from watchkeeper.daemon.outputs.router import AlarmRouter
from watchkeeper.daemon.outputs.status import say_goodbye, say_hello, status_payload, status_topic
from watchkeeper.daemon.reload import Reloader
from watchkeeper.daemon.state.folder import StateFolder, state_metrics
from watchkeeper.daemon.state.memory import Memory
from watchkeeper.daemon.supervisor import Supervisor
from watchkeeper.daemon.troubles import WARMING, WORKERS, Troubles
from watchkeeper.daemon.workers import watch_over
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.engines.workers.pipeline import SpreadPipeline
from watchkeeper.streams.adapters.catalog import rehearse
from watchkeeper.streams.codec import decode
from watchkeeper.streams.mqtt.transport import Will, make_transport

log = logging.getLogger(__name__)

# Within this time a stopping daemon is gone; what the broker has not taken by then goes out at the next start.
DRAIN_S = 6.0
# How long a daemon that failed tries to say so to the broker.
GOODBYE_S = 1.0
# How long the answer to an acceptance waits for the disk.
ACCEPT_S = 2.0


class App:
    """One daemon. Building it takes the state directory (StateError: it must not); `run` returns when stopped.

    `reload` reads the configuration again; `workers`: vehicles are judged by so many processes, 0: by this one.
    """

    def __init__(self, config: Config, *, reload: Callable[[], Config] | None = None, workers: int = 0) -> None:
        self.config = config
        self.version = version("watchkeeper")
        self.state = StateFolder(Path(config.sinks.state_dir)) if config.sinks.state_dir else None
        self.journal = self._open_journal()
        self.metrics = Metrics()
        self.letters = DeadLetters(config.topics)
        self.intake = Intake(config.limits.queue_messages)
        self.memory = Memory(config, self.state, self.journal, workers)
        self.pipeline = self.memory.pipeline
        self._spread = self.pipeline if isinstance(self.pipeline, SpreadPipeline) else None
        self.refusals = Refusals(config.topics, self.pipeline)
        self.letters.also = self.refusals.refused
        self.hearing = Hearing(config, lambda: self.intake.received + self.intake.dropped + self.intake.repeated)
        self.echo = Echo(
            config.topics,
            config.broker.client_id,
            lambda: self.transport.received,
            half_blind=lambda: self.transport.half_blind,
        )
        self.transport = make_transport(
            config.broker,
            subscribe=[f"{config.topics.telemetry}/#"],
            own=self.echo.filters,
            on_message=self._heard,
            on_connect=self._connected,
            on_disconnect=self._disconnected,
            will=Will(status_topic(config.topics.output), status_payload("offline", self.version)),
            manual_ack=True,
            # one more than is allowed is enough to be refused for it
            max_payload_bytes=config.limits.max_payload_bytes + 1,
        )
        self.condition = condition = Condition(self)
        self.troubles = Troubles(lambda: self.config, condition.own_reasons, condition.own_warnings, self._submit)
        if self.journal is not None:
            self.troubles.adopt(self.journal.past.active)
        self.watched = Watched(
            self.pipeline,
            self.version,
            condition.totals,
            condition.turn_s,
            condition.not_ready,
            condition.warnings,
            condition.feeds,
            alarms=lambda: self.troubles.active,
            accept=self._accept,
        )
        self.coverage = CoverageTopics(self.pipeline, self.transport, lambda: self.config.topics.output)
        first = JournalSink(self.journal) if self.journal is not None else None
        sinks = make_sinks(config, self._context(first))
        self.history = self._open_history()
        self.router = AlarmRouter(first, [*sinks, *([fenced(self.history)] if self.history is not None else [])])
        self.echo.showing = [x for x in (*(sink.inside for sink in sinks), self.coverage) if isinstance(x, Showing)]
        self.live = next(sink.inside for sink in sinks if isinstance(sink.inside, Live))
        if self.history is not None:
            self.history.show_on(self.live)
        self.pump = Pump(config, self.pipeline, self.intake, self.letters, self._submit)
        self.memory.attach(self.pump, self.transport)
        self.sources = [LiveSource(source, config, self.intake.put_batch) for source in config.sources]
        health = Health(
            self.version,
            condition.status,
            condition.not_ready,
            condition.warnings,
            lambda: self.pump.alive,
            lambda: self.pump.age_s,
        )
        self.served = Served(self.live, lambda: self.config, self.history)
        self.http = HttpServer(self.served, config.http, self.metrics.registry, health) if config.http.enabled else None
        self.handles = Handles()
        self.supervisor = Supervisor()
        self.reload = Reloader(reload, self.supervisor, lambda: self.config, self._retune)
        self._stopping = asyncio.Event()
        self._said_goodbye = False
        self.metrics.parts += self._parts()

    def _parts(self) -> list[Collect]:
        """What each part has to say to Prometheus."""
        return [
            partial(pipeline_metrics, self.pipeline, self.watched.active),
            lambda: drop_metrics(self.letters.counts, self.pipeline.drops, self.intake.drops),
            self.intake.metrics,
            self.pump.metrics,
            self.letters.metrics,
            partial(transport_metrics, self.transport),
            self.echo.metrics,
            partial(source_metrics, self.sources),
            partial(router_metrics, self.router),
            partial(journal_metrics, self.journal),
            partial(state_metrics, self.state),
            partial(history_metrics, self.history),
            self.memory.metrics,
            self.live.metrics,
            self.condition.metrics,
            *([self.http.door.metrics, self.http.gate.metrics] if self.http is not None else []),
        ]

    def _open_journal(self) -> Journal | None:
        if self.state is None:
            return None
        return Journal(self.state.path, fsync=self.config.sinks.journal_fsync, check=self.state.check)

    def _open_history(self) -> History | None:
        """The history, which begins to look on; None without a state directory."""
        if self.state is None or not self.config.history.enabled:
            return None
        history = History(self.state.path / HISTORY_FILE, self.config.history, self.pipeline)
        history.writer.check = lambda: self.state.trouble if self.state is not None else ""
        self.state.on_return.append(history.writer.reopen)
        self.pipeline.on_evidence = history.recorder.take
        return history

    def _context(self, first: JournalSink | None) -> Context:
        config = self.config
        context = Context(
            version=self.version,
            client_id=config.broker.client_id,
            output=config.topics.output,
            state_dir=self.state.path if self.state is not None else None,
            state=self.state,
            past=first.journal.past if first is not None else Past(),
            transport=self.transport,
            max_active=config.alarms.max_active,
            vehicles=lambda: len(self.pipeline.fleet),
            callsigns=lambda: self.pipeline.fleet.callsigns,
            watched=self.watched,
            on_latency=self.metrics.latency.observe,
            posted=self.echo.posted,
            shows=self.echo.shows,
            link=self._link,
            shelved=lambda event: self.live.desk.shelves.of(event) is not None,
        )
        return context if first is None else replace(context, confirm=first.confirm)

    def _link(self, event: AlarmEvent) -> str:
        # the port that was asked for may be "any": the server knows which one it became
        port = self.http.port if self.http is not None else 0
        return alarm_link(page_address(self.config.http, port), event)

    # -- start ----------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Watch until `stop`. Raises OSError when the HTTP address is taken, an ExceptionGroup when a part fails."""
        if signals:
            self._handle_signals()
            self.handles.start(asyncio.get_running_loop())
        try:
            if self.http is not None:
                await self.http.start()
                log.info("listening", extra=kv(url=self.http.url))
                for words in self.http.gate.warnings():
                    log.warning("refuses other machines", extra=kv(problem=words))
            await self._warm_up()
            if self.history is not None:
                past = self.journal.past if self.journal is not None else Past()
                self.history.start((*past.ended, *past.active))
            self.router.submit(await self._relive(), None)
            self.live.desk.settle()
            if not self._stopping.is_set():
                await self._watch()
        finally:
            if self.http is not None:
                await self.http.stop()
            self.close()

    async def _relive(self) -> list[AlarmEvent]:
        """Put the input that no snapshot has through the pipeline again; the history has seen most of it."""
        if self.history is not None:
            self.history.recorder.reliving = True
        try:
            return await self.memory.relive(self._stopping.is_set)
        finally:
            if self.history is not None:
                self.history.recorder.reliving = False

    def close(self) -> None:
        """Give back files and locks; `run` does it by itself."""
        self.handles.stop()
        if self.history is not None:
            self.history.close()
        self.memory.close()
        if self._spread is not None:
            self._spread.close()
        if self.router.first is not None:
            self.router.first.close()
        if self.state is not None:
            self.state.release()

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            # a second one means it: back to the default, which ends the process at once
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, self.reload)

    async def _warm_up(self) -> None:
        """Compile every kernel before the first message; /readyz answers meanwhile, and `stop` is obeyed."""
        began = time.monotonic()

        def work() -> None:
            compile_kernels(self.config, said=self._compiled)
            warm_up(self.config)
            decode.warm_up()
            for source in self.config.sources:
                rehearse(source)
            if self._spread is not None:
                self.condition.warming = WORKERS
                self._spread.start()

        compiling = asyncio.create_task(in_background("warm-up", work))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([compiling, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if compiling.done():
            compiling.result()
            # the collector need not walk it while alarms wait
            gc.collect()
            keep_what_exists()
            give_back()
            self.condition.warm = True
            log.info("warmed up", extra=kv(seconds=round(time.monotonic() - began, 2)))

    def _compiled(self, done: int, most: int) -> None:
        self.condition.warming = f"{WARMING}: {done} of at most {most} kernels compiled, once per version"

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as group:

            def begin(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
                return group.create_task(self._or_goodbye(work), name=name)

            tasks = [
                group.create_task(self.transport.run(), name="transport"),
                *(begin(sink.run(), sink.name) for sink in self.router.tasks),
                begin(deliver_dead_letters(self.letters, self.transport, self.config), "dead letters"),
                begin(ping_gateways(self.pipeline, self.transport, lambda: self.config), "ping"),
                begin(self.supervisor.run(lambda: self.pump.alive, self.condition.status), "supervisor"),
                pump := begin(self.pump.run(), "pump"),
                *(sources := [begin(s.run(), masked(s.source.url)) for s in self.sources]),
                begin(self.memory.run(), "snapshots"),
                begin(self.troubles.run(), "troubles"),
                begin(self.echo.run(self.transport, self.router.connected, self.coverage.connected), "echo"),
                *([begin(self.coverage.run(), "coverage")] if self.config.sinks.mqtt else []),
                *([begin(watch_over(self._spread), "workers")] if self._spread is not None else []),
            ]
            self.supervisor.ready()
            await self._stopping.wait()
            self.supervisor.stopping()
            await self._drain(pump, sources)
            await end(*tasks)

    async def _or_goodbye(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task. If it fails the daemon ends, and whoever listens hears that it does."""
        try:
            await work
        except Exception:
            self._said_goodbye = True
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await say_goodbye(self.transport, self.config.topics.output, self.version)
            raise

    # -- while it runs --------------------------------------------------------------------------------------

    def _submit(self, events: list[AlarmEvent], arrived_s: float | None) -> None:
        self.router.submit(events, arrived_s)
        self.memory.note(events)

    async def _accept(self, vehicle: str) -> list[AlarmEvent]:
        """A person accepts a lasting state of this vehicle; returns when a crash would not undo it."""
        async with self.pump.turn:
            if not self.pump.running:
                raise RefusedError("the daemon is starting or stopping: try again")
            events = self.pump.accept(vehicle)
        # a disk that does not answer is a trouble of its own
        with suppress(TimeoutError):
            async with asyncio.timeout(ACCEPT_S):
                await self.memory.keeper.written()
        return events

    def _heard(self, topic: str, payload: bytes) -> None:
        """Every message from the broker: input, or what others hear of us."""
        if self.echo.is_ours(topic):
            self.echo.put(topic, payload)
            self.memory.keeper.other()
        else:
            self.intake.put(topic, payload)

    def _connected(self) -> None:
        if self._said_goodbye:
            # the line broke before the broker had confirmed it: "offline" goes out again, and nothing after it
            return
        self.pump.online(not self.transport.deaf)
        self.memory.connected(session_kept=self.transport.session_kept)
        self.hearing.connected()
        self.echo.connected(say_hello(self.transport, self.config, self.version))
        self.router.connected()
        self.coverage.connected()

    def _disconnected(self) -> None:
        self.pump.online(False)
        self.memory.disconnected()
        self.hearing.disconnected()
        self.echo.disconnected()
        self.router.disconnected()

    def _retune(self, config: Config) -> None:
        """Judge by other live settings from now on."""
        # workers that judge something now judge it by the old settings
        self._submit(self.pipeline.settle(), None)
        try:
            self.pipeline.retune(config)
        except Exception:
            self.pipeline.retune(self.config)
            raise
        self.config = self.pump.config = config

    # -- stop -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin the orderly end; `run` returns when it is done."""
        self.condition.stopping = True
        self._stopping.set()

    async def _drain(self, pump: asyncio.Task[None], sources: list[asyncio.Task[None]]) -> None:
        log.info("stopping", extra=kv(queued=len(self.intake)))
        # first of all: what arrives from now on stays with the broker
        self.transport.stop_reading()
        await end(*sources)
        try:
            async with asyncio.timeout(DRAIN_S):
                await self.memory.stop(pump)
                await self.router.flush()
                await self.memory.save()
                self._said_goodbye = True
                await say_goodbye(self.transport, self.config.topics.output, self.version)
        except TimeoutError:
            log.warning("stopped before everything was delivered", extra=kv(waiting=self._waiting()))
        log.info("stopped", extra=kv(unread=len(self.intake), undelivered=self._waiting()))

    def _waiting(self) -> int:
        return sum(sink.waiting for sink in self.router.sinks)
