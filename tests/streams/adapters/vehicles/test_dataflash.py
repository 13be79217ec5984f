"""ArduPilot's flight logs: written here after the format's definition, read by us and by pymavlink's own reader."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymavlink.DFReader import DFReader_binary

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.vehicles.dataflash import utc_s
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.logs.told import Span, told_by
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.signals import label_of, names_in

# Codes of FMT, of those that are used here, as struct has them, and what a value is multiplied with to be written.
CODES = {
    "Q": ("Q", 1), "B": ("B", 1), "I": ("I", 1), "H": ("H", 1), "f": ("f", 1), "c": ("h", 100), "C": ("H", 100),
    "M": ("b", 1), "e": ("i", 100), "L": ("i", 1e7), "N": ("16s", None), "n": ("4s", None), "Z": ("64s", None),
}  # fmt: skip
# The messages as ArduPilot 4.5 defines them: number, name, format, columns.
MESSAGES = {
    "PARM": (32, "QNff", "TimeUS,Name,Value,Default"),
    "IMU": (131, "QBffffffIIfBBHH", "TimeUS,I,GyrX,GyrY,GyrZ,AccX,AccY,AccZ,EG,EA,T,GH,AH,GHz,AHz"),
    "GPS": (130, "QBBIHBcLLeffffB", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt,Spd,GCrs,VZ,Yaw,U"),
    "GPA": (133, "QBCCCCfBIHfHff", "TimeUS,I,VDop,HAcc,VAcc,SAcc,YAcc,VV,SMS,Delta,AEl,RTCMFU,RTCMFD,X"),
    "ATT": (140, "Qcccc", "TimeUS,DesRoll,Roll,DesPitch,Pitch"),
}
# What it logs besides its sensors.
STORY = {
    "MSG": (137, "QZ", "TimeUS,Message"),
    "MODE": (134, "QMBB", "TimeUS,Mode,ModeNum,Rsn"),
    "EV": (135, "QB", "TimeUS,Id"),
    "ERR": (136, "QBB", "TimeUS,Subsys,ECode"),
    "UBX1": (138, "QBHBBHI", "TimeUS,Instance,noisePerMS,jamInd,aPower,agcCnt,config"),
}
WEEK, START_MS = 2290, 345_600_000  # a Thursday in November 2023
HEAD = b"\xa3\x95"


def packed(code: str, value: Any) -> Any:
    _, scale = CODES[code]
    return value.encode() if scale is None else value if code == "f" else round(value * scale)


def message(name: str, *values: Any) -> bytes:
    number, form, _ = (MESSAGES | STORY)[name]
    body = [packed(code, value) for code, value in zip(form, values, strict=True)]
    return HEAD + bytes([number]) + struct.pack("<" + "".join(CODES[code][0] for code in form), *body)


def definitions(messages: dict[str, tuple[int, str, str]] = MESSAGES) -> Iterator[bytes]:
    yield HEAD + b"\x80" + struct.pack("<BB4s16s64s", 128, 89, b"FMT", b"BBnNZ", b"Type,Length,Name,Format,Columns")
    for name, (number, form, columns) in messages.items():
        size = 3 + struct.calcsize("<" + "".join(CODES[code][0] for code in form))
        yield HEAD + b"\x80" + struct.pack("<BB4s16s64s", number, size, name.encode(), form.encode(), columns.encode())


def flight(seconds: float = 4.0, *, timed: bool = True, system: int = 7) -> bytes:
    """A flight in a circle: 50 Hz of two IMUs, 5 Hz of GPS; the receiver knows the time after a second."""
    parts = list(definitions())
    parts.append(message("PARM", 1_000_000, "SYSID_THISMAV", float(system), 1.0))
    for k in range(int(seconds * 50)):
        us = 2_000_000 + 20_000 * k
        t = k / 50
        for i in range(2):
            rates, forces = (0.01 * math.sin(t), 0.02, 0.1 + i), (0.3, 0.1 * math.cos(t), -9.81)
            parts.append(message("IMU", us, i, *rates, *forces, 0, 0, 35.0, 1, 1, 1000, 1000))
        parts.append(message("ATT", us, 0, 1.5, 0, -2.5))
        if k % 10 == 0:
            knows = timed and t >= 1.0
            week, ms = (WEEK, START_MS + 20 * k) if knows else (0, 0)
            place = (48.1234567 + 1e-5 * t, -1.7654321, 123.45) if t >= 0.5 else (0.0, 0.0, 0.0)
            fix = 3 if knows else 0
            parts.append(
                message("GPS", us, 0, fix, ms, week, 14, 0.83, *place, 12.5, (10.0 * t) % 360.0, -0.75, 0.0, 1)
            )
            parts.append(message("GPA", us, 0, 1.2, 0.9, 1.4, 0.2, 0.0, 1, us // 1000, 200, 0.0, 0, 0.0, 0.0))
    return b"".join(parts)


def reference(path: Path, name: str) -> list[Any]:
    """What pymavlink's reader makes of the messages of the first instance."""
    reader = DFReader_binary(str(path))
    found = []
    while (m := reader.recv_match(type=name)) is not None:
        if m.I == 0:
            found.append(m)
    reader.close()
    return found


