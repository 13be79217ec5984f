"""What gpsd makes of NMEA sentences, live: our reading of its JSON is what pynmea2 reads in the sentences.

gpsd (Debian: gpsd) reads them from a pseudo-terminal, we ask it over TCP as the adapter does.
"""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
import time
import tty
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import xor

import pynmea2
import pytest
from waiting import end_program

from watchkeeper.config.adapters.gpsd import Gpsd as Settings
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.streams.adapters.navigation.gpsd import Gpsd, hello
from watchkeeper.streams.adapters.navigation.nmea import Nmea
from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.messages import COLUMN, Kind

GPSD = shutil.which("gpsd") or shutil.which("gpsd", path="/usr/sbin")
pytestmark = pytest.mark.skipif(GPSD is None, reason="needs gpsd")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
# gpsd hears nothing while it looks for the speed of the line: epochs are sent until enough of them came back.
EPOCHS, MOST, STEP_S, PATIENCE_S = 20, 500, 0.04, 30.0


def sentence(body: str) -> str:
    return f"${body}*{reduce(xor, body.encode()):02X}\r\n"


def epoch(k: int) -> list[str]:
    hhmmss = f"{NOON + timedelta(seconds=k):%H%M%S}.00"
    place = f"51{10 + 0.01 * k:07.4f},N,000{30 + 0.007 * k:07.4f},W"
    course, speed = 37.0 * k % 360.0, 10.0 + k / 10
    return [
        sentence(f"GPGGA,{hhmmss},{place},1,08,0.9,{80 + k:.1f},M,46.0,M,,"),
        sentence("GPGSA,A,3,02,05,07,09,13,15,18,30,,,,,1.7,0.9,1.4"),
        sentence(f"GPRMC,{hhmmss},A,{place},{speed:.2f},{course:.2f},010324,,,A"),
    ]


@pytest.fixture
def line() -> Iterator[tuple[int, int]]:
    """A terminal to write to, and the port on which gpsd answers."""
    ours, its = os.openpty()
    for end in (ours, its):
        tty.setraw(end)
    port = free_port()
    words = [str(GPSD), "-N", "-n", "-b", "-S", str(port), os.ttyname(its)]
    running = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    yield ours, port
    end_program(running)
    os.close(ours)
    os.close(its)


def connected(port: int) -> socket.socket:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1.0)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def rows(feed: Gpsd | Nmea) -> dict[float, dict[str, float]]:
    batch = feed.take()
    if batch is None:
        return {}
    cols = batch.kinds[Kind.GPS]
    return {
        float(cols.t[i]): {
            name: v for name, v in zip(COLUMN[Kind.GPS], cols.data[:, i].tolist(), strict=True) if not math.isnan(v)
        }
        for i in range(len(cols))
    }


def test_what_gpsd_says_is_what_the_receiver_said(line: tuple[int, int]) -> None:
    terminal, port = line
    feed, alone, found = Gpsd(), Nmea(), {}
    with connected(port) as client:
        client.sendall(hello(Settings(url=f"tcp://127.0.0.1:{port}")))
        client.settimeout(STEP_S)
        sent, until = 0, time.monotonic() + PATIENCE_S
        while len(found) < EPOCHS and sent < MOST and time.monotonic() < until:
            os.write(terminal, "".join(epoch(sent)).encode())
            sent += 1
            try:
                feed.push(client.recv(1 << 16), math.nan)
            except TimeoutError:
                continue
            found |= {t: values for t, values in rows(feed).items() if "gps_vx" in values}
    assert not feed.refused
    alone.push("".join(s for k in range(sent) for s in epoch(k)).encode(), math.nan)
    directly = rows(alone)
    assert len(found) >= EPOCHS
    for t, values in found.items():
        gga, _, rmc = (pynmea2.parse(each.strip()) for each in epoch(round(t - NOON.timestamp())))
        course, speed_ms = math.radians(rmc.true_course), rmc.spd_over_grnd * KT_MS
        assert (values["lat"], values["lon"]) == pytest.approx((gga.latitude, gga.longitude), abs=1e-8)
        assert values["alt_m"] == pytest.approx(gga.altitude, abs=1e-6)
        velocity = speed_ms * math.cos(course), speed_ms * math.sin(course)
        assert (values["gps_vx"], values["gps_vy"]) == pytest.approx(velocity, abs=2e-3)
        assert values["fix"] == 3.0
        # and as our own reader of NMEA has it
        for name in ("lat", "lon", "alt_m", "gps_vx", "gps_vy"):
            assert directly[t][name] == pytest.approx(values[name], abs=2e-3), name
