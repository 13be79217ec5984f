"""What was saved up, put in order: nobody is late for the clock of one, and nobody seems to be alone."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.backlog import in_order
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import CheckedBatch, columns_of
from watchkeeper.streams.messages import Kind

NAMES = ["a", "b", "c", "off"]
BEFORE, SAVED, PACE_S = 10, 20, 5.0


def fixes(times: dict[str, np.ndarray]) -> CheckedBatch:
    """Each sender's samples, one sender after the other."""
    vid = np.repeat(np.arange(len(times), dtype=np.int32), [len(t) for t in times.values()])
    t = np.concatenate(list(times.values()))
    cols = columns_of(Kind.GPS, vid, t, {f"gps_{axis}": np.zeros(len(t)) for axis in "xyz"}, seq=np.arange(len(t)))
    return CheckedBatch(list(times), {Kind.GPS: cols})


def watched() -> Pipeline:
    pipeline = Pipeline(DEFAULT)
    for t in range(BEFORE):
        pipeline.feed(fixes({name: np.array([float(t)]) for name in NAMES}))
    return pipeline


@pytest.mark.parametrize("since", [BEFORE, BEFORE + 5, BEFORE + SAVED - 3])
@pytest.mark.parametrize("off_s", [20.0, 40.0, 3600.0])
@pytest.mark.parametrize("creeping", [False, True])
@pytest.mark.parametrize("gap", [False, True])
def test_a_clock_that_is_set_or_runs_away_in_a_backlog(since: int, off_s: float, creeping: bool, gap: bool) -> None:
    pipeline = watched()
    t = np.arange(BEFORE, BEFORE + SAVED, dtype=float)
    times = dict.fromkeys(NAMES[:-1], t)
    theirs = np.where(t >= since, t + off_s * (t - since + 1 if creeping else 1.0), t)
    times["off"] = np.delete(theirs, slice(8, 12)) if gap else theirs
    found = in_order(fixes(times), pipeline.clock, t[-1] + PACE_S)
    cols = found.kinds[Kind.GPS]
    order = np.argsort(cols.seq)
    vid, own_t = cols.vid[order], cols.t[order]
    for name in range(3):
        assert (own_t[vid == name] == t).all()
    honest = own_t[vid < 3]
    assert (np.diff(honest) >= 0.0).all()
    runs = [len(list(group)) for name, group in groupby(vid.tolist()) if name == 3]
    assert max(runs) <= 3, "it never seems to go on alone"
    # where its clock was still right it is where it belongs
    right = np.flatnonzero((vid == 3) & (own_t < since)) if since > BEFORE and not creeping else []
    for row in right:
        assert abs(own_t[row] - own_t[:row][vid[:row] < 3].max(initial=BEFORE)) <= 1.0
    pipeline.feed(found)
    drops = {reason: n for (_, reason), n in pipeline.drops.items() if reason == "late"}
    assert not drops
    assert pipeline.t_max <= t[-1] + 0.5 * PACE_S
    assert pipeline._era == 0, "nobody concluded that time began anew"
