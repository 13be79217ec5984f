"""Signals of autopilots: MAVLink messages and PX4 topics become named numbers, with mode and arming in words."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from watchkeeper.streams.adapters.vehicles.mavlink import Mavlink, open_tlog
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.signals import label_of, names_in

ardupilotmega = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega")
ARMED_AUTO = (2, 3, 128 | 1, 3, 4, 3)  # a quadrotor of ArduPilot, armed, custom mode 3: AUTO


def values(batch: Batch) -> dict[str, float]:
    cols = batch.kinds[Kind.SIGNAL]
    return dict(zip(names_in(cols.data[SIGNAL.name_0 :]), cols.data[SIGNAL.value].tolist(), strict=True))


def sent(*messages: object) -> bytes:
    mav = ardupilotmega.MAVLink(None, srcSystem=7, srcComponent=1)
    return b"".join(message.pack(mav) for message in messages)


def all_messages() -> list[object]:
    mav = ardupilotmega.MAVLink(None)
    return [
        mav.heartbeat_encode(*ARMED_AUTO),
        mav.sys_status_encode(0, 0, 0, 250, 15_200, 1_250, 80, 30, 0, 0, 0, 0, 0),
        mav.battery_status_encode(0, 0, 1, 3_100, [3_800, 3_790, 3_810] + [65_535] * 7, 1_200, 0, 0, 80),
        mav.vibration_encode(1_000_000, 12.0, 11.0, 14.0, 0, 0, 0),
        mav.esc_telemetry_1_to_4_encode(
            [40] * 4, [1_500] * 4, [300] * 4, [0] * 4, [5_000, 5_100, 5_050, 4_990], [1] * 4
        ),
        mav.radio_status_encode(180, 175, 90, 40, 42, 0, 0),
        mav.gps_raw_int_encode(1_000_000, 3, 474_000_000, 85_000_000, 500_000, 90, 90, 0, 0, 12, 0, 800, 900, 100, 0),
    ]


def test_every_message_is_read_with_its_units():
    feed = Mavlink()
    feed.push(sent(*all_messages()), 1_700_000_000.0)
    found = values(feed.take())
    assert label_of(found.pop("mode")) == "AUTO"
    expected = {
        "armed": 1.0, "battery.voltage_v": 15.2, "battery.current_a": 12.5, "battery.remaining": 0.8, "cpu.load": 0.25,
        "battery[0].cell_v[1]": 3.79, "battery[0].temperature_c": 31.0, "vibration.z": 14.0, "esc[1].rpm": 5100.0,
        "esc[3].current_a": 3.0, "radio.rssi": 180.0, "gps.fix": 3.0, "gps.sats": 12.0, "gps.eph_m": 0.8,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_only_chosen_signals_are_read_and_none_without_a_heartbeat():
    feed = Mavlink(signals=("battery*", "armed"))
    feed.push(sent(*all_messages()), 1_700_000_000.0)
    assert all(name.startswith(("battery", "armed")) for name in values(feed.take()))
    feed = Mavlink()
    feed.push(sent(*all_messages()[1:]), 1_700_000_000.0)
    assert Kind.SIGNAL not in feed.take().kinds
    feed = Mavlink(signals=())
    feed.push(sent(*all_messages()), 1_700_000_000.0)
    assert Kind.SIGNAL not in feed.take().kinds


def test_a_recording_of_a_ground_station_has_them_too(tmp_path):
    path = tmp_path / "flight.tlog"
    stamp = struct.pack(">Q", 1_700_000_000_000_000)
    path.write_bytes(b"".join(stamp + sent(message) for message in all_messages()))
    (batch,) = open_tlog(path).batches()
    assert values(batch)["battery.voltage_v"] == pytest.approx(15.2)


def test_a_px4_log_has_mode_arming_battery_and_motors(px4_logs):
    pyulog = pytest.importorskip("pyulog")
    path = px4_logs / "pyulog_sample_px4_events.ulg"
    batches = list(open_log(path).batches(1 << 20))
    cols = [batch.kinds[Kind.SIGNAL] for batch in batches if Kind.SIGNAL in batch.kinds]
    names = np.array([name for c in cols for name in names_in(c.data[SIGNAL.name_0 :])], object)
    found = np.concatenate([c.data[SIGNAL.value] for c in cols])
    log = pyulog.ULog(str(path), ["battery_status", "vehicle_status"])
    battery = next(d.data for d in log.data_list if d.name == "battery_status" and d.multi_id == 0)
    np.testing.assert_array_equal(np.sort(found[names == "battery[0].voltage_v"]), np.sort(battery["voltage_v"]))
    status = next(d.data for d in log.data_list if d.name == "vehicle_status" and d.multi_id == 0)
    np.testing.assert_array_equal(found[names == "armed"], (status["arming_state"] == 2).astype(float))
    assert {label_of(x) for x in found[names == "mode"].tolist()} <= {
        "MANUAL",
        "HOLD",
        "RETURN",
        "TAKEOFF",
        "LAND",
        "MISSION",
    }
