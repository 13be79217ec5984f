"""The fuzzer of valid telemetry: a few rounds of it, that it finds a mistake, and what it has found."""

from __future__ import annotations

import numpy as np
import pytest

from tools.fuzz.telemetry import fuzz
from watchkeeper.detectors.engine.senders.table import SenderTable
from watchkeeper.detectors.incidents import live_tools
from watchkeeper.detectors.incidents.scan import GpsLook, look_at_gps
from watchkeeper.streams.batch import F8, Batch, columns_of
from watchkeeper.streams.check import checked
from watchkeeper.streams.messages import COLUMN, FIELDS, Drop, Kind


def test_a_few_rounds_find_nothing() -> None:
    found = fuzz(0, seed=2, rounds=6)
    assert found.failures == []
    assert found.samples > 20_000
    assert found.events > 0


def test_a_mistake_behind_a_fence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_t: F8, data: F8) -> GpsLook:
        return GpsLook(0.0, 0.0, 0.0, 1.0 / (data.shape[1] - 64))

    monkeypatch.setattr(live_tools, "look_at_gps", broken)
    (failure,) = fuzz(0, seed=1, start=12, rounds=1).failures
    assert failure[0] == 12
    assert "ZeroDivisionError" in failure[1]


@pytest.mark.long
def test_two_million_samples_find_nothing() -> None:
    assert fuzz(2_000_000).failures == []


@pytest.mark.parametrize(("before", "now"), [(3.0, 5e-324), (5e-324, 3.0), (5e-324, 1e7), (3.0, np.nan)])
def test_an_accuracy_may_be_any_number(before: float, now: float) -> None:
    data = np.full((len(FIELDS[Kind.GPS]), 8), np.nan)
    data[COLUMN[Kind.GPS]["eph"]] = [before] * 7 + [now]
    assert np.isfinite(look_at_gps(np.arange(8.0), data).noise_db)


@pytest.mark.parametrize(("eph", "taken"), [(0.0, 1), (1e-6, 1), (9e-7, 0), (5e-324, 0)])
def test_an_accuracy_below_a_micrometre_is_refused(eph: float, taken: int) -> None:
    values = {"gps_x": np.zeros(1), "gps_y": np.zeros(1), "eph": np.array([eph])}
    batch = Batch(["a"], {Kind.GPS: columns_of(Kind.GPS, np.zeros(1, np.int32), np.ones(1), values)})
    refused: list[str] = []
    kinds = checked(batch, lambda _kind, reason, n: refused.extend([reason] * n)).kinds
    assert sum(len(cols) for cols in kinds.values()) == taken
    assert refused == [Drop.RANGE] * (1 - taken)


def test_a_sender_that_is_named_twice_is_one() -> None:
    table = SenderTable(8, 1.0)
    assert table.numbers(["a", "a", "b"], np.arange(3, dtype=np.int32)).tolist() == [0, 0, 1]
    assert table.high == 2
