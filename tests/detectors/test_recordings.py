"""What is promised about real traffic and real flights, on the cuts that every clone has (tests/recordings)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.detectors.gps_imu.test_flights import ATTACK_S, ATTACKS, Flight, alarms, middle, read
from tools.recordings import MOST_BYTES
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import Kind

from where import CUTS, SHARED

PARIS = CUTS / "traffic" / "collections" / "paris.json.gz"
FROZEN = "bench_frozen_gps"
# Found within the attack in any flight; weaker ones are judged on whole flights, gps_imu/test_flights.py.
GROSS = ("position jump 20 m", "freeze", "velocity spoof 3 m/s")


def test_the_cuts_are_small_and_their_licences_are_named() -> None:
    files = [path for path in CUTS.rglob("*") if path.is_file() and path.name != "NOTICE.md"]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    notice = (CUTS / "NOTICE.md").read_text()
    for path in files:
        assert f"`{path.parent.relative_to(CUTS)}" in notice, f"whose is {path}?"


def test_ten_minutes_over_paris_have_conflicts_and_no_track_that_contradicts_itself() -> None:
    pipeline = Pipeline(DEFAULT)
    events = [event for batch in open_log(PARIS).batches() for event in pipeline.feed(batch)] + pipeline.finish()
    kinds = Counter(event.kind for event in events if event.state == "raised")
    print(f"\n{dict(kinds)}")
    assert kinds["conflict"], "traffic near Paris is dense"
    assert not {"kinematics", "gnss_interference"} & set(kinds)


def recorded() -> dict[str, Path]:
    folder = CUTS / "flights" if (CUTS / "flights").is_dir() else SHARED / "data" / "flights"
    return {path.name.removesuffix(".csv.gz"): path for path in sorted(folder.glob("*.csv.gz"))}


@pytest.fixture(scope="module")
def flown() -> dict[str, Flight]:
    names = ("quad106", "plane_testlog2", "car_comma", FROZEN)
    there = {name: read(path) for name, path in recorded().items() if name in names}
    if not there:
        pytest.skip("no GPS/IMU flights: python -m tools.recordings flights FOLDER")
    return there


def test_no_clean_flight_raises_an_alarm_and_a_frozen_gps_does(flown: dict[str, Flight]) -> None:
    raised = alarms(flown)
    assert {name for name, times in raised.items() if times} == {FROZEN}


def test_gross_attacks_are_found_in_every_flight(flown: dict[str, Flight]) -> None:
    for name, clean in flown.items():
        if name in (FROZEN, "car_comma"):  # the car's receiver has no vertical velocity
            continue
        t0 = min(middle(clean), float(clean.t[Kind.GPS][-1]) - ATTACK_S)
        attacked = {}
        for attack in GROSS:
            flight = clean.copy()
            gps, imu = ((flight.t[k] >= t0) & (flight.t[k] < t0 + ATTACK_S) for k in (Kind.GPS, Kind.IMU))
            ATTACKS[attack](flight, t0, gps, imu)
            attacked[attack] = flight
        missed = [a for a, times in alarms(attacked).items() if not any(t0 <= t < t0 + ATTACK_S for t in times)]
        assert missed == [], name
