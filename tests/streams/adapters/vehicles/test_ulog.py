"""PX4 logs: the values are those that pyulog reads, in our units and in order of time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pyulog import ULog

from watchkeeper.streams.batch import Columns
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.logs.told import told_by
from watchkeeper.streams.messages import COLUMN, Kind

LOGS = {"pyulog_sample_log_small.ulg": "vehicle_gps_position", "pyulog_sample_px4_events.ulg": "vehicle_gps_position"}


def read(path: Path, chunk: int = 1000) -> tuple[list[str], dict[Kind, Columns]]:
    batch = join(list(open_log(path).batches(chunk)))
    return batch.ids, batch.kinds


@pytest.mark.parametrize("name", LOGS)
def test_values_are_those_of_the_reference_reader(px4_logs: Path, name: str) -> None:
    path = px4_logs / name
    log = ULog(str(path))
    _, kinds = read(path)
    imu, gps = log.get_dataset("sensor_combined").data, log.get_dataset(LOGS[name]).data
    for i, axis in enumerate("xyz"):
        np.testing.assert_array_equal(kinds[Kind.IMU].data[COLUMN[Kind.IMU][f"imu_w{axis}"]], imu[f"gyro_rad[{i}]"])
        accel = kinds[Kind.IMU].data[COLUMN[Kind.IMU][f"imu_a{axis}"]]
        np.testing.assert_array_equal(accel, imu[f"accelerometer_m_s2[{i}]"])
    cols, column = kinds[Kind.GPS], COLUMN[Kind.GPS]
    lat_deg = gps["latitude_deg"] if "latitude_deg" in gps else gps["lat"] * 1e-7
    alt_m = gps["altitude_msl_m"] if "altitude_msl_m" in gps else gps["alt"] * 1e-3
    np.testing.assert_allclose(cols.data[column["lat"]], lat_deg, atol=1e-12)
    np.testing.assert_allclose(cols.data[column["alt_m"]], alt_m, atol=1e-9)
    np.testing.assert_array_equal(cols.data[column["gps_vz"]], gps["vel_d_m_s"])
    np.testing.assert_array_equal(cols.data[column["sats"]], gps["satellites_used"])
    # what the receiver says is UTC; one offset serves for the whole log, as its clock and the autopilot's drift apart
    assert np.abs(cols.t - gps["time_utc_usec"] / 1e6).max() < 0.5
    np.testing.assert_allclose(np.diff(cols.t), np.diff(gps["timestamp"].astype(np.int64)) / 1e6, atol=1e-6)


def test_samples_come_by_time_whatever_the_chunk(px4_logs: Path) -> None:
    path = px4_logs / "pyulog_sample_log_small.ulg"
    ids, whole = read(path)
    assert ids == ["px4-510d0035002d"]
    _, pieces = read(path, 7)
    for kind, cols in whole.items():
        np.testing.assert_array_equal(cols.data, pieces[kind].data)
        np.testing.assert_array_equal(cols.seq, pieces[kind].seq)
    t = np.empty(sum(map(len, whole.values())))
    for cols in whole.values():
        t[cols.seq] = cols.t
    assert (np.diff(t) >= 0.0).all()


def test_a_log_without_sensors_and_a_file_that_is_none_say_so(px4_logs: Path, tmp_path: Path) -> None:
    start = (px4_logs / "pyulog_sample_log_small.ulg").read_bytes()
    for size, problem in ((20_000, "neither IMU nor GPS"), (9, "not a PX4 log")):
        path = tmp_path / f"{size}.ulg"
        path.write_bytes(start[:size])
        with pytest.raises(LogError, match=problem):
            open_log(path)


def test_modes_arming_failsafes_warnings_and_the_receivers_figures_are_told(px4_logs: Path) -> None:
    path = px4_logs / "pyulog_sample_px4_events.ulg"
    source = open_log(path)
    told = told_by(source)
    assert told.vehicle == read(path)[0][0]
    modes = [span for span in told.spans if span.what == "mode"]
    assert [span.word for span in modes] == ["Hold", "Takeoff", "Hold", "Return", "Hold"]
    assert all(a.until_t == b.t for a, b in pairwise(modes))
    (armed,) = [span for span in told.spans if span.what == "armed"]
    assert modes[0].t < armed.t < armed.until_t <= modes[-1].until_t
    assert [mark.words for mark in told.marks] == ["[health_and_arming_checks] Preflight: GPS fix too low"] * 2
    # in the time of the samples
    _, kinds = read(path)
    assert kinds[Kind.IMU].t[0] - 1.0 <= modes[0].t <= modes[-1].until_t <= kinds[Kind.IMU].t[-1] + 1.0


def test_a_receivers_jamming_and_noise_are_those_of_the_reference_reader(px4_logs: Path) -> None:
    path = px4_logs / "pyulog_sample_log_small.ulg"
    figures = {figure.name: figure for figure in told_by(open_log(path)).figures}
    gps = ULog(str(path)).get_dataset("vehicle_gps_position").data
    for name, column in (("jamming indicator", "jamming_indicator"), ("receiver noise", "noise_per_ms")):
        np.testing.assert_array_equal(figures[name].value, gps[column])
    np.testing.assert_array_equal(figures["receiver noise"].t, read(path)[1][Kind.GPS].t)
