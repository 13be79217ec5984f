"""The daemon: builds the parts, runs them as one group of tasks, and brings them down in order.

    transport, sources → Intake → Pump (decoder, pipeline) → AlarmRouter → journal → MQTT and all other sinks
    next to them: HTTP, snapshots, dead letters

Start: take the state directory, restore the snapshot, let the journal correct its alarms, listen on HTTP, compile
(`warm_up`), and only then subscribe. Stop (SIGTERM, SIGINT): judge what has arrived, write and publish every alarm,
say "offline", save a snapshot; bounded by DRAIN_S. SIGHUP: see reload.py. If a task fails the daemon ends with
exit code 1, for its supervisor to restart it: half a watch is worse than a short gap.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import platform
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

from watchkeeper.config.loader import ConfigError
from watchkeeper.config.schema import Config
from watchkeeper.daemon import logs
from watchkeeper.daemon.background import end, in_background
from watchkeeper.daemon.families import Collect, gauge, gauges_by, totals_by
from watchkeeper.daemon.http.metrics import Metrics, journal_metrics, router_metrics, transport_metrics
from watchkeeper.daemon.http.pipeline_metrics import drop_metrics, pipeline_metrics
from watchkeeper.daemon.http.server import Health, HttpServer
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.ping import ping_gateways
from watchkeeper.daemon.intake.pump import Intake, Pump
from watchkeeper.daemon.intake.sources import LiveSource, source_metrics
from watchkeeper.daemon.live.view import Live, Totals, Watched
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context
from watchkeeper.daemon.outputs.catalog import make_sinks
from watchkeeper.daemon.outputs.journal import Journal, Past
from watchkeeper.daemon.outputs.journal_sink import JournalSink
from watchkeeper.daemon.outputs.mqtt import deliver_dead_letters
from watchkeeper.daemon.outputs.router import AlarmRouter
from watchkeeper.daemon.outputs.status import say_goodbye, say_hello, status_payload, status_topic
from watchkeeper.daemon.reload import merge
from watchkeeper.daemon.state.recovery import SNAPSHOT, Snapshots, recover, snapshot_metrics
from watchkeeper.daemon.state.snapshot import StateLock, fingerprint
from watchkeeper.daemon.supervisor import Supervisor
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.mqtt.transport import Will, make_transport

log = logging.getLogger(__name__)

# Within this time a stopping daemon is gone; what the broker has not taken by then goes out at the next start.
DRAIN_S = 6.0


class App:
    """One daemon. Building it takes the state directory (StateError: it cannot be had); `run` returns when stopped.

    `reload` reads the configuration again.
    """

    def __init__(self, config: Config, *, reload: Callable[[], Config] | None = None) -> None:
        self.config = config
        self.version = version("watchkeeper")
        self._load = reload
        self._state_dir = Path(config.sinks.state_dir) if config.sinks.state_dir else None
        self._lock = StateLock(self._state_dir) if self._state_dir else None
        self.journal = Journal(self._state_dir, fsync=config.sinks.journal_fsync) if self._state_dir else None
        self.metrics = Metrics()
        self.letters = DeadLetters(config.topics)
        self.intake = Intake(config.limits.queue_messages)
        ended: list[AlarmEvent] = []
        if self._state_dir is not None and self.journal is not None:
            self.pipeline, ended = recover(config, self._state_dir, self.journal)
        else:
            self.pipeline = Pipeline(config)
        self.transport = make_transport(
            config.broker,
            subscribe=[f"{config.topics.telemetry}/#"],
            on_message=self.intake.put,
            on_connect=self._connected,
            on_disconnect=self._disconnected,
            will=Will(status_topic(config.topics.output), status_payload("offline", self.version)),
        )
        self.watched = Watched(
            self.pipeline, self.version, self._totals, self._turn_s, self.not_ready, self._warnings, self._feeds
        )
        first = JournalSink(self.journal) if self.journal is not None else None
        self.router = AlarmRouter(first, make_sinks(config, self._context(first)))
        self.router.submit(ended, None)
        self.live = next(sink for sink in self.router.others if isinstance(sink, Live))
        self.snapshots = (
            Snapshots(self.pipeline, self._state_dir / SNAPSHOT, fingerprint(config)) if self._state_dir else None
        )
        self.pump = Pump(config, self.pipeline, self.intake, self.letters, self.router.submit)
        self.sources = [LiveSource(source, config, self.intake.put_batch) for source in config.sources]
        health = Health(
            self.version,
            self._status,
            self.not_ready,
            self._warnings,
            lambda: self.pump.alive,
            lambda: self.pump.age_s,
        )
        self.http = HttpServer(self.live, config.http, self.metrics.registry, health) if config.http.enabled else None
        self.supervisor = Supervisor()
        self.reloads: Counter[str] = Counter()
        self._warm = False
        self._stopping = asyncio.Event()
        self.metrics.parts += self._parts()

    def _parts(self) -> list[Collect]:
        """What each part has to say to Prometheus."""
        return [
            partial(pipeline_metrics, self.pipeline),
            lambda: drop_metrics(self.letters.counts, self.pipeline.drops, self.intake.drops),
            self.intake.metrics,
            self.pump.metrics,
            self.letters.metrics,
            partial(transport_metrics, self.transport),
            partial(source_metrics, self.sources),
            partial(router_metrics, self.router),
            partial(journal_metrics, self.journal),
            partial(snapshot_metrics, self.snapshots),
            self.live.metrics,
            self._metrics,
        ]

    def _context(self, first: JournalSink | None) -> Context:
        config = self.config
        context = Context(
            version=self.version,
            client_id=config.broker.client_id,
            output=config.topics.output,
            state_dir=self._state_dir,
            past=first.journal.past if first is not None else Past(),
            transport=self.transport,
            max_active=config.alarms.max_active,
            vehicles=lambda: len(self.pipeline.fleet),
            callsigns=lambda: self.pipeline.fleet.callsigns,
            watched=self.watched,
            on_latency=self.metrics.latency.observe,
        )
        return context if first is None else replace(context, confirm=first.confirm)

    # -- start ----------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Watch until `stop`. Raises OSError when the HTTP address is taken, an ExceptionGroup when a part fails."""
        if signals:
            self._handle_signals()
        try:
            if self.http is not None:
                await self.http.start()
                log.info("listening", extra=kv(url=self.http.url))
            await self._warm_up()
            if not self._stopping.is_set():
                await self._watch()
        finally:
            if self.http is not None:
                await self.http.stop()
            self.close()

    def close(self) -> None:
        """Give back files and locks; `run` does it by itself."""
        if self.router.first is not None:
            self.router.first.close()
        if self._lock is not None:
            self._lock.release()

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
        compiling = asyncio.create_task(in_background("warm-up", lambda: warm_up(self.config)))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([compiling, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if compiling.done():
            compiling.result()
            # what exists now, a compiler's worth of objects, stays: the collector need not walk it while alarms wait
            gc.collect()
            gc.freeze()
            self._warm = True
            log.info("warmed up", extra=kv(seconds=round(time.monotonic() - began, 2)))

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.transport.run(), name="transport"),
                *(group.create_task(sink.run(), name=sink.name) for sink in self.router.sinks),
                group.create_task(deliver_dead_letters(self.letters, self.transport, self.config), name="dead letters"),
                group.create_task(ping_gateways(self.pipeline, self.transport, lambda: self.config), name="ping"),
                group.create_task(self.supervisor.run(lambda: self.pump.alive, self._status), name="supervisor"),
                pump := group.create_task(self.pump.run(), name="pump"),
                *(group.create_task(source.run(), name=source.source.url) for source in self.sources),
            ]
            if self.snapshots is not None:
                saving = self.snapshots.run(self.config.sinks.snapshot_s)
                tasks.append(group.create_task(saving, name="snapshots"))
            self.supervisor.ready()
            await self._stopping.wait()
            self.supervisor.stopping()
            await self._drain(pump)
            await end(*tasks)

    # -- while it runs --------------------------------------------------------------------------------------

    def _connected(self) -> None:
        self.pump.online(True)
        say_hello(self.transport, self.config.topics.output, self.version)
        self.router.connected()

    def _disconnected(self) -> None:
        self.pump.online(False)
        self.router.disconnected()

    def not_ready(self) -> list[str]:
        """Why alarms cannot be relied on now; empty when they can."""
        if self._stopping.is_set():
            return ["stopping"]
        reasons = [] if self._warm else ["warming up"]
        if not self.transport.connected:
            reasons.append(f"not connected to the broker {self.config.broker.url} {self.transport.last_error}".strip())
        if self.router.first is not None:
            reasons += [f"journal {reason}" for reason in self.router.first.health()]
        return reasons

    def _warnings(self) -> list[str]:
        """What else is wrong: ways out that do not deliver, though alarms are raised, kept and published."""
        return self.router.warnings()

    def _status(self) -> str:
        state = ", ".join([*self.not_ready(), *self._warnings()]) or "watching"
        return f"{state}: {len(self.pipeline.fleet)} vehicles, {len(self.pipeline.active)} active alarms"

    def _metrics(self) -> Iterator[Metric]:
        yield gauge("ready", "1 while /readyz says yes", not self.not_ready())
        reloads = totals_by(["result"], "reloads", "Configuration reloads")
        for result in ("applied", "refused"):
            reloads.add_metric([result], self.reloads[result])
        yield reloads
        info = gauges_by(["version", "python", "transport"], "build_info", "Constant 1")
        info.add_metric([self.version, platform.python_version(), self.config.broker.transport], 1)
        yield info

    def _totals(self) -> Totals:
        """Counts for the live page."""
        dropped = sum(self.letters.counts.values()) + sum(self.pipeline.drops.values()) + self.intake.dropped
        return Totals(self.intake.received, dropped, len(self.intake), self.pump.busy_s)

    def _turn_s(self) -> float:
        turn_s, self.pump.recent_slice_s = self.pump.recent_slice_s, 0.0
        return turn_s

    def _feeds(self) -> list[dict[str, Any]]:
        """Where samples come from, for the live page: the broker, and receivers next to it."""
        broker = {"name": self.config.broker.url, "connected": self.transport.connected, "type": "broker"}
        sources = [{"name": s.source.url, "connected": s.connected, "type": s.source.type} for s in self.sources]
        return [broker, *sources]

    def reload(self) -> None:
        """Read the configuration again; a bad one changes nothing."""
        if self._load is None:
            return
        self.supervisor.reloading()
        self._reload(self._load)
        self.supervisor.ready()

    def _reload(self, load: Callable[[], Config]) -> None:
        try:
            config, changed, waiting = merge(self.config, load())
        except ConfigError as error:
            self.reloads["refused"] += 1
            for problem in error.problems:
                log.error("configuration refused", extra=kv(key=problem.key, problem=" ".join(str(problem).split())))
            return
        self.config = self.pump.config = config
        self.pipeline.retune(config)
        logs.set_up(config.log)
        self.reloads["applied"] += 1
        log.info("configuration reloaded", extra=kv(changed=",".join(changed) or "nothing"))
        if waiting:
            log.warning("these settings need a restart", extra=kv(keys=",".join(waiting)))

    # -- stop -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin the orderly end; `run` returns when it is done."""
        self._stopping.set()

    async def _drain(self, pump: asyncio.Task[None]) -> None:
        log.info("stopping", extra=kv(queued=len(self.intake)))
        try:
            async with asyncio.timeout(DRAIN_S):
                self.pump.stop()
                await asyncio.wait([pump])
                if self.snapshots is not None:
                    await self.snapshots.save()
                await self.router.flush()
                await say_goodbye(self.transport, self.config.topics.output, self.version)
        except TimeoutError:
            log.warning("stopped before everything was delivered", extra=kv(waiting=self._waiting()))
        log.info("stopped", extra=kv(unread=len(self.intake), undelivered=self._waiting()))

    def _waiting(self) -> int:
        return sum(sink.waiting for sink in self.router.sinks)