def read(path: Path) -> Batch:
    return join(list(open_log(path).batches(100)))


def values(batch: Batch, kind: Kind, name: str) -> Any:
    return batch.kinds[kind].data[COLUMN[kind][name]]


def test_values_and_times_are_those_of_the_reference_reader(tmp_path: Path) -> None:
    path = tmp_path / "00000007.BIN"
    path.write_bytes(flight())
    batch = read(path)
    imu, gps = reference(path, "IMU"), reference(path, "GPS")
    assert batch.ids == ["mav7"]
    assert len(imu) == len(batch.kinds[Kind.IMU]) == 200
    assert len(gps) == len(batch.kinds[Kind.GPS]) == 20
    for axis in "xyz":
        for ours, theirs in (("a", "Acc"), ("w", "Gyr")):
            wanted = [getattr(m, f"{theirs}{axis.upper()}") for m in imu]
            np.testing.assert_array_equal(values(batch, Kind.IMU, f"imu_{ours}{axis}"), wanted)
    flying = [m.Status >= 3 or m.Lat != 0 for m in gps]
    for ours, theirs in (("lat", "Lat"), ("lon", "Lng"), ("alt_m", "Alt")):
        wanted = np.where(flying, [getattr(m, theirs) for m in gps], np.nan)
        np.testing.assert_allclose(values(batch, Kind.GPS, ours), wanted, atol=1e-12)
    for ours, theirs in (("gps_vz", "VZ"), ("fix", "Status"), ("sats", "NSats"), ("hdop", "HDop")):
        np.testing.assert_allclose(values(batch, Kind.GPS, ours), [getattr(m, theirs) for m in gps], atol=1e-12)
    speed = np.hypot(values(batch, Kind.GPS, "gps_vx"), values(batch, Kind.GPS, "gps_vy"))
    np.testing.assert_allclose(speed, [m.Spd for m in gps])
    course = np.degrees(np.arctan2(values(batch, Kind.GPS, "gps_vy"), values(batch, Kind.GPS, "gps_vx"))) % 360.0
    np.testing.assert_allclose(course, [m.GCrs for m in gps], atol=1e-9)
    np.testing.assert_allclose(values(batch, Kind.GPS, "eph"), 0.9)
    np.testing.assert_allclose(values(batch, Kind.GPS, "epv"), 1.4)
    # pymavlink takes 18 leap seconds, which is right since 2017
    np.testing.assert_allclose(batch.kinds[Kind.IMU].t, [m._timestamp for m in imu], atol=1e-6)
    np.testing.assert_allclose(batch.kinds[Kind.GPS].t, [m._timestamp for m in gps], atol=1e-6)


@pytest.mark.parametrize(
    ("utc", "leap_s"),
    [
        ("2014-03-01T12:00:00Z", 16), ("2015-06-30T23:59:59Z", 16), ("2015-07-01T00:00:00Z", 17),
        ("2016-12-31T23:59:59Z", 17), ("2017-01-01T00:00:00Z", 18), ("2026-11-16T12:34:56.789Z", 18),
    ],
)  # fmt: skip
def test_gps_time_is_ahead_by_the_leap_seconds_of_its_day(utc: str, leap_s: int) -> None:
    then = datetime.fromisoformat(utc)
    gps_ms = round((then - datetime(1980, 1, 6, tzinfo=UTC)) / timedelta(milliseconds=1)) + 1000 * leap_s
    week, ms = divmod(gps_ms, 7 * 86_400_000)
    assert utc_s(week, ms) == pytest.approx(then.timestamp(), abs=1e-6)


def test_without_gps_time_a_log_counts_from_boot(tmp_path: Path) -> None:
    path = tmp_path / "indoor.bin"
    path.write_bytes(flight(timed=False))
    batch = read(path)
    assert batch.kinds[Kind.IMU].t[:3].tolist() == [2.0, 2.02, 2.04]


def test_info_and_convert_know_it_although_beast_has_the_same_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flight.bin"
    path.write_bytes(flight())
    assert main(["info", str(path)]) == 0
    assert "dataflash, " in capsys.readouterr().out
    assert main(["convert", str(path), str(tmp_path / "flight.wklog")]) == 0
    assert len(read(tmp_path / "flight.wklog")) == 220
    (tmp_path / "antenna.bin").write_bytes(b"\x1a3" + bytes(21))
    assert open_log(tmp_path / "antenna.bin").info().format == "beast"


