"""What the vehicles of one world do: tens of seconds with alarms that come and go at all times, and a quiet end.

Every aircraft and drone reports once a second, all of them in the same part of a second, so that the daemon has one
batch per second to judge: a world takes milliseconds. Scenes are numbered; a number always gives the same messages.

    pair     two aircraft that meet head-on and pass: `conflict`, `los`
    turning  two that would meet and turn away: `conflict` alone
    silent   a drone whose GPS stops for a while: `silence`
    jumping  an aircraft whose position jumps: `kinematics`
    steady   somebody about whom there is nothing to say
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import msgspec

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config

from chaos.broker import Message
from chaos.disk import STATE
from chaos.network import KEEPALIVE_S
from chaos.timeline import EPOCH_S, START_S

SCENES = 200
# The scene begins when the daemon has connected, and the end of it is quiet.
BEGIN_S = 5
BUSY_S = 42
QUIET_S = 18
END_S = BEGIN_S + BUSY_S + QUIET_S
T0 = START_S + EPOCH_S
# 450 kt are an eighth of a nautical mile per second.
NM_PER_S = 0.125

DEBOUNCE = {"n": 3, "m": 3, "clear_n": 3, "min_on_s": 2.0, "lost_s": 10.0}
SETTINGS: dict[str, Any] = {
    "broker": {"keepalive_s": KEEPALIVE_S, "reconnect_min_s": 0.2, "reconnect_max_s": 2.0},
    "fleet": {"max_vehicles": 16},
    "http": {"enabled": False},
    "sinks": {"terminal": False, "state_dir": STATE},
    # a thread of the real world writes it, which no seed decides; it has tests of its own for crashes and full disks
    "history": {"enabled": False},
    "alarms": {"update_s": 5.0},
    "detectors": {
        "conflict": {
            "max_pairs": 100,
            "horizon_s": 30.0,
            "caution_s": 20.0,
            "warning_s": 10.0,
            "separation_nm": 1.0,
            "debounce": DEBOUNCE,
        },
        "los": {"debounce": DEBOUNCE},
        "kinematics": {"debounce": DEBOUNCE},
        "silence": {"factor": 4.0},
        # nothing in the scenes for these to see
        "gnss_interference": {"enabled": False},
        "gps_imu": {"enabled": False},
        "intent": {"enabled": False},
    },
}


@cache
def config(*, expiry_s: int = 300, fsync: bool = False, queue: int = 200_000) -> Config:
    """The daemon's configuration: how long the broker keeps its session, whether input is synced, room for messages."""
    own: dict[str, Any] = {
        "broker": {"session_expiry_s": expiry_s},
        "sinks": {"input_fsync": fsync},
        "limits": {"queue_messages": queue},
    }
    return load(None, env={}, overrides={**SETTINGS, **{k: {**SETTINGS.get(k, {}), **v} for k, v in own.items()}})


@dataclass(frozen=True, slots=True)
class Scene:
    """Messages by vehicle, each with the second of the scene in which it is sent."""

    number: int
    vehicles: dict[str, tuple[tuple[float, str, bytes], ...]]

    def messages(self) -> dict[str, list[tuple[float, Message]]]:
        """Fresh messages for one world: by vehicle, with their times on the timeline."""
        return {
            name: [
                (START_S + at, Message(topic, payload, sender=name, t=round(T0 + at, 3))) for at, topic, payload in said
            ]
            for name, said in self.vehicles.items()
        }


@cache
def scene(number: int) -> Scene:
    """The scene of this number."""
    random = Random(number)
    vehicles: dict[str, tuple[tuple[float, str, bytes], ...]] = {}
    for i in range(random.choice((1, 1, 2))):
        vehicles.update(random.choice((_meeting, _turning))(random, i))
    vehicles["quad-1"] = _silent(random)
    if random.random() < 0.5:
        vehicles["jumper"] = _jumping(random)
    if random.random() < 0.5:
        vehicles["quad-2"] = _drone("quad-2", random, (0, 0))
    return Scene(number, vehicles)


def _seconds(phase_s: float) -> Iterator[float]:
    return (second + phase_s for second in range(BEGIN_S, END_S))


def _say(kind: str, name: str, at: float, fields: dict[str, float]) -> tuple[float, str, bytes]:
    return at, f"telemetry/{kind}/{name}", msgspec.json.encode({"t": round(T0 + at, 3), **fields})


def _aircraft(lat: float, lon: float, track_deg: float, alt_ft: float = 30_000) -> dict[str, float]:
    return {"lat": lat, "lon": lon, "alt_ft": alt_ft, "gs_kt": 450, "trk_deg": track_deg, "vs_fpm": 0}


Said = tuple[tuple[float, str, bytes], ...]


def _meeting(random: Random, row: int) -> Iterator[tuple[str, Said]]:
    """On a parallel of its own: closest at `meet`, then apart."""
    meet = BEGIN_S + random.uniform(20, BUSY_S - 12)
    for name, side in ((f"east-{row}", 1.0), (f"west-{row}", -1.0)):
        phase = random.uniform(0.1, 0.104)
        yield (
            name,
            tuple(
                _say("adsb", name, at, _aircraft(row * 5.0, side * NM_PER_S * (meet - at) / 60, 180 + side * 90))
                for at in _seconds(phase)
            ),
        )


def _turning(random: Random, row: int) -> Iterator[tuple[str, Said]]:
    """Turn north and south when they are still some miles apart."""
    meet = BEGIN_S + random.uniform(28, BUSY_S - 5)
    turn = meet - random.uniform(8, 15)
    for name, side in ((f"north-{row}", 1.0), (f"south-{row}", -1.0)):
        phase = random.uniform(0.1, 0.104)
        said = []
        for at in _seconds(phase):
            flown = max(0.0, at - turn)
            lon = side * NM_PER_S * (meet - min(at, turn)) / 60
            lat = row * 5.0 + side * NM_PER_S * flown / 60
            track = 180 + side * 90 if not flown else 90 - side * 90
            said.append(_say("adsb", name, at, _aircraft(lat, lon, track)))
        yield name, tuple(said)


def _jumping(random: Random) -> Said:
    """Its position is elsewhere every other second for a while."""
    first = BEGIN_S + random.uniform(8, 24)
    last = first + random.uniform(8, 14)
    phase = random.uniform(0.1, 0.104)
    said = []
    for at in _seconds(phase):
        off = 1.0 if first < at < last and int(at) % 2 else 0.0
        lon = 20 + NM_PER_S * at / 60
        said.append(_say("adsb", "jumper", at, _aircraft(-20.0 + off, lon, 90)))
    return tuple(said)


def _silent(random: Random) -> Said:
    """A drone that says nothing for a while, once or twice."""
    first = BEGIN_S + random.uniform(10, 24)
    return _drone("quad-1", random, (first, first + random.uniform(7, 15)))


def _drone(name: str, random: Random, silent: tuple[float, float]) -> Said:
    phase = random.uniform(0.1, 0.104)
    return tuple(
        _say("gps", name, at, {"gps_x": 0.1 * at, "gps_y": 0, "gps_z": -50, "gps_vx": 0.1, "gps_vy": 0, "gps_vz": 0})
        for at in _seconds(phase)
        if not silent[0] < at < silent[1]
    )
