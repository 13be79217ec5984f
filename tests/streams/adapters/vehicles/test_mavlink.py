"""MAVLink: what pymavlink sends is what we read, in our units; a recording gives what its own reader gives."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as dialect

from watchkeeper.streams.adapters.vehicles.mavlink import Mavlink, Tlog
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Kind

Sample = tuple[Kind, str, float, dict[str, float]]


def samples(*batches: Batch | None) -> list[Sample]:
    """(kind, id, t, fields that are there), in order of arrival."""
    found = []
    for batch in batches:
        rows = []
        for kind, cols in (batch.kinds if batch else {}).items():
            for i in range(len(cols)):
                values = {name: float(cols.data[c, i]) for name, c in COLUMN[kind].items()}
                there = {name: value for name, value in values.items() if not math.isnan(value)}
                assert batch is not None
                rows.append((int(cols.seq[i]), (kind, batch.ids[cols.vid[i]], float(cols.t[i]), there)))
        found += [row for _, row in sorted(rows, key=lambda row: row[0])]
    return found


def sender(system: int = 7) -> Any:
    return dialect.MAVLink(None, srcSystem=system, srcComponent=1)


def highres(mav: Any, boot_s: float, **values: float) -> bytes:
    body = {"xacc": 0.0, "yacc": 0.0, "zacc": -9.81, "xgyro": 0.1, "ygyro": 0.2, "zgyro": -0.3, **values}
    rest = dict.fromkeys(("xmag", "ymag", "zmag", "abs_pressure", "diff_pressure", "pressure_alt", "temperature"), 0.0)
    message = dialect.MAVLink_highres_imu_message(int(boot_s * 1e6), **body, **rest, fields_updated=0)
    return bytes(message.pack(mav))


def gps(mav: Any, boot_s: float, **values: int) -> bytes:
    body = {"fix_type": 3, "lat": 473_977_420, "lon": 85_455_940, "alt": 488_123, "eph": 121, "epv": 200, "vel": 500,
            "cog": 9000, "satellites_visible": 10, "h_acc": 1500, "v_acc": 2500, **values}  # fmt: skip
    return bytes(dialect.MAVLink_gps_raw_int_message(int(boot_s * 1e6), **body).pack(mav))


def test_imu_and_gps_in_si_units_and_unix_time() -> None:
    feed, mav = Mavlink(via="pixhawk"), sender()
    feed.push(highres(mav, 10.0), 1000.0)
    feed.push(gps(mav, 10.1), 1000.3)  # 0.2 s late
    batch = feed.take()
    (kind, name, t, imu), (_, _, t_gps, fix) = samples(batch)
    assert (kind, name, t) == (Kind.IMU, "mav7", 1000.0)
    assert imu == pytest.approx(
        {"imu_ax": 0, "imu_ay": 0, "imu_az": -9.81, "imu_wx": 0.1, "imu_wy": 0.2, "imu_wz": -0.3}
    )
    assert t_gps == pytest.approx(1000.1)
    assert fix == pytest.approx(
        {"lat": 47.397742, "lon": 8.545594, "alt_m": 488.123, "gps_vx": 0.0, "gps_vy": 5.0, "fix": 3, "sats": 10,
         "hdop": 1.21, "eph": 1.5, "epv": 2.5}, abs=1e-9,
    )  # fmt: skip
    assert batch is not None
    assert batch.vias == ["pixhawk"]


def test_unix_time_is_taken_as_it_is_and_unknown_values_are_absent() -> None:
    feed, mav = Mavlink(), sender()
    feed.push(gps(mav, 1.7e9, vel=65535, cog=65535, satellites_visible=255, eph=65535, h_acc=0, v_acc=0), 5.0)
    ((_, _, t, fix),) = samples(feed.take())
    assert t == 1.7e9
    assert fix.keys() == {"lat", "lon", "alt_m", "fix"}


def test_milli_g_are_converted_and_give_way_to_a_better_imu() -> None:
    feed, mav = Mavlink(), sender()
    raw = dialect.MAVLink_raw_imu_message(2_000_000, 0, 0, -1000, 1000, 0, 0, 0, 0, 0).pack(mav)
    feed.push(raw, 1.0)
    feed.push(highres(mav, 2.1), 1.1)
    feed.push(raw, 1.2)
    first, second = samples(feed.take())
    assert (first[3]["imu_az"], first[3]["imu_wx"]) == pytest.approx((-9.80665, 1.0))
    assert second[3]["imu_az"] == pytest.approx(-9.81)


def test_traffic_that_a_vehicle_hears() -> None:
    feed, mav = Mavlink(), sender()
    valid = 1 | 2 | 4 | 8 | 16 | 32 | 128
    message = dialect.MAVLink_adsb_vehicle_message(
        0x4CA7B3, 510_000_000, -5_000_000, 0, 3_048_000, 9000, 10_288, 508, b"EIN4TR\0\0\0", 0, 2, valid, 7700
    )
    feed.push(message.pack(mav), 1000.0)
    batch = feed.take()
    ((kind, name, t, values),) = samples(batch)
    assert (kind, name, t) == (Kind.ADSB, "4ca7b3", 998.0)
    expected = {
        "lat": 51.0,
        "lon": -0.5,
        "alt_ft": 10_000,
        "gs_kt": 199.98,
        "trk_deg": 90,
        "vs_fpm": 1000,
        "squawk": 7700,
    }
    assert values == pytest.approx(expected, rel=1e-4)
    assert batch is not None
    assert batch.callsigns == {"4ca7b3": "EIN4TR"}


def remote_id(mav: Any, mac: bytes, name: bytes) -> bytes:
    packed: bytes = mav.open_drone_id_basic_id_encode(0, 0, mac.ljust(20, b"\0"), 1, 2, name.ljust(20, b"\0")).pack(mav)
    return packed


def location(mav: Any, mac: bytes, **values: Any) -> bytes:
    known = {
        "status": 2, "direction": 9000, "speed_horizontal": 1500, "speed_vertical": -100, "latitude": 515_000_000,
        "longitude": -5_000_000, "altitude_barometric": 120.0, "altitude_geodetic": 165.0, "height_reference": 0,
        "height": 40.0, "horizontal_accuracy": 12, "vertical_accuracy": 4, "barometer_accuracy": 4, "speed_accuracy": 3,
        "timestamp": 3599.5, "timestamp_accuracy": 1,
    }  # fmt: skip
    message = mav.open_drone_id_location_encode(0, 0, mac.ljust(20, b"\0"), **(known | values))
    packed: bytes = message.pack(mav)
    return packed


def test_remote_id_of_drones() -> None:
    feed, mav = Mavlink(), sender()
    hour = 1_709_294_400.0
    feed.push(location(mav, b"mac1"), hour)  # whose?
    for mac, name in ((b"mac1", b"1581F5FJD229400"), (b"mac2", b"FIN87astrdge12k8")):
        feed.push(remote_id(mav, mac, name), hour)
    feed.push(location(mav, b"mac1"), hour + 0.2)
    unknown = {"altitude_barometric": -1000.0, "direction": 36_100, "speed_horizontal": 25_500, "speed_vertical": 6300}
    feed.push(location(mav, b"mac2", **unknown, status=0, horizontal_accuracy=0, timestamp=10.0), hour + 11.0)
    feed.push(location(mav, b"mac2", latitude=0, longitude=0), hour)
    first, second = samples(feed.take())
    assert first[:3] == (Kind.ADSB, "1581F5FJD229400", hour - 0.5)
    assert first[3] == pytest.approx({
        "lat": 51.5, "lon": -0.5, "alt_ft": 120 / 0.3048, "gs_kt": 15 * 3600 / 1852, "trk_deg": 90.0,
        "vs_fpm": -1 / 0.3048 * 60, "nacp": 11, "on_ground": 0, "category": 14,
    })  # fmt: skip
    assert second[1:3] == ("FIN87astrdge12k8", hour + 10.0)
    assert second[3] == pytest.approx({"lat": 51.5, "lon": -0.5, "alt_ft": 165 / 0.3048, "category": 14})
    assert feed.refused == {"bad_id": 1, "missing_field": 1}


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_noise_never_raises_and_what_follows_is_read(noise: bytes) -> None:
    feed, mav = Mavlink(), sender()
    feed.push(noise, 1.0)
    feed.push(b"\0" * 300, 1.0)  # enough to end whatever frame the noise seemed to begin
    for k in range(3):
        feed.push(highres(mav, 10.0 + k), 1.0 + k)
    assert samples(feed.take())


def write_tlog(path: Path, packets: list[tuple[float, bytes]]) -> None:
    path.write_bytes(b"".join(struct.pack(">Q", int(t * 1e6)) + packet for t, packet in packets))


def test_a_recording_gives_what_its_own_reader_gives(tmp_path: Path) -> None:
    mav, packets = sender(3), []
    for k in range(200):
        t = 1.7e9 + 0.02 * k
        packets.append((t, highres(mav, 50.0 + 0.02 * k, xacc=0.1 * k)))
        if k % 10 == 0:
            packets.append((t, gps(mav, 50.0 + 0.02 * k, lat=473_977_420 + k)))
    path = tmp_path / "flight.tlog"
    write_tlog(path, packets)
    theirs = mavutil.mavlink_connection(os.fspath(path), dialect="ardupilotmega")
    expected = []
    while message := theirs.recv_match(type=["HIGHRES_IMU", "GPS_RAW_INT"]):
        value = message.xacc if message.get_type() == "HIGHRES_IMU" else message.lat * 1e-7
        expected.append((message._timestamp, value))
    source = open_log(path)
    ours = samples(*source.batches())
    assert len(ours) == len(expected) == 220
    for (kind, name, t, values), (stamp, value) in zip(ours, expected, strict=True):
        assert name == "mav3"
        assert t == pytest.approx(stamp, abs=1e-5)
        assert values["imu_ax" if kind is Kind.IMU else "lat"] == pytest.approx(value)
    assert source.info().problems == ()


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_recording_is_the_same_however_it_is_cut(data: st.DataObject) -> None:
    mav = sender()
    stream = b"".join(struct.pack(">Q", 10**15 + k) + highres(mav, 5.0 + k) for k in range(8))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    whole, pieces = Tlog(), Tlog()
    whole.push(stream, math.nan)
    for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        pieces.push(stream[a:b], math.nan)
    assert samples(whole.take()) == samples(pieces.take())


def test_a_cut_recording_is_read_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    mav = sender()
    packets = [(1.7e9 + k, highres(mav, 5.0 + k)) for k in range(5)]
    path = tmp_path / "cut.tlog"
    write_tlog(path, packets)
    path.write_bytes(path.read_bytes()[:-10])
    source = open_log(path)
    assert len(samples(*source.batches())) == 4
    assert "1 messages not used" in source.info().problems[0]
