"""The evaluation of signals: every method has the same share of false positives, and the faults are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import Config
from watchkeeper.evaluation.signals.api import evaluate
from watchkeeper.evaluation.signals.command import table
from watchkeeper.evaluation.signals.faults import FAULTS, restlessness
from watchkeeper.evaluation.signals.parts import DEVELOPMENT, HELD_OUT
from watchkeeper.evaluation.signals.series import simulated


@pytest.fixture(scope="module")
def result():
    return evaluate(simulated(1, 300.0, seed=2), Config(), seed=1, river=False, most=8)


def test_every_method_has_one_percent_of_false_positives(result):
    for clean in result.clean:
        for name, share in clean.share.items():
            assert share <= 0.02, (clean.signal, name)


def test_ours_finds_more_than_a_plain_mean(result):
    found = {name: sum(o.latency_s[name] is not None for o in result.outcomes) for name in ("ours", "ewma")}
    assert found["ours"] > 2 * found["ewma"]
    assert "| ours |" in table(result)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_its_own_span_and_nothing_else(fault):
    rng = np.random.default_rng(3)
    clean = np.cumsum(rng.normal(0.0, 1.0, 400))
    x = clean.copy()
    FAULTS[fault](x, slice(200, 260), restlessness(clean, 1.0), rng)
    changed = np.flatnonzero(x != clean)
    assert len(changed) >= 50
    assert changed.min() >= 200
    assert changed.max() < 260


def test_nothing_is_in_both_parts():
    assert not {fleet.seed for fleet in DEVELOPMENT.fleets} & {fleet.seed for fleet in HELD_OUT.fleets}
    assert not {r.name for r in DEVELOPMENT.recordings} & {r.name for r in HELD_OUT.recordings}
    assert all(r.seen for r in DEVELOPMENT.recordings)
