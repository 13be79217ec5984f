"""Small whole logs of vehicles, for the corpus: written by the formats' libraries, or by hand where none writes."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

T0 = 1_700_000_000


def ulog() -> bytes:
    """PX4: definitions, two topics, some data."""

    def message(kind: str, body: bytes) -> bytes:
        return struct.pack("<HB", len(body), ord(kind)) + body

    def info(key: str, value: bytes) -> bytes:
        return message("I", bytes([len(key)]) + key.encode() + value)

    imu = "sensor_combined:uint64_t timestamp;float[3] gyro_rad;float[3] accelerometer_m_s2;uint8_t[4] _padding0;"
    gps = (
        "vehicle_gps_position:uint64_t timestamp;uint64_t time_utc_usec;int32_t lat;int32_t lon;int32_t alt;"
        "float vel_n_m_s;float vel_e_m_s;float vel_d_m_s;float eph;float epv;float hdop;uint8_t fix_type;"
        "uint8_t satellites_used;bool vel_ned_valid;"
    )
    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1000)]
    parts += [message("B", bytes(40)), info("char[12] sys_uuid", b"0123456789ab"), info("float ratio", bytes(4))]
    parts += [message("F", text.encode()) for text in (imu, gps)]
    parts += [message("P", b"\x0dfloat P_GAINX" + bytes(4))]
    parts += [message("A", b"\0" + struct.pack("<H", k) + name) for k, name in
              enumerate((b"sensor_combined", b"vehicle_gps_position"))]  # fmt: skip
    for k in range(12):
        us = 1_000_000 + 20_000 * k
        parts.append(message("D", struct.pack("<HQ6f", 0, us, 0.1, 0.2, 0.3, 0.1, 0.1, -9.8)))
        if k % 4 == 0:
            place = struct.pack("<iii", 481234567, -17654321, 123450)
            parts.append(message("D", struct.pack("<HQQ", 1, us, T0 * 10**6 + us) + place + struct.pack(
                "<6fBB?", 1.0, 2.0, -0.5, 0.8, 1.2, 0.7, 3, 14, True)))  # fmt: skip
        if k == 6:
            parts.append(message("S", b"\x2f\x73\x13\x20\x25\x0c\xbb\x12"))
            parts.append(message("L", b"6" + struct.pack("<Q", us) + b"armed"))
    return b"".join(parts)


_MESSAGES = {
    "PARM": (32, "QNff", "TimeUS,Name,Value,Default", "<Q16sff"),
    "IMU": (131, "QBffffff", "TimeUS,I,GyrX,GyrY,GyrZ,AccX,AccY,AccZ", "<QBffffff"),
    "GPS": (130, "QBBIHBcLLeffff", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt,Spd,GCrs,VZ,Yaw", "<QBBIHBhiiiffff"),
    "GPA": (133, "QBCCCC", "TimeUS,I,VDop,HAcc,VAcc,SAcc", "<QBHHHH"),
}


def dataflash() -> bytes:
    """ArduPilot: definitions, then messages."""

    def message(name: str, *values: Any) -> bytes:
        number, _, _, packing = _MESSAGES[name]
        return b"\xa3\x95" + bytes([number]) + struct.pack(packing, *values)

    def definitions() -> Iterator[bytes]:
        packing = "<BB4s16s64s"
        yield b"\xa3\x95\x80" + struct.pack(packing, 128, 89, b"FMT", b"BBnNZ", b"Type,Length,Name,Format,Columns")
        for name, (number, form, columns, own) in _MESSAGES.items():
            size = 3 + struct.calcsize(own)
            yield b"\xa3\x95\x80" + struct.pack(packing, number, size, name.encode(), form.encode(), columns.encode())

    parts = [*definitions(), message("PARM", 1_000_000, b"SYSID_THISMAV", 7.0, 1.0)]
    for k in range(10):
        us = 2_000_000 + 20_000 * k
        parts.append(message("IMU", us, 0, 0.1, 0.2, 0.3, 0.1, 0.1, -9.8))
        if k % 4 == 0:
            place = (481234567, -17654321, 12345)
            parts.append(message("GPS", us, 0, 3, 345_600_000 + 20 * k, 2290, 14, 83, *place, 12.5, 90.0, -0.75, 0.0))
            parts.append(message("GPA", us, 0, 120, 90, 140, 20))
    return b"".join(parts)


def tlog() -> bytes:
    """A ground station's recording."""
    from pymavlink.dialects.v20 import ardupilotmega as mav  # noqa: PLC0415

    line = mav.MAVLink(None, srcSystem=1, srcComponent=1)
    parts = []
    for k in range(6):
        imu = mav.MAVLink_raw_imu_message(1_000_000 * k, 10, -5, -1000, 1, 2, 3, 0, 0, 0)
        gps = mav.MAVLink_gps_raw_int_message(
            1_000_000 * k, 3, 473_977_420, 85_455_940, 488_000, 80, 120, 250, 9000, 11
        )
        other = mav.MAVLink_adsb_vehicle_message(
            0x4CA7B3, 473_977_420, 85_455_940, 0, 10_000_000, 9000, 20_000, 0, b"EIN12", 3, 1, 255, 1000
        )
        stamp = struct.pack(">Q", T0 * 10**6 + 10**6 * k)
        parts += [stamp + sent.pack(line) for sent in (imu, gps, other)]
    return b"".join(parts)


