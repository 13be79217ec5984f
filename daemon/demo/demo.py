"""The demo: a broker, a simulator and the real daemon in one process, so that one command shows alarms.

The simulator speaks MQTT like any vehicle would, one message per sample, in real time, and the daemon is the same
`App` that `watchkeeper run` starts. Nothing is left behind unless a state directory is asked for.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.config.loader import load
from watchkeeper.daemon import logs
from watchkeeper.daemon.app import App
from watchkeeper.daemon.background import in_background
from watchkeeper.daemon.demo.broker import EmbeddedBroker
from watchkeeper.daemon.footprint import map_large_blocks
from watchkeeper.daemon.outputs.terminal import LiveView
from watchkeeper.daemon.replay import publish as feed
from watchkeeper.detectors.alarms.events import CLEARED, RAISED
from watchkeeper.streams.logs.pacing import Pacer, SystemClock
from watchkeeper.streams.simulate import simulate

# What a whole minute must show; a shorter run is only looked at.
PROOF_S = 60.0
PROOF_KINDS = ("conflict", "gps_imu", "silence")
# "Until Ctrl-C": the scenario goes round in cycles for as long as anybody watches.
WEEK_S = 7 * 86_400.0
ARRIVAL_TIMEOUT_S = 3.0
LOOK_S = 0.05
# Where lines stay: how long a wait must last before it is said, and how often what is waited for is said again.
BRIEF_S, REPEAT_S = 1.0, 3.0
URLS = {"look": "/", "metrics": "/metrics", "health": "/healthz", "ready": "/readyz"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. `seconds` None: until Ctrl-C."""

    seconds: float | None = None
    port: int = 9108
    seed: int = 0
    state_dir: Path | None = None


class Tally:
    """Alarms by kind, for the summary and the verdict."""

    def __init__(self, events: Mapping[tuple[str, str], int]) -> None:
        self.raised = Counter({kind: n for (kind, state), n in events.items() if state == RAISED})
        self.cleared = Counter({kind: n for (kind, state), n in events.items() if state == CLEARED})

    def lines(self) -> Iterator[str]:
        """The summary."""
        for kind in sorted(self.raised.keys() | set(PROOF_KINDS)):
            yield f"  {kind:<18} raised {self.raised[kind]:>3}   cleared {self.cleared[kind]:>3}"

    def missing(self) -> list[str]:
        """Kinds that were not both raised and cleared."""
        return [kind for kind in PROOF_KINDS if not (self.raised[kind] and self.cleared[kind])]


async def run(options: Options) -> int:
    """Run the demo; its exit code."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    print("starting broker, simulator and daemon …", flush=True)
    with tempfile.TemporaryDirectory(prefix="watchkeeper-demo-") as scratch:
        async with EmbeddedBroker() as broker:
            app = _daemon(options, broker, options.state_dir or Path(scratch))
            page = app.http
            url = (lambda: page.url) if page is not None else str
            view = LiveView(app.watched, url) if sys.stdout.isatty() else None
            if view is not None:
                app.router.others.append(view)
            daemon = asyncio.create_task(app.run(signals=False))
            show = asyncio.create_task(_show(app, broker, options, view))
            interruption = asyncio.create_task(interrupted.wait())
            try:
                await asyncio.wait([daemon, show, interruption], return_when=asyncio.FIRST_COMPLETED)
            finally:
                app.stop()
                await asyncio.wait([daemon])
                for task in (show, interruption):
                    task.cancel()
                await asyncio.wait([show, interruption])
                if view is not None:
                    view.close()
            # what failed, if anything did
            daemon.result()
            if not show.cancelled():
                show.result()
    tally = Tally(app.router.events)
    print("\n".join(("alarms:", *tally.lines())))
    proving = options.seconds is not None and options.seconds >= PROOF_S and not interrupted.is_set()
    if proving and tally.missing():
        print(f"FAILED, not raised and cleared: {', '.join(tally.missing())}")
        return 1
    return 0


def _daemon(options: Options, broker: EmbeddedBroker, state_dir: Path) -> App:
    # nats-server knows MQTT 3.1.1 only: not worth a warning on every demo
    transport = "aiomqtt" if broker.kind == "nats" else "mqtt5"
    overrides: dict[str, Any] = {
        "broker": {"url": broker.url, "client_id": "watchkeeper-demo", "transport": transport},
        # at a terminal the whole picture is drawn instead of lines
        "sinks": {"state_dir": str(state_dir), "terminal": not sys.stdout.isatty()},
        "http": {"host": "127.0.0.1", "port": _free_port(options.port)},
        "log": {"level": "warning"},
    }
    config = load(None, overrides=overrides)
    map_large_blocks()
    logs.set_up(config.log)
    return App(config)


def _free_port(wanted: int) -> int:
    """The wanted port, or 0 (any) when it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted


async def _show(app: App, broker: EmbeddedBroker, options: Options, view: LiveView | None) -> None:
    """Say where to look, wait until the daemon is ready, then play the scenario before it and the audience."""
    if app.http is not None:
        while not app.http.port:
            await asyncio.sleep(LOOK_S)
        print("".join(f"{name:<9}{app.http.url}{page}\n" for name, page in URLS.items()), end="")
    print(
        f"broker   {broker.url} ({broker.kind}), try: mosquitto_sub -p {broker.port} -v -t 'watchkeeper/#'", flush=True
    )
    await _ready(app)
    # compile the simulator now: its clock starts with its first sample
    await in_background("simulator", lambda: list(simulate("demo", seed=options.seed, seconds=1.0).batches()))
    async with asyncio.TaskGroup() as group:
        drawing = group.create_task(view.draw()) if view is not None else None
        await _simulate(app, broker, options)
        if drawing is not None:
            drawing.cancel()


async def _ready(app: App) -> None:
    """Wait until the daemon is, and say what it waits for: on a terminal in one line, else now and then."""
    said, said_s = "", -math.inf
    lasting, since_s = "", 0.0
    while reasons := app.condition.not_ready():
        words, now_s = reasons[0], time.monotonic()
        if sys.stdout.isatty():
            print(f"\r\x1b[K{words}", end="", flush=True)
        if (what := words.partition(":")[0]) != lasting:
            lasting, since_s = what, now_s
        # what is over in a moment, such as a connection that is being made, is no news
        due = now_s - since_s >= BRIEF_S or not said
        if not sys.stdout.isatty() and due and words != said and now_s - said_s >= REPEAT_S:
            print(words, flush=True)
            said, said_s = words, now_s
        await asyncio.sleep(LOOK_S)
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


async def _simulate(app: App, broker: EmbeddedBroker, options: Options) -> None:
    """Publish the scenario in real time, and wait until the daemon has received all of it."""
    scenario = simulate("demo", seed=options.seed, seconds=options.seconds or WEEK_S, t0=time.time())
    pacer = Pacer(1.0, SystemClock(), max_gap_s=60.0)
    published = await feed.publish(scenario.batches(), app.config, broker.url, pacer, by_sample=True)
    try:
        async with asyncio.timeout(ARRIVAL_TIMEOUT_S):
            while app.intake.received < published.messages:
                await asyncio.sleep(0.01)
    except TimeoutError:
        missing = published.messages - app.intake.received
        print(f"{missing} of {published.messages} messages did not arrive", file=sys.stderr)