def test_a_log_without_sensors_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.bin"
    path.write_bytes(b"".join(definitions()) + message("PARM", 1, "X", 1.0, 1.0))
    with pytest.raises(LogError, match=r"empty\.bin: no IMU and no GPS"):
        open_log(path)


LOG = flight(1.5)


@given(st.lists(st.tuples(st.integers(0, len(LOG)), st.binary(max_size=4)), max_size=8), st.integers(3, len(LOG)))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_log_is_read_as_far_as_it_goes_or_refused_by_name(
    tmp_path: Path, edits: list[tuple[int, bytes]], size: int
) -> None:
    data = bytearray(LOG[:size])
    for at, what in edits:
        data[at : at + len(what)] = what
    path = tmp_path / "damaged.bin"
    path.write_bytes(b"\xa3\x95\x80" + bytes(data[3:]))
    try:
        log = open_log(path)
    except LogError as error:
        assert "damaged.bin: " in str(error)  # noqa: PT017  either outcome is right
    else:
        for batch in log.batches():
            assert len(batch) <= 200


def test_modes_arming_failsafes_and_the_receivers_figures_are_told(tmp_path: Path) -> None:
    path = tmp_path / "flight.bin"
    told = [
        *list(definitions(STORY))[1:],
        message("MSG", 1_500_000, "ArduCopter V4.5.7 (2a3dc4b7)"),
        message("MODE", 2_000_000, 0, 0, 1),
        message("EV", 2_500_000, 10),
        message("MODE", 3_000_000, 6, 6, 2),
        message("ERR", 3_500_000, 6, 1),
        message("ERR", 4_000_000, 6, 0),
        message("ERR", 4_200_000, 11, 2),
        message("EV", 5_000_000, 11),
        message("UBX1", 4_500_000, 0, 97, 12, 1, 3000, 0),
        message("UBX1", 4_600_000, 1, 50, 200, 1, 3000, 0),
        message("MODE", 5_000_000, 99, 99, 1),
    ]
    path.write_bytes(flight(timed=False) + b"".join(told))
    found = told_by(open_log(path))
    end = float(read(path).t_max)
    assert found.vehicle == "mav7"
    assert found.spans == (
        Span("mode", "STABILIZE", 2.0, 3.0),
        Span("mode", "RTL", 3.0, 5.0),
        Span("mode", "mode 99", 5.0, end),
        Span("armed", "armed", 2.5, 5.0),
        Span("failsafe", "battery failsafe", 3.5, 4.0),
    )
    assert [(mark.t, mark.words) for mark in found.marks] == [
        (3.5, "battery failsafe (code 1)"),
        (4.2, "error of GPS (code 2)"),
    ]
    assert {figure.name: figure.value.tolist() for figure in found.figures} == {
        "receiver noise": [97.0], "jamming indicator": [12.0],
    }  # fmt: skip
    # and nothing of it is a sample
    plain = tmp_path / "plain.bin"
    plain.write_bytes(flight(timed=False))
    for kind, columns in read(plain).kinds.items():
        np.testing.assert_array_equal(read(path).kinds[kind].data, columns.data)


SIGNALS = {
    "MSG": STORY["MSG"],
    "MODE": STORY["MODE"],
    "EV": STORY["EV"],
    "BAT": (139, "QBfff", "TimeUS,Inst,Volt,Curr,RemPct"),
    "ESC": (141, "QBff", "TimeUS,Instance,RPM,Volt"),
    "VIBE": (142, "QBfff", "TimeUS,IMU,VibeX,VibeY,VibeZ"),
}


def test_battery_motors_mode_and_arming_are_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STORY", SIGNALS)
    path = tmp_path / "flight.bin"
    said = [
        *list(definitions(SIGNALS))[1:],
        message("MSG", 1_500_000, "ArduCopter V4.5.7 (2a3dc4b7)"),
        message("MODE", 2_000_000, 6, 6, 1),
        message("EV", 2_500_000, 10),
        message("BAT", 3_000_000, 1, 15.5, 12.25, 75.0),
        message("ESC", 3_000_000, 2, 5250.0, 15.25),
        message("VIBE", 3_000_000, 0, 8.0, 9.0, 10.0),
        message("VIBE", 3_000_000, 1, 88.0, 99.0, 77.0),
    ]
    path.write_bytes(flight(timed=False) + b"".join(said))
    cols = read(path).kinds[Kind.SIGNAL]
    found = dict(zip(names_in(cols.data[1:]), cols.data[0].tolist(), strict=True))
    assert label_of(found.pop("mode")) == "RTL"
    assert found == {
        "armed": 1.0, "battery[1].voltage_v": 15.5, "battery[1].current_a": 12.25, "battery[1].remaining": 0.75,
        "esc[2].rpm": 5250.0, "esc[2].voltage_v": 15.25, "vibration.x": 8.0, "vibration.y": 9.0, "vibration.z": 10.0,
        "gps.fix": 0.0, "gps.sats": 14.0,
    }  # fmt: skip
