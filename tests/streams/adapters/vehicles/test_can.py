"""A CAN bus: cantools encodes, python-can sends and records, and what arrives is what was sent."""

from __future__ import annotations

import asyncio
import math
import re
import time
from pathlib import Path
from typing import Any

import can
import cantools
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import until

from watchkeeper.config.adapters.can import Can as CanSettings
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.background import end
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.vehicles.can import Can, line_of
from watchkeeper.streams.adapters.vehicles.can_map import load_map
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.signals import names_in

T0 = 1_700_000_000.0
DBC = """\
VERSION ""
BU_: ECU
BO_ 256 Accel: 8 ECU
 SG_ AccX : 0|16@1- (0.001,0) [-32|32] "m/s2" ECU
 SG_ AccY : 16|16@1- (0.001,0) [-32|32] "m/s2" ECU
 SG_ AccZ : 32|16@1- (0.001,0) [-32|32] "m/s2" ECU
BO_ 257 Gyro: 8 ECU
 SG_ RateX : 0|16@1- (0.01,0) [-327|327] "deg/s" ECU
 SG_ RateY : 16|16@1- (0.01,0) [-327|327] "deg/s" ECU
 SG_ RateZ : 32|16@1- (0.01,0) [-327|327] "deg/s" ECU
BO_ 2566844672 Position: 8 ECU
 SG_ Lat : 0|32@1- (1E-7,0) [-90|90] "deg" ECU
 SG_ Lon : 32|32@1- (1E-7,0) [-180|180] "deg" ECU
BO_ 770 Receiver: 4 ECU
 SG_ Height : 0|16@1+ (0.1,-500) [-500|6053] "m" ECU
 SG_ Sats : 16|8@1+ (1,0) [0|255] "" ECU
BO_ 999 Radio: 1 ECU
 SG_ Volume : 0|8@1+ (1,0) [0|255] "" ECU
"""
RAD = math.pi / 180.0
MAP = f"""\
dbc = "vehicle.dbc"
id = "car1"

[[samples]]
kind = "imu"
on = "Gyro"
[samples.fields]
imu_ax = "Accel.AccX"
imu_ay = "Accel.AccY"
imu_az = "Accel.AccZ"
imu_wx = {{signal = "Gyro.RateX", scale = {RAD}}}
imu_wy = {{signal = "Gyro.RateY", scale = {RAD}}}
imu_wz = {{signal = "Gyro.RateZ", scale = {RAD}}}

[[samples]]
kind = "gps"
on = "Position"
id = "roof"
hold_s = 0.5
[samples.fields]
lat = "Position.Lat"
lon = "Position.Lon"
alt_m = {{signal = "Receiver.Height", offset = -47.5}}
sats = "Receiver.Sats"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vehicle.dbc").write_text(DBC)
    (tmp_path / "can.toml").write_text(MAP)
    return tmp_path


def encoded(name: str, t: float, **values: float) -> can.Message:
    message = cantools.database.load_string(DBC, "dbc").get_message_by_name(name)
    return can.Message(
        timestamp=t, arbitration_id=message.frame_id, is_extended_id=message.is_extended_frame,
        data=message.encode(values), channel="can0",
    )  # fmt: skip


def drive(seconds: float = 1.0, began: float = T0) -> list[can.Message]:
    """50 Hz of IMU, 5 Hz of GPS, and a radio that concerns nobody."""
    found = []
    for k in range(int(50 * seconds)):
        t = began + k / 50
        found.append(encoded("Accel", t, AccX=0.5 + 0.001 * k, AccY=-0.25, AccZ=-9.81))
        found.append(encoded("Gyro", t + 0.001, RateX=0.01 * k, RateY=-2.5, RateZ=10.0))
        if k % 10 == 0:
            found.append(encoded("Receiver", t + 0.002, Height=520.5, Sats=11))
            found.append(encoded("Position", t + 0.003, Lat=48.1234567 + 1e-6 * k, Lon=-11.7654321))
            found.append(encoded("Radio", t + 0.004, Volume=11))
    return found


def values(batch: Batch, kind: Kind, name: str) -> Any:
    return batch.kinds[kind].data[COLUMN[kind][name]]


def expected(batch: Batch, frames: list[can.Message]) -> None:
    """cantools' own decoding of the frames is the reference."""
    database = cantools.database.load_string(DBC, "dbc")
    told = [(database.get_message_by_frame_id(f.arbitration_id).name, f) for f in frames]
    by_name = {
        name: [(f.timestamp, database.decode_message(f.arbitration_id, f.data)) for n, f in told if n == name]
        for name in ("Accel", "Gyro", "Position", "Receiver")
    }
    imu, gps = batch.kinds[Kind.IMU], batch.kinds[Kind.GPS]
    np.testing.assert_allclose(imu.t, [t for t, _ in by_name["Gyro"]], atol=1e-4, rtol=0.0)
    np.testing.assert_allclose(gps.t, [t for t, _ in by_name["Position"]], atol=1e-4, rtol=0.0)
    for axis in "xyz":
        accel = [v[f"Acc{axis.upper()}"] for _, v in by_name["Accel"]]
        rate = [v[f"Rate{axis.upper()}"] * RAD for _, v in by_name["Gyro"]]
        np.testing.assert_allclose(values(batch, Kind.IMU, f"imu_a{axis}"), accel, rtol=1e-12)
        np.testing.assert_allclose(values(batch, Kind.IMU, f"imu_w{axis}"), rate, rtol=1e-12)
    np.testing.assert_allclose(values(batch, Kind.GPS, "lat"), [v["Lat"] for _, v in by_name["Position"]])
    np.testing.assert_allclose(values(batch, Kind.GPS, "lon"), [v["Lon"] for _, v in by_name["Position"]])
    np.testing.assert_allclose(values(batch, Kind.GPS, "alt_m"), 473.0)
    np.testing.assert_allclose(values(batch, Kind.GPS, "sats"), 11.0)
    assert {batch.ids[v] for v in imu.vid.tolist()} == {"car1"}
    assert {batch.ids[v] for v in gps.vid.tolist()} == {"roof"}


