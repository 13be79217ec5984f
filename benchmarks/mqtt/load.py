"""A load of ADS-B messages that costs the machine little: paced, one sample per message, raw MQTT on a socket.

Run as a process of its own (`python -m watchkeeper.benchmarks.mqtt.load`), so that what is measured elsewhere is not
what sending costs. Aircraft fly north in a wide formation and never conflict; every `probe_s` a fresh pair far
away from them is sent head-on, and the wall time at which its last sample was written is noted. Prints one JSON
object when done.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import socket
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from watchkeeper.daemon.demo.broker import EmbeddedBroker
from watchkeeper.streams.batch import F8

Encoding = Literal["json", "msgpack"]
SLICE_S = 0.005
GS_KT, ALT_FT = 450.0, 35_000.0
# after the last message: time for the broker's last acknowledgements
LINGER_S = 5.0
# A load that takes so many times as long as it should is one that nobody takes; and time for its process to start.
STALLS, START_S = 4.0, 20.0
# a conflict needs two reports of each aircraft
PROBE_STEPS = 4
PROBE_END_S = 0.5
_FIELDS = ("t", "lat", "lon", "alt_ft", "gs_kt", "trk_deg", "vs_fpm")


def mqtt_string(text: str) -> bytes:
    """Two bytes of length, then UTF-8."""
    data = text.encode()
    return struct.pack("!H", len(data)) + data


def mqtt_packet(head: int, body: bytes) -> bytes:
    """First byte, remaining length, body."""
    length, size = bytearray(), len(body)
    while size > 127:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([head]) + bytes(length) + body


def connect_packet(client_id: str) -> bytes:
    """CONNECT of MQTT 3.1.1: clean session, no keep-alive."""
    return mqtt_packet(0x10, mqtt_string("MQTT") + b"\x04\x02\x00\x00" + mqtt_string(client_id))


def publish_packet(topic: str, payload: bytes, *, qos: int = 0, packet_id: int = 1) -> bytes:
    """PUBLISH of MQTT 3.1.1."""
    return mqtt_packet(0x30 | qos << 1, mqtt_string(topic) + (struct.pack("!H", packet_id) if qos else b"") + payload)


class Packets:
    """PUBLISH packets of one fixed layout, filled in for many aircraft at once. Ids have six characters."""

    def __init__(self, encoding: Encoding, qos: int) -> None:
        self._encoding = encoding
        self._qos = qos
        self._next_id = 0
        topic = mqtt_string("telemetry/adsb/123456")
        if encoding == "json":
            self._payload = b"{" + b",".join(b'"%s":%%18.7f' % name.encode() for name in _FIELDS) + b"}"
            size = len(self._payload % ((0.0,) * len(_FIELDS)))
        else:
            # a map of seven short names, each with a big-endian float64
            keys = [bytes([0xA0 | len(name)]) + name.encode() + b"\xcb" for name in _FIELDS]
            keys[0] = bytes([0x80 | len(_FIELDS)]) + keys[0]
            size = sum(len(key) + 8 for key in keys)
        start = publish_packet("telemetry/adsb/123456", b"\0" * size, qos=qos)[: -size - 2 * (qos > 0) - 6]
        assert start.endswith(topic[:-6])
        head: list[tuple[str, str]] = [("start", f"S{len(start)}"), ("id", "S6")]
        head += [("packet_id", ">u2")] if qos else []
        constant: dict[str, bytes] = {"start": start}
        if encoding == "msgpack":
            for name, key in zip(_FIELDS, keys, strict=True):
                head += [(f"key_{name}", f"S{len(key)}"), (name, ">f8")]
                constant[f"key_{name}"] = key
        self._dtype, self._constant = np.dtype(head), constant

    def encode(self, ids: NDArray[np.bytes_], lat: F8, lon: F8, trk_deg: F8, t: float) -> bytes:
        """One packet for each aircraft, all measured at t."""
        rows = np.empty(len(ids), self._dtype)
        for name, value in self._constant.items():
            rows[name] = value
        rows["id"] = ids
        if self._qos:
            rows["packet_id"] = (self._next_id + np.arange(len(ids))) % 65_535 + 1
            self._next_id += len(ids)
        if self._encoding == "msgpack":
            columns = {"t": t, "lat": lat, "lon": lon, "alt_ft": ALT_FT, "gs_kt": GS_KT, "trk_deg": trk_deg}
            for name, column in columns.items():
                rows[name] = column
            rows["vs_fpm"] = 0.0
            return rows.tobytes()
        heads, step = rows.tobytes(), self._dtype.itemsize
        return b"".join(
            heads[i * step : (i + 1) * step] + self._payload % (t, y, x, ALT_FT, GS_KT, track, 0.0)
            for i, (y, x, track) in enumerate(zip(lat.tolist(), lon.tolist(), trk_deg.tolist(), strict=True))
        )


class Formation:
    """Aircraft on a lattice 15 NM by 30 NM around the equator, all flying north at one speed, in endless turns."""

    def __init__(self, vehicles: int, t0: float) -> None:
        n = np.arange(vehicles)
        self._ids: NDArray[np.bytes_] = np.char.mod("L%05d", n).astype("S6")
        self._lat: F8 = (-10.0 + 0.25 * (n // 250)).astype(np.float64)
        self._lon: F8 = (-62.0 + 0.5 * (n % 250)).astype(np.float64)
        self._t0 = t0
        self._next = 0

    def take(self, count: int, t: float) -> tuple[NDArray[np.bytes_], F8, F8, F8]:
        """The next aircraft whose turn it is: ids, lat, lon, track at time t."""
        rows = (self._next + np.arange(count)) % len(self._ids)
        self._next += count
        flown_deg = GS_KT * (t - self._t0) / 3600 / 60
        return self._ids[rows], self._lat[rows] + flown_deg, self._lon[rows], np.zeros(count)


def probe(k: int, step: int) -> tuple[NDArray[np.bytes_], F8, F8, F8]:
    """The next of the PROBE_STEPS samples of pair k: first one aircraft, then the other, then both again.

    Head-on, 19 NM apart, 77 s to the collision; in the tenth of a second that this takes they move 20 m. A position
    that is only repeated would not count as a report.
    """
    half, again = step % 2, step // 2
    name = np.array([f"P{k:04d}{'AB'[half]}"], "S6")
    lat, lon = -50.0 + 0.5 * (k // 300), -170.0 + k % 300 + 0.5 * half + 3e-4 * again * (1 - 2 * half)
    return name, np.array([lat]), np.array([lon]), np.array([270.0 if half else 90.0])


class Line:
    """A connection that only publishes. Acknowledgements are counted when there is time, not one by one."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LINGER_S)
        self._socket.connect(path)
        self._socket.sendall(connect_packet("watchkeeper-load"))
        if self._socket.recv(4) != b"\x20\x02\x00\x00":
            raise ConnectionError("the broker refused the load generator")
        # with a timeout Python would wait in spite of MSG_DONTWAIT
        self._socket.settimeout(None)
        self._acknowledged_bytes = 0
        self.send = self._socket.sendall

    def acknowledged(self) -> int:
        """Messages that the broker has acknowledged so far."""
        with suppress(BlockingIOError):
            self._acknowledged_bytes += len(self._socket.recv(1_048_576, socket.MSG_DONTWAIT))
        return self._acknowledged_bytes // 4

    def close(self) -> None:
        """Say goodbye."""
        self.send(b"\xe0\x00")
        self._socket.close()