def bags(form: str) -> list[bytes]:
    """ROS recordings as rosbags writes them, plain and packed."""
    from rosbags.rosbag1 import Writer as Writer1  # noqa: PLC0415
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin  # noqa: PLC0415
    from rosbags.rosbag2 import Writer as Writer2  # noqa: PLC0415
    from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

    store = get_typestore(Stores.ROS1_NOETIC if form == "ros1" else Stores.ROS2_HUMBLE)
    found = []
    for packing in ("none", "lz4", "bz2") if form == "ros1" else ("none", "storage") if form == "mcap" else ("none",):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("x.bag" if form == "ros1" else "x")
            if form == "ros1":
                writer: Any = Writer1(path)
                if packing != "none":
                    writer.set_compression(getattr(Writer1.CompressionFormat, packing.upper()))
            else:
                writer = Writer2(path, version=9, storage_plugin=StoragePlugin[form.upper()])
                if packing == "storage":
                    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
            with writer:
                _write_bag(writer, store, form)
            files = [path] if form == "ros1" else [*path.glob("*.mcap"), *path.glob("*.db3")]
            found.append(files[0].read_bytes())
    return found


def ros_folder() -> tuple[bytes, bytes]:
    """What ROS 2 records into: the description of a folder, and the file x.db3 that it describes."""
    from rosbags.rosbag2 import StoragePlugin, Writer  # noqa: PLC0415
    from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        with Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
            _write_bag(writer, get_typestore(Stores.ROS2_HUMBLE), "sqlite3")
        return (path / "metadata.yaml").read_bytes(), (path / "x.db3").read_bytes()


def _write_bag(writer: Any, store: Any, form: str) -> None:
    types = store.types
    zero = np.zeros(9)

    def header(t: float) -> Any:
        stamp = types["builtin_interfaces/msg/Time"](sec=int(t), nanosec=0)
        extra = {"seq": 0} if form == "ros1" else {}
        return types["std_msgs/msg/Header"](stamp=stamp, frame_id="base", **extra)

    def vector(x: float, y: float, z: float) -> Any:
        return types["geometry_msgs/msg/Vector3"](x=x, y=y, z=z)

    names = {"imu": "sensor_msgs/msg/Imu", "fix": "sensor_msgs/msg/NavSatFix"}
    lines = {topic: writer.add_connection(f"/uav1/{topic}", name, typestore=store) for topic, name in names.items()}
    serialize = store.serialize_ros1 if form == "ros1" else store.serialize_cdr
    for k in range(4):
        t = float(T0 + k)
        turn = types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0)
        imu = types[names["imu"]](
            header=header(t), orientation=turn, orientation_covariance=zero, angular_velocity=vector(0.1, 0.2, 0.3),
            angular_velocity_covariance=zero, linear_acceleration=vector(1.0, 0.0, 9.81),
            linear_acceleration_covariance=zero,
        )  # fmt: skip
        status = types["sensor_msgs/msg/NavSatStatus"](status=0, service=1)
        fix = types[names["fix"]](
            header=header(t), status=status, latitude=48.0, longitude=11.0, altitude=520.5,
            position_covariance=np.diag([4.0, 9.0, 16.0]).ravel(), position_covariance_type=2,
        )  # fmt: skip
        for topic, message in (("imu", imu), ("fix", fix)):
            writer.write(lines[topic], int(t * 1e9), serialize(message, names[topic]))


def can_log(kind: str) -> bytes:
    """A CAN recording as python-can writes it."""
    import can  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"bus.{kind}"
        with can.Logger(path) as log:
            for k in range(6):
                for number, data in ((0x100, "F401000050C3"), (0x101, "0A0000000000")):
                    frame = can.Message(timestamp=T0 + k / 10, arbitration_id=number, data=bytes.fromhex(data),
                                        is_extended_id=False, channel=0)  # fmt: skip
                    log(frame)
        return path.read_bytes()
