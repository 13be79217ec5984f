"""Limits that are learned from a log that went well: judged from the first value of the next one on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import main
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.signals import name_columns

STEPS = 300


def flight(values: dict[str, F8]) -> Batch:
    """One value of each a second."""
    names = np.repeat(name_columns(list(values)), STEPS, axis=1)
    data = np.concatenate([np.concatenate(list(values.values())).reshape(1, -1), names])
    count = data.shape[1]
    t = np.tile(1000.0 + np.arange(STEPS), len(values))
    order = np.argsort(t, kind="stable")
    columns = Columns(
        np.arange(count), np.zeros(count, np.int32), np.full(count, -1, np.int32), t[order], data[:, order]
    )
    return Batch(["quad-3"], {Kind.SIGNAL: columns})


def healthy(seed: int) -> dict[str, F8]:
    rng = np.random.default_rng(seed)
    return {
        "pump.bar": rng.normal(4.0, 0.2, STEPS), "rssi[0]": rng.normal(-60.0, 2.0, STEPS),
        "battery.cell_v": rng.normal(3.9, 0.01, STEPS), "gear": np.repeat([1.0, 2.0, 3.0], STEPS // 3),
        "mission_count": np.arange(float(STEPS)),
    }  # fmt: skip


def test_limits_of_a_good_flight_are_judged_from_the_first_value_of_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, file = tmp_path / "good.wklog", tmp_path / "limits.toml"
    with LogWriter(log) as writer:
        writer.write(flight(healthy(1)))
    assert main(["limits", str(log)]) == 0
    file.write_text(capsys.readouterr().out)
    config = load(file)
    limits = {limit.names[0]: limit for limit in config.detectors.signal.limits}
    # a preset knows cells, a gear is a state, a count is left to nobody
    assert set(limits) == {"pump.bar", "rssi[0]"}
    pump, seen = limits["pump.bar"], healthy(1)["pump.bar"]
    span = seen.max() - seen.min()
    assert (pump.low, pump.high) == pytest.approx((seen.min() - 0.5 * span, seen.max() + 0.5 * span), rel=1e-4)

    def alarms(values: dict[str, F8]) -> list[tuple[float, str]]:
        pipeline = Pipeline(config)
        events = pipeline.feed(flight(values)) + pipeline.finish()
        return [(e.t - 1000.0, e.say) for e in events if e.kind == "signal" and e.state == "raised"]

    assert alarms(healthy(2)) == []
    wrong = healthy(3)
    wrong["rssi[0]"][:] -= 30.0
    (t, say), *_ = alarms(wrong)
    assert t <= 5.0, "long before anything is known of its own past"
    assert say.startswith("quad-3: rssi[0] is out of range")


def test_a_log_without_signals_has_no_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "short.wklog"
    with LogWriter(log) as writer:
        writer.write(flight({"gear": np.ones(STEPS)}))
    assert main(["limits", str(log)]) == 1
    assert "no signal in it" in capsys.readouterr().err
