"""The simulated stream: the same seed gives the same bytes, arrival order, bounded disorder and memory, good errors."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import FIELDS, Kind, field_bounds
from watchkeeper.streams.simulate import SCENARIOS, simulate

SMALL = {"seconds": 20.0}
DIGEST = """
import sys
sys.path.insert(0, {folder!r})
from test_simulate_stream import digest
from watchkeeper.streams.simulate import simulate
print(digest(simulate("mixed", seed=5, vehicles=40, seconds=30.0).batches()))
"""


def digest(batches: Iterable[Batch]) -> str:
    h = hashlib.sha256()
    for batch in batches:
        h.update(json.dumps([batch.ids, batch.vias, batch.callsigns, [k.word for k in batch.kinds]]).encode())
        for columns in batch.kinds.values():
            for array in (columns.seq, columns.vid, columns.via, columns.t, columns.data):
                h.update(np.ascontiguousarray(array).tobytes())
    return h.hexdigest()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_same_seed_same_bytes_and_another_seed_others(scenario):
    first = simulate(scenario, seed=11, **SMALL)
    assert digest(first.batches()) == digest(simulate(scenario, seed=11, **SMALL).batches())
    assert first.truth() == simulate(scenario, seed=11, **SMALL).truth()
    assert digest(first.batches()) != digest(simulate(scenario, seed=12, **SMALL).batches())


def test_bytes_do_not_depend_on_hash_randomisation():
    script = DIGEST.format(folder=str(Path(__file__).parent))
    runs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "4711")
    }
    assert runs == {digest(simulate("mixed", seed=5, vehicles=40, seconds=30.0).batches()) + "\n"}


def test_truth_and_batches_do_not_disturb_each_other():
    one, two = simulate("mixed", vehicles=44, **SMALL), simulate("mixed", vehicles=44, **SMALL)
    truth_first = one.truth()
    assert digest(one.batches()) == digest(two.batches())
    assert truth_first == two.truth() == one.truth()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_batch_is_well_formed_and_the_disorder_stays_under_300_ms(scenario):
    sim = simulate(scenario, **SMALL)
    newest = -np.inf
    total = 0
    for batch in sim.batches():
        seq = np.concatenate([c.seq for c in batch.kinds.values()])
        t = np.concatenate([c.t for c in batch.kinds.values()])
        assert sorted(seq.tolist()) == list(range(len(batch)))
        assert len(set(batch.ids)) == len(batch.ids)
        assert set(np.concatenate([c.vid for c in batch.kinds.values()]).tolist()) == set(range(len(batch.ids)))
        for kind, columns in batch.kinds.items():
            assert np.all(np.diff(columns.seq) > 0)
            assert columns.data.shape == (len(FIELDS[kind]), len(columns))
            lo, hi, required = field_bounds(kind)
            for row, low, high, must in zip(columns.data, lo, hi, required, strict=True):
                assert not (must and np.isnan(row).any())
                assert np.nanmin(row, initial=low) >= low
                assert np.nanmax(row, initial=high) <= high
        in_order = t[np.argsort(seq)]
        so_far = np.maximum(np.maximum.accumulate(in_order), newest)
        assert (so_far - in_order).max() < 0.3
        newest = so_far[-1]
        assert in_order.min() >= sim.t0
        assert in_order.max() < sim.t0 + sim.seconds
        assert batch.t_max - batch.t_min < 1.6
        total += len(batch)
    assert total > 0


@pytest.mark.parametrize("scenario", ["random", "mixed", "demo", "drones"])
def test_noise_brings_some_disorder_so_that_consumers_meet_it(scenario):
    t = np.concatenate(
        [
            np.concatenate([c.t for c in b.kinds.values()])[
                np.argsort(np.concatenate([c.seq for c in b.kinds.values()]))
            ]
            for b in simulate(scenario, **SMALL).batches()
        ]
    )
    assert (np.diff(t) < 0).any()


def test_no_vehicle_repeats_a_time_stamp():
    seen: set[tuple[str, int, float]] = set()
    count = 0
    for batch in simulate("mixed", vehicles=33, seconds=20.0).batches():
        for kind, columns in batch.kinds.items():
            seen.update(zip([batch.ids[v] for v in columns.vid], [int(kind)] * len(columns), columns.t, strict=True))
            count += len(columns)
    assert len(seen) == count


def test_memory_does_not_grow_with_the_length_of_the_run():
    def peak(seconds: float) -> int:
        stream = simulate("mixed", vehicles=55, seconds=seconds).batches()
        next(stream)
        tracemalloc.start()
        for _ in stream:
            pass
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(400.0) < 1.1 * peak(50.0) + 100_000


def test_vehicles_seconds_rate_and_start_are_as_asked():
    sim = simulate("mixed", vehicles=55, seconds=10.5, rate_hz=25.0, t0=1000.0)
    batches = list(sim.batches())
    assert sim.drones == 5
    assert len(batches) == 11
    assert len({name for b in batches for name in b.ids}) == 55
    imu = sum(len(b.kinds[Kind.IMU]) for b in batches if Kind.IMU in b.kinds)
    assert imu == pytest.approx(5 * 25 * 10.5, rel=0.02)
    assert min(b.t_min for b in batches) >= 1000.0
    assert max(b.t_max for b in batches) < 1010.5


def test_an_unknown_scenario_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean 'head-on'"):
        simulate("headon")
    with pytest.raises(ValueError, match="crossing"):
        simulate("zzz")


@pytest.mark.parametrize(
    ("scenario", "options", "word"),
    [
        ("head-on", {"vehicles": 1}, "vehicles is 1"),
        ("random", {"seconds": 0.0}, "seconds is 0"),
        ("random", {"seconds": float("nan")}, "seconds is nan"),
        ("drones", {"rate_hz": 1.0}, "rate_hz is 1"),
        ("random", {"seed": -1}, "seed is -1"),
        ("crossing", {"faults": True}, "faults happen to drones"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(scenario, options, word):
    with pytest.raises(ValueError, match=word):
        simulate(scenario, **options)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_truth_is_plain_json_and_names_exactly_the_vehicles_of_the_stream(scenario):
    sim = simulate(scenario, **SMALL)
    truth = json.loads(json.dumps(sim.truth(), allow_nan=False))
    heard = {name for batch in sim.batches() for name in batch.ids}
    assert heard <= set(truth["vehicles"])
    # an aircraft that entered in the last second may not have reported yet
    late = {k for k, v in truth["vehicles"].items() if v.get("t_first", 0.0) > sim.t0 + sim.seconds - 3.0}
    assert set(truth["vehicles"]) - heard <= late
    assert (truth["scenario"], truth["seed"]) == (scenario, 0)
    assert {v["kind"] for v in truth["vehicles"].values()} <= {"aircraft", "quad", "wing"}