@pytest.mark.parametrize("suffix", ["log", "asc", "blf", "trc"])
def test_recordings_of_python_can_give_what_cantools_decodes(folder: Path, suffix: str) -> None:
    path = folder / f"drive.{suffix}"
    frames = drive()
    with can.Logger(path) as logger:
        for frame in frames:
            logger(frame)
    log = open_log(path)
    batch = join(list(log.batches()))
    assert log.info().format == "can"
    assert log.info().problems == ()
    if suffix in ("asc", "trc"):  # their times have a beginning of their own
        kinds = batch.kinds
        assert kinds[Kind.IMU].t[1:] - kinds[Kind.IMU].t[0] == pytest.approx(0.02 * np.arange(1, 50), abs=2e-3)
        shift = kinds[Kind.IMU].t[0] - frames[1].timestamp
        for cols in kinds.values():
            cols.t[:] -= shift
    expected(batch, frames)


def test_a_virtual_bus_is_listened_to(folder: Path) -> None:
    """The interface `virtual` of python-can: frames go from one bus object to the other."""
    heard: list[Batch] = []
    decoder = Decoder(DEFAULT.topics, DEFAULT.limits, lambda *_: pytest.fail("a sample of our own was refused"))

    def put(found: Batch) -> None:
        decoder.add_batch(found)
        batch = decoder.take()
        assert batch is not None
        heard.append(batch)

    async def scenario() -> list[can.Message]:
        source = CanSettings(url="can://virtual/wk-test?bitrate=500000", map=str(folder / "can.toml"), via="obd")
        live = LiveSource(source, DEFAULT, put)
        task = asyncio.create_task(live.run())
        sent: list[can.Message] = []
        with can.Bus("wk-test", interface="virtual", preserve_timestamps=True) as bus:
            # a frame that the mapping does not know, until the source listens
            knock = can.Message(arbitration_id=0x7FF, data=[0], timestamp=time.time())
            await until(lambda: bus.send(knock) or live.connected)
            for frame in drive(began=time.time()):
                bus.send(frame)
                sent.append(frame)
            await until(lambda: sum(len(batch) for batch in heard) >= 55)
        await end(task)
        assert live.refused.total() == 0
        return sent

    sent = asyncio.run(scenario())
    whole = join(heard)
    assert whole.vias == ["obd"]
    expected(whole, sent)


def test_times_that_do_not_count_from_1970_are_set_by_the_first_arrival(folder: Path) -> None:
    feed = Can(map=str(folder / "can.toml"))
    for frame in drive(0.1, began=12.0):
        feed.push(line_of(frame), 5000.0 + frame.timestamp - 12.0)
    batch = feed.take()
    assert batch is not None
    assert batch.kinds[Kind.IMU].t[0] == pytest.approx(5000.001, abs=1e-6)


def test_a_value_is_used_once_and_a_sample_without_what_it_needs_is_none(folder: Path) -> None:
    feed = Can(map=str(folder / "can.toml"))
    gyro = {"RateX": 1.0, "RateY": 2.0, "RateZ": 3.0}
    accel = {"AccX": 1.0, "AccY": 2.0, "AccZ": 3.0}
    for frame in (
        encoded("Gyro", T0, **gyro),  # nothing to go with it
        encoded("Accel", T0 + 1.0, **accel),
        encoded("Gyro", T0 + 1.01, **gyro),
        encoded("Gyro", T0 + 1.02, **gyro),  # that acceleration has been used
        encoded("Accel", T0 + 2.0, **accel),
        encoded("Gyro", T0 + 2.2, **gyro),  # and this is too old
        encoded("Position", T0 + 3.0, Lat=1.0, Lon=2.0),
    ):
        feed.push(line_of(frame), math.nan)
    batch = feed.take()
    assert batch is not None
    assert batch.kinds[Kind.IMU].t.tolist() == pytest.approx([T0 + 1.01])
    assert np.isnan(values(batch, Kind.GPS, "alt_m")).all()
    assert feed.refused == {"missing_field": 3}


