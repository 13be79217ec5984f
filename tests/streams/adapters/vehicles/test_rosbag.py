"""ROS recordings, written by rosbags' own writers in every form, read by us and by rosbags' own reader."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

from watchkeeper.daemon.cli import main
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, SIGNAL, Kind
from watchkeeper.streams.signals import names_in

T0 = 1_700_000_000
FORMS = ("ros1", "sqlite3", "mcap")
Written = list[tuple[str, str, float, Any]]


def store(form: str) -> Any:
    return get_typestore(Stores.ROS1_NOETIC if form == "ros1" else Stores.ROS2_HUMBLE)


class Make:
    """Messages of one kind of ROS."""

    def __init__(self, form: str) -> None:
        self._form, self._types = form, store(form).types

    def _of(self, name: str, *args: Any, **named: Any) -> Any:
        return self._types[name](*args, **named)

    def _header(self, t: float) -> Any:
        stamp = self._of("builtin_interfaces/msg/Time", sec=int(t), nanosec=round((t % 1.0) * 1e9))
        extra = {"seq": 0} if self._form == "ros1" else {}
        return self._of("std_msgs/msg/Header", stamp=stamp, frame_id="base_link", **extra)

    def _vector(self, x: float, y: float, z: float) -> Any:
        return self._of("geometry_msgs/msg/Vector3", x=x, y=y, z=z)

    def imu(self, t: float, *, measured: bool = True) -> Any:
        zero = np.zeros(9)
        known = zero if measured else np.array([-1.0, *zero[1:]])
        return self._of(
            "sensor_msgs/msg/Imu",
            header=self._header(t),
            orientation=self._of("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0),
            orientation_covariance=zero,
            angular_velocity=self._vector(0.1, 0.2 * math.sin(t), 0.3),
            angular_velocity_covariance=zero,
            linear_acceleration=self._vector(1.0, math.cos(t), 9.81),
            linear_acceleration_covariance=known,
        )

    def fix(self, t: float, status: int = 0) -> Any:
        return self._of(
            "sensor_msgs/msg/NavSatFix",
            header=self._header(t),
            status=self._of("sensor_msgs/msg/NavSatStatus", status=status, service=1),
            latitude=48.0 + 1e-6 * (t % 100.0),
            longitude=11.0,
            altitude=520.5,
            position_covariance=np.diag([4.0, 9.0, 16.0]).ravel(),
            position_covariance_type=2,
        )

    def velocity(self, t: float) -> Any:
        twist = self._of("geometry_msgs/msg/Twist", linear=self._vector(3.0, 4.0, 0.5), angular=self._vector(0, 0, 0))
        return self._of("geometry_msgs/msg/TwistStamped", header=self._header(t), twist=twist)

    def battery(self, t: float, volt: float) -> Any:
        nothing = math.nan
        return self._of(
            "sensor_msgs/msg/BatteryState", header=self._header(t), voltage=volt, current=-12.5, charge=nothing,
            capacity=nothing, design_capacity=nothing, percentage=0.8, power_supply_status=2, power_supply_health=1,
            power_supply_technology=3, present=True, cell_voltage=np.array([volt / 2, volt / 2], np.float32),
            location="", serial_number="", temperature=31.0, cell_temperature=np.array([], np.float32),
        )  # fmt: skip

    def temperature(self, t: float, celsius: float) -> Any:
        return self._of("sensor_msgs/msg/Temperature", header=self._header(t), temperature=celsius, variance=0.0)

    def number(self, value: float) -> Any:
        return self._of("std_msgs/msg/Float64", data=value)

    def diagnostics(self, t: float) -> Any:
        pair = self._types["diagnostic_msgs/msg/KeyValue"]
        status = self._types["diagnostic_msgs/msg/DiagnosticStatus"](
            level=0, name="esc 1", message="ok", hardware_id="",
            values=[pair(key="rpm", value="5200"), pair(key="temp", value="41.5 C"), pair(key="state", value="on")],
        )  # fmt: skip
        return self._of("diagnostic_msgs/msg/DiagnosticArray", header=self._header(t), status=[status])


def write(folder: Path, form: str, messages: Written) -> Path:
    """The messages, (topic, type, recorded at, message), with rosbags' writer of this form."""
    types = store(form)
    path = folder / ("flight.bag" if form == "ros1" else form)
    if form == "ros1":
        writer: Any = Writer1(path)
    else:
        writer = Writer2(path, version=9, storage_plugin=getattr(StoragePlugin, form.upper()))
    with writer:
        lines: dict[str, Any] = {}
        for topic, kind, recorded, message in messages:
            if topic not in lines:
                lines[topic] = writer.add_connection(topic, kind, typestore=types)
            data = types.serialize_ros1(message, kind) if form == "ros1" else types.serialize_cdr(message, kind)
            writer.write(lines[topic], round(recorded * 1e9), data)
    return path