def publish(args: argparse.Namespace) -> dict[str, Any]:
    """Send the load; returns what was sent, when, and what it cost."""
    line, packets = Line(args.line), Packets(args.encoding, args.qos)
    formation = Formation(args.vehicles, time.time())
    sent, total = 0, int(args.rate * args.seconds)
    probes: dict[str, float] = {}
    # the last pair needs traffic behind it: event time stands still when the messages stop
    pairs = min(10_000, int((args.seconds - PROBE_END_S) / args.probe_s)) if args.probe_s else 0
    steps, most_steps = 0, PROBE_STEPS * pairs
    start, start_cpu_s = time.monotonic(), time.process_time()
    while sent < total:
        elapsed, now = time.monotonic() - start, time.time()
        # one aircraft never twice at one time, even after the machine held us up
        due = min(total - sent, int(elapsed * args.rate) + steps - sent, args.vehicles)
        if due > 0:
            block = packets.encode(*formation.take(due, now), now)
            sent += due
            if steps < most_steps and steps < int(PROBE_STEPS * elapsed / args.probe_s):
                k, step = divmod(steps, PROBE_STEPS)
                block += packets.encode(*probe(k, step), now)
                steps, sent, total = steps + 1, sent + 1, total + 1
                if step == PROBE_STEPS - 1:
                    probes[f"P{k:04d}A~P{k:04d}B"] = now
            line.send(block)
            line.acknowledged()
        time.sleep(SLICE_S)
    seconds, cpu_s = time.monotonic() - start, time.process_time() - start_cpu_s
    deadline = time.monotonic() + LINGER_S
    while args.qos and line.acknowledged() < sent and time.monotonic() < deadline:
        time.sleep(0.05)
    acknowledged = line.acknowledged() if args.qos else sent
    line.close()
    return {"sent": sent, "acknowledged": acknowledged, "seconds": seconds, "cpu_s": cpu_s, "probes": probes}


@asynccontextmanager
async def broker() -> AsyncIterator[tuple[EmbeddedBroker, str]]:
    """A mosquitto, and the Unix socket on which it takes the load.

    It has one thread, which reads each packet with calls of its own: over TCP it is at its end at 55,000 to 60,000
    messages a second, and a measurement of anything behind it is one of the broker. Subscribers come by TCP.
    """
    with tempfile.TemporaryDirectory(prefix="watchkeeper-load-") as folder:
        line = f"{folder}/line"
        # started by root it would become another user, who may not enter the folder
        settings = [f"user {getpass.getuser()}", f"listener 0 {line}"]
        async with EmbeddedBroker(kind="mosquitto", settings=settings) as running:
            yield running, line


async def run(line: str, options: argparse.Namespace, *, probe_s: float = 0.0) -> dict[str, Any]:
    """The load in a process of its own (rate, seconds, vehicles, encoding, qos of the options); its report."""
    flags: dict[str, Any] = {"line": line, "probe-s": probe_s}
    flags |= {name: getattr(options, name) for name in ("rate", "seconds", "vehicles", "encoding", "qos")}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "watchkeeper.benchmarks.mqtt.load", *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(STALLS * options.seconds + START_S + LINGER_S):
            output, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise RuntimeError("the broker did not take the load in time: what it is read by has stopped") from error
    if process.returncode != 0:
        raise RuntimeError(f"the load generator failed with exit code {process.returncode}")
    report: dict[str, Any] = json.loads(output)
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line", required=True)
    parser.add_argument("--rate", type=float, default=5000.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument("--encoding", choices=("json", "msgpack"), default="msgpack")
    parser.add_argument("--qos", type=int, default=1)
    parser.add_argument("--probe-s", type=float, default=0.0)
    print(json.dumps(publish(parser.parse_args())))