def test_signals_of_the_bus_are_chosen_by_pattern(folder: Path) -> None:
    (folder / "can.toml").write_text('dbc = "vehicle.dbc"\nid = "car1"\nsignals = ["Radio.*", "Gyro.Rate[XY]"]\n')
    feed = Can(map=str(folder / "can.toml"))
    for frame in drive(0.02):
        feed.push(line_of(frame), math.nan)
    batch = feed.take()
    assert batch is not None
    cols = batch.kinds[Kind.SIGNAL]
    found = dict(zip(names_in(cols.data[1:]), cols.data[0].tolist(), strict=True))
    assert found == pytest.approx({"Gyro.RateX": 0.0, "Gyro.RateY": -2.5, "Radio.Volume": 11.0})
    assert set(batch.ids) == {"car1"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('signals = ["Nothing.*"]', "no message and signal like 'Nothing.*'"),
        ("", "neither samples nor signals"),
        ('[[samples]]\nkind = "signal"\non = "Radio"\nfields = {}', "name them with signals"),
    ],
)
def test_a_mapping_of_signals_that_is_wrong_is_named(folder: Path, text: str, problem: str) -> None:
    (folder / "can.toml").write_text(f'dbc = "vehicle.dbc"\nid = "car1"\n{text}\n')
    with pytest.raises(LogError, match=re.escape(problem)):
        Can(map=str(folder / "can.toml"))


def test_bad_lines_and_frames_are_counted(folder: Path) -> None:
    feed = Can(map=str(folder / "can.toml"))
    feed.push(b"nonsense\n(x) can0 100#00\n(1.0) can0 100#0\n(nan) can0 100#00\n" + b"x" * 600 + b"\n", math.nan)
    feed.push(b"(1.0) can0 100#00\n(1.0) can0 100#R\n(1.0) can0 7FF#00\n\n", math.nan)
    assert feed.refused == {"malformed": 4, "too_large": 1, "wrong_type": 1}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("vehicle.dbc", "nowhere.dbc"), "nowhere.dbc: No such file"),
        (('kind = "imu"', 'kind = "lidar"'), "kind 'lidar'"),
        (('on = "Gyro"', 'on = "Gyros"'), "on = 'Gyros'"),
        (("imu_ax =", "imu_aq ="), "imu_aq: imu has no such field"),
        (("Accel.AccX", "Accel.AccQ"), "imu_ax = 'Accel.AccQ'"),
        (('id = "car1"', 'id = ""'), "id ''"),
        (("hold_s = 0.5", 'hold_s = "long"'), "hold_s"),
        (("[[samples]]", "[[sample]]"), "not a mapping"),
    ],
)
def test_a_wrong_mapping_is_named(folder: Path, change: tuple[str, str], problem: str) -> None:
    (folder / "can.toml").write_text(MAP.replace(*change))
    (folder / "drive.log").write_bytes(line_of(drive(0.1)[0]))
    with pytest.raises(LogError, match=r"can\.toml|dbc") as refused:
        open_log(folder / "drive.log")
    assert problem in str(refused.value)


def test_without_a_mapping_a_recording_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "drive.log").write_bytes(line_of(drive(0.1)[0]))
    with pytest.raises(LogError, match=r"neither drive\.log\.can\.toml nor can\.toml"):
        open_log(tmp_path / "drive.log")


def test_info_and_convert_know_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "drive.blf"
    with can.Logger(path) as logger:
        for frame in drive():
            logger(frame)
    assert main(["info", str(path)]) == 0
    assert ": can, " in capsys.readouterr().out
    assert main(["convert", str(path), str(folder / "drive.wklog")]) == 0
    assert len(join(list(open_log(folder / "drive.wklog").batches()))) == 55


@given(st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=6), st.sampled_from(["log", "asc", "blf"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_garbling_breaks_the_reading(folder: Path, edits: list[tuple[float, bytes]], suffix: str) -> None:
    path = folder / f"drive.{suffix}"
    with can.Logger(path) as logger:
        for frame in drive(0.2):
            logger(frame)
    data = bytearray(path.read_bytes())
    for at, what in edits:
        start = int(at * len(data))
        data[start : start + len(what)] = what
    path.write_bytes(bytes(data))
    try:
        log = open_log(path)
    except LogError as error:
        assert path.name in str(error)  # noqa: PT017  either outcome is right
    else:
        assert sum(len(batch) for batch in log.batches()) <= 12


@pytest.mark.parametrize("bits", ["99999999|16", "0|999999999999"])
def test_a_dbc_file_that_claims_impossible_bits_is_refused_before_they_are_laid_out(bits: str, tmp_path: Path) -> None:
    (tmp_path / "can.toml").write_text('dbc = "vehicle.dbc"\nid = "car1"\nsamples = []\n')
    signal = f' SG_ X : {bits}@1- (1,0) [0|0] "" ECU'
    (tmp_path / "vehicle.dbc").write_text(f'VERSION ""\nBU_: ECU\nBO_ 256 Accel: 6 ECU\n{signal}\n')
    with pytest.raises(LogError, match=r"vehicle\.dbc: line 4: .* of 9{8}"):
        load_map(tmp_path / "can.toml")