def flight(form: str, names: tuple[str, ...] = ("",), seconds: float = 2.0) -> Written:
    """50 Hz of IMU, 5 Hz of fixes and velocities; recorded 40 ms after they were measured."""
    make, found = Make(form), []
    for k in range(int(50 * seconds)):
        t = T0 + k / 50
        for name in names:
            found.append((f"{name}/imu/data", "sensor_msgs/msg/Imu", t + 0.04, make.imu(t)))
            if k % 10 == 0:
                found.append((f"{name}/gps/fix", "sensor_msgs/msg/NavSatFix", t + 0.04, make.fix(t)))
                found.append((f"{name}/gps/vel", "geometry_msgs/msg/TwistStamped", t + 0.04, make.velocity(t)))
            found.append((f"{name}/gps/cmd_vel", "geometry_msgs/msg/TwistStamped", t + 0.04, make.velocity(t)))
    return found


def read(path: Path) -> Batch:
    return join(list(open_log(path).batches(33)))


def values(batch: Batch, kind: Kind, name: str) -> Any:
    return batch.kinds[kind].data[COLUMN[kind][name]]


def reference(path: Path, topic: str) -> list[Any]:
    with AnyReader([path]) as reader:
        wanted = [c for c in reader.connections if c.topic == topic]
        return [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(wanted)]


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_the_reference_reader_in_our_frames(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, form, flight(form))
    batch = read(path)
    imu, fix = reference(path, "/imu/data"), reference(path, "/gps/fix")
    assert batch.ids == [path.stem]
    assert (len(imu), len(fix)) == (100, 10) == (len(batch.kinds[Kind.IMU]), len(batch.kinds[Kind.GPS]))
    for axis, sign in (("x", 1.0), ("y", -1.0), ("z", -1.0)):  # forward, left, up to forward, right, down
        np.testing.assert_array_equal(
            values(batch, Kind.IMU, f"imu_a{axis}"), [sign * getattr(m.linear_acceleration, axis) for m in imu]
        )
        np.testing.assert_array_equal(
            values(batch, Kind.IMU, f"imu_w{axis}"), [sign * getattr(m.angular_velocity, axis) for m in imu]
        )
    for ours, theirs in (("lat", "latitude"), ("lon", "longitude"), ("alt_m", "altitude")):
        np.testing.assert_array_equal(values(batch, Kind.GPS, ours), [getattr(m, theirs) for m in fix])
    stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in fix]
    np.testing.assert_allclose(batch.kinds[Kind.GPS].t, stamps, atol=1e-6, rtol=0.0)
    for name, wanted in (("gps_vx", 4.0), ("gps_vy", 3.0), ("gps_vz", -0.5), ("fix", 3.0), ("epv", 4.0)):
        np.testing.assert_array_equal(values(batch, Kind.GPS, name), wanted)  # north, east, down
    np.testing.assert_allclose(values(batch, Kind.GPS, "eph"), math.sqrt(6.5))
    assert open_log(path).info().problems == ()


@pytest.mark.parametrize("form", FORMS)
def test_a_level_of_topics_with_both_sensors_is_a_vehicle(tmp_path: Path, form: str) -> None:
    extra = [("/ground/gps/fix", "sensor_msgs/msg/NavSatFix", T0, Make(form).fix(T0))]
    path = write(tmp_path, form, flight(form, ("/uav1", "/uav2")) + extra)
    log = open_log(path)
    batch = join(list(log.batches()))
    assert sorted(batch.ids) == ["uav1", "uav2"]
    assert np.bincount(batch.kinds[Kind.IMU].vid).tolist() == [100, 100]
    assert log.info().problems == ("also there, and not read: /ground/gps/fix",)


def test_single_files_of_ros_2_and_commands_know_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("sqlite3", "mcap"):
        folder = write(tmp_path, form, flight(form))
        file = next(f for f in folder.iterdir() if f.suffix in (".db3", ".mcap"))
        for path in (folder, file):
            assert main(["info", str(path)]) == 0
            assert ": ros, " in capsys.readouterr().out
        assert main(["convert", str(folder), str(tmp_path / "out.wklog")]) == 0
        assert len(read(tmp_path / "out.wklog")) == 110


