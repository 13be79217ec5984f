"""`evaluate hours`: every group is judged, an alarm is counted once, and the interval is the exact one."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import GPS
from watchkeeper.evaluation.hours.api import AS_THEY_ARE, Result, hours, poisson_95
from watchkeeper.evaluation.hours.command import add_arguments, main, table
from watchkeeper.evaluation.protocol.shifts import SHIFTS, STREAMS
from watchkeeper.evaluation.protocol.splits import Recipe, simulated

SECONDS = 120


@pytest.fixture(scope="module")
def clean() -> Flight:
    return simulated("quad-x", Recipe(77, seconds=SECONDS))


@pytest.fixture(scope="module")
def found(clean: Flight) -> Result:
    jumps = clean.gps.data.copy()
    jumps[GPS["gps_x"], clean.gps.t >= clean.start + 80.0] += 50.0
    return hours([clean, replace(clean, id="quad-y", gps=Stream(clean.gps.t, jumps))], DEFAULT)


def test_every_copy_is_judged_and_a_silent_detector_watches_no_hour(found: Result) -> None:
    assert [group.group for group in found.groups] == [AS_THEY_ARE, *STREAMS, *SHIFTS]
    for row in found.flights:
        assert row.share is not None, f"{row.group} {row.flight} was not judged"
        assert 0.0 < row.hours < SECONDS / 3600.0
    epochs = {row.group: row.epochs for row in found.flights if row.flight == "quad-x"}
    assert epochs["1 Hz GPS"] < 0.3 * epochs[AS_THEY_ARE], "every group has its own copies"
    assert epochs["slow_gps"] < 0.6 * epochs[AS_THEY_ARE]
    as_they_are = found.groups[0]
    assert as_they_are.hours == pytest.approx(sum(r.hours for r in found.flights if r.group == AS_THEY_ARE))


def test_an_alarm_is_counted_in_its_flight_and_its_group(found: Result) -> None:
    alarms = {row.flight: row.alarms for row in found.flights if row.group == AS_THEY_ARE}
    assert alarms == {"quad-x": 0, "quad-y": 1}
    assert found.groups[0].alarms == 1
    assert "| - quad-y |" in table(found, each=True)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_interval_holds_the_counts_that_its_ends_make_likely(count: int) -> None:
    low, high = poisson_95(count)

    def at_most(n: int, mean: float) -> float:
        return sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(n + 1))

    assert at_most(count, high) == pytest.approx(0.025)
    assert count == 0 or 1.0 - at_most(count - 1, low) == pytest.approx(0.025)


def test_nothing_to_run_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert main(parser.parse_args([])) != 0
    assert "--simulated" in capsys.readouterr().err
