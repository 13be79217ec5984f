"""`watchkeeper record OUT.wklog`: what the broker carries, to a log."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.config.masking import masked
from watchkeeper.config.schema import Config
from watchkeeper.daemon import logs
from watchkeeper.daemon.background import end
from watchkeeper.daemon.commands.arguments import mqtt_url
from watchkeeper.daemon.replay.publish import guest
from watchkeeper.streams.edge import Edge
from watchkeeper.streams.logs.exits import exits, fail
from watchkeeper.streams.logs.target import target_of
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.mqtt.transport import make_transport

HELP = "Write the telemetry that a broker carries to a .wklog, until Ctrl-C, SIGTERM or --seconds."
EXAMPLES = """\
examples:
  watchkeeper record flight.wklog
  watchkeeper record flight.wklog --broker mqtt://broker:1883 --seconds 600

A log is readable while it is being written, and up to the last second after a crash.
exit codes: 0 good, 1 failed (no broker at all, one that refuses the subscription, a full disk), 78 bad configuration
"""
# The log grows by a frame this often, so a crash loses no more than this.
FLUSH_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("out", metavar="OUT.wklog", type=Path, help="the log to write")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--broker", type=mqtt_url, metavar="URL", help="instead of the configuration's")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="stop after N seconds (default: at Ctrl-C or SIGTERM)"
    )
    parser.add_argument("--fsync", action="store_true", help="wait for the disk every second: survives a power cut")
    parser.add_argument("--force", action="store_true", help="replace an existing recording")


@exits
def main(args: argparse.Namespace) -> int:
    """Record; the exit code."""
    # a log that grows can be read at any moment: no other format can
    target_of(args.out, only="wklog")
    config = load(args.config)
    logs.set_up(config.log)
    if args.out.exists() and args.out.stat().st_size and not args.force:
        return fail(f"{args.out}: exists; --force replaces it")
    with LogWriter(args.out, fsync=args.fsync) as writer:
        recording = Recording(config, writer)
        asyncio.run(recording.run(args.broker, args.seconds))
    bad = ", ".join(f"{n:,} {reason}" for reason, n in sorted(recording.bad.items()))
    print(
        f"{args.out}: {writer.samples:,} samples in {recording.messages:,} messages, {writer.size_bytes:,} bytes; "
        f"bad payloads: {bad or 'none'}"
    )
    if recording.deaf:
        return fail("; ".join(recording.deaf))
    return 0 if recording.connected else fail(f"no broker at {masked(args.broker or config.broker.url)}")


class Recording:
    """One recording session: counts what arrived, and writes it."""

    def __init__(self, config: Config, writer: LogWriter) -> None:
        self.connected = False
        self.deaf: list[str] = []
        """Subscriptions that the broker refused to the end."""
        self.messages = 0
        self.bad: Counter[str] = Counter()
        self.stop = asyncio.Event()
        self._config = config
        self._writer = writer
        self._edge = Edge(config.topics, config.limits, self._refused)

    def _refused(self, _topic: str, reason: str, _payload: bytes) -> None:
        self.bad[reason] += 1

    def _message(self, topic: str, payload: bytes) -> None:
        self.messages += 1
        self._edge.add([(topic, payload, time.time())])

    def _connect(self) -> None:
        self.connected = True

    async def run(self, url: str | None, seconds: float | None) -> None:
        """Until a signal comes, the time is up, or somebody sets `stop`."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop.set)
        if seconds is not None:
            loop.call_later(seconds, self.stop.set)
        transport = make_transport(
            guest(self._config.broker, url),
            subscribe=[f"{self._config.topics.telemetry}/#"],
            on_message=self._message,
            on_connect=self._connect,
            max_payload_bytes=self._config.limits.max_payload_bytes + 1,
        )
        running = asyncio.create_task(transport.run())
        try:
            while not self.stop.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.stop.wait(), FLUSH_S)
                self._take()
        finally:
            await end(running)
        self.deaf = transport.health() if transport.deaf else []
        self._take()

    def _take(self) -> None:
        for batch in self._edge.take():
            self._writer.write(batch)
            self._writer.flush()