@pytest.mark.parametrize("form", ["ros1", "mcap"])
def test_a_stamp_of_nothing_is_the_time_of_recording_and_what_was_not_measured_is_absent(
    tmp_path: Path, form: str
) -> None:
    make = Make(form)
    messages = [
        ("/imu", "sensor_msgs/msg/Imu", T0 + 1.0, make.imu(0.0)),
        ("/imu", "sensor_msgs/msg/Imu", T0 + 2.0, make.imu(T0 + 1.5, measured=False)),
        ("/fix", "sensor_msgs/msg/NavSatFix", T0 + 3.0, make.fix(T0 + 2.5, status=-1)),
    ]
    batch = read(write(tmp_path, form, messages))
    assert batch.kinds[Kind.IMU].t.tolist() == [T0 + 1.0, T0 + 1.5]
    assert np.isnan(values(batch, Kind.IMU, "imu_ax")).tolist() == [False, True]
    assert values(batch, Kind.GPS, "fix").tolist() == [0.0]
    assert np.isnan(values(batch, Kind.GPS, "gps_vx")).all()


def test_a_bag_without_sensors_and_a_file_that_is_none_say_so(tmp_path: Path) -> None:
    only = [m for m in flight("mcap") if m[0] == "/gps/cmd_vel"]
    with pytest.raises(LogError, match="no topic of type NavSatFix or Imu"):
        open_log(write(tmp_path, "mcap", only))
    for name in ("x.bag", "x.db3", "x.mcap"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(LogError, match=rf"{name}: not a ROS bag, or damaged"):
            open_log(tmp_path / name)


@pytest.fixture(scope="module", params=["ros1", "mcap"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    path = write(tmp_path_factory.mktemp("whole"), request.param, flight(request.param, seconds=0.5))
    file = path if path.is_file() else next(path.glob("*.mcap"))
    return file.suffix, file.read_bytes()


@given(st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=6), st.floats(0.05, 1.0))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_bag_is_read_as_far_as_it_goes_or_refused_by_name(
    tmp_path: Path, whole: tuple[str, bytes], edits: list[tuple[float, bytes]], share: float
) -> None:
    suffix, good = whole
    data = bytearray(good[: int(share * len(good))])
    for at, what in edits:
        start = int(at * len(data))
        data[start : start + len(what)] = what
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(bytes(data))
    try:
        log = open_log(path)
    except LogError as error:
        assert f"damaged{suffix}: " in str(error)  # noqa: PT017  either outcome is right
    else:
        assert sum(len(batch) for batch in log.batches()) <= 28


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_signals(tmp_path: Path, form: str) -> None:
    make, messages = Make(form), flight(form, ("/uav1",), 1.0)
    for k in range(10):
        t = T0 + k / 10
        messages += [
            ("/uav1/battery", "sensor_msgs/msg/BatteryState", t + 0.04, make.battery(t, 8.0)),
            ("/uav1/motor/temp", "sensor_msgs/msg/Temperature", t + 0.04, make.temperature(t, 40.0 + k)),
            ("/uav1/pump/bar", "std_msgs/msg/Float64", t + 0.04, make.number(math.nan if k == 5 else 2.0)),
            ("/uav1/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", t + 0.04, make.diagnostics(t)),
            ("/ground/level", "std_msgs/msg/Float64", t + 0.04, make.number(1.0)),
        ]
    log = open_log(write(tmp_path, form, sorted(messages, key=lambda m: m[2])))
    batch = join(list(log.batches(1 << 20)))
    cols = batch.kinds[Kind.SIGNAL]
    assert {batch.ids[i] for i in cols.vid.tolist()} == {"uav1"}
    found: dict[str, list[tuple[float, float]]] = {}
    for i, name in enumerate(names_in(cols.data[SIGNAL.name_0 :])):
        found.setdefault(name, []).append((float(cols.t[i]), float(cols.data[SIGNAL.value, i])))
    assert set(found) == {
        "battery.temperature_c", "battery.voltage_v", "battery.current_a", "battery.remaining", "battery.cell_v[0]",
        "battery.cell_v[1]", "motor.temp.temperature_c", "pump.bar", "esc_1.rpm", "esc_1.temp",
    }  # fmt: skip
    assert found["motor.temp.temperature_c"] == [(pytest.approx(T0 + k / 10), 40.0 + k) for k in range(10)]
    # without a stamp the time of recording
    assert found["pump.bar"][0] == (pytest.approx(T0 + 0.04), 2.0)
    assert len(found["pump.bar"]) == 9
    assert found["esc_1.temp"][0][1] == 41.5
    assert "/ground/level" in str(log.info().problems)
