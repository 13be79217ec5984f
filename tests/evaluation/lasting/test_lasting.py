"""A bias that lasts for minutes is one gps_imu alarm until the bias ends, and clean flights are not worse off."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.evaluation.attacks.flight import read_flights
from watchkeeper.evaluation.lasting.api import Outcome, Result, Shape, lasting
from watchkeeper.evaluation.lasting.command import add_arguments, lines, table
from watchkeeper.evaluation.protocol.meter import meter
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.simulate import simulate

# An autopilot moved by hand under a GPS that is frozen from start to end: no clean flight, and no bias to be seen.
FROZEN = "bench_frozen_gps"


@pytest.fixture(scope="module")
def one() -> Result:
    flight = simulated("quad-7", Recipe(seed=7, seconds=260))
    return lasting([flight], DEFAULT, shapes=[Shape("step 30 m", 30.0)], repeats=1)


def test_a_simulated_bias_of_two_minutes_is_one_alarm_until_it_ends(one: Result) -> None:
    (outcome,) = one.outcomes
    assert outcome.end_s - outcome.onset_s > 100.0
    assert outcome.ended, lines(one)
    assert one.clean[0].alarms == 0


def test_the_table_counts_and_the_lines_name(one: Result) -> None:
    assert "| step 30 m | 1 | 1 | 1 | 1 |" in table(one)
    assert "clean flights as they are: 0 alarms in 0.07 h" in table(one)
    assert lines(one)[-1].startswith("quad-7 step 30 m from ")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(["--repeats", "3"]).repeats == 3


def test_a_bar_says_how_far_it_has_come_on_a_terminal_only(monkeypatch, capsys) -> None:
    batches = list(simulate("random", vehicles=5, seconds=5.0, seed=1).batches())
    total = sum(map(len, batches))
    assert list(meter(hidden=False)(iter(batches), total)) == batches
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert list(meter(hidden=False)(iter(batches), total)) == batches
    assert f"{total:,} samples" in capsys.readouterr().err
    assert list(meter(hidden=True)(iter(batches), total)) == batches
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_a_bias_of_30_m_is_one_alarm_until_it_ends_on_every_real_flight(recordings: Path) -> None:
    flights = [flight for flight in read_flights(recordings / "flights") if flight.id != FROZEN]
    result = lasting(flights, DEFAULT)
    print("\n" + table(result) + "\n" + "\n".join(lines(result)))

    def share(shape: str, what: str) -> float:
        own: list[Outcome] = [outcome for outcome in result.outcomes if outcome.shape == shape]
        return sum(getattr(outcome, what) for outcome in own) / len(own)

    assert share("step 30 m", "ended") == 1.0
    assert share("step 15 m", "lasted") == 1.0
    assert share("ramp 30 m", "lasted") == 1.0
    assert share("ramp 30 m, and back", "lasted") == 1.0
    assert share("ramp 15 m", "lasted") >= 0.75
    # the flights as they are, first, then copies with other sensors: before a displacement lasted there were 14 alarms
    assert sum(clean.alarms for clean in result.clean[: len(flights)]) == 0
    assert sum(clean.alarms for clean in result.clean) <= 14
