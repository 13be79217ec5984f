"""Brown-out, motor loss and lost GPS put into the signals of a PX4 log: told in two seconds, named, with the mode."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.signals import names_in

pytest.importorskip("pyulog")
FLIGHT, SHORT = "pyulog_sample_px4_events.ulg", "pyulog_sample_log_small.ulg"
WITHIN_S = 2.0
# What fails: its signals, and what they become.
INCIDENTS = {
    "brown_out": ({"battery[0].cell_v": 3.0, "battery[0].voltage_v": 12.0}, "battery[0]."),
    "motor_loss": ({"motor[2].output": 0.0, "esc[2].rpm": 0.0}, ("motor[2].", "esc[2].")),
    "gps_loss": ({"gps.fix": 0.0, "gps.sats": 0.0, "gps.eph_m": 99.0}, "gps."),
}


def signals(path) -> tuple[list[str], Columns, np.ndarray]:
    batch = join(list(open_log(path).batches(1 << 20)))
    cols = batch.kinds[Kind.SIGNAL]
    return batch.ids, cols, np.array(names_in(cols.data[SIGNAL.name_0 :]), object)


def raised(ids: list[str], cols: Columns) -> list[AlarmEvent]:
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=10)))
    events = pipeline.feed(Batch(ids, {Kind.SIGNAL: cols})) + pipeline.finish()
    return [event for event in events if event.kind == "signal" and event.state == "raised"]


@pytest.mark.parametrize("incident", INCIDENTS)
@pytest.mark.parametrize("share", [0.6, 0.8])
def test_an_incident_in_a_real_log_is_told_within_two_seconds_with_its_mode(incident, share, px4_logs):
    ids, cols, names = signals(px4_logs / FLIGHT)
    changes, expected = INCIDENTS[incident]
    flying = cols.t[(names == "motor[0].output") & (cols.data[SIGNAL.value] > 0.2)]
    onset = flying[0] + share * (flying[-1] - flying[0])
    for name, value in changes.items():
        own = (names == name) & (cols.t >= onset)
        assert own.any(), f"{name}: the log has none"
        cols.data[SIGNAL.value, own] = value
    first = next(event for event in raised(ids, cols) if event.t >= onset)
    assert first.t - onset <= WITHIN_S
    assert first.evidence["signal"].startswith(expected)
    assert "out_of_range" in first.evidence["causes"]
    assert first.evidence["armed"] is True
    assert first.evidence["mode"] in ("TAKEOFF", "HOLD", "RETURN")
    assert f"in mode {first.evidence['mode']}, armed" in first.say


@pytest.mark.parametrize("name", [FLIGHT, SHORT])
def test_the_log_itself_raises_nothing(name, px4_logs):
    ids, cols, _ = signals(px4_logs / name)
    assert raised(ids, cols) == []
