"""`evaluate names`: attacks are compared with what they are called; the same flights give the same fit again."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.gps_imu.naming.pattern import NAMES, WIDTH
from watchkeeper.detectors.incidents.by_pattern import OF_NAME
from watchkeeper.evaluation.attacks.catalogue import catalogue
from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.names.api import Named, Result, bins, names, roomy
from watchkeeper.evaluation.names.command import table
from watchkeeper.evaluation.names.fit import PARTS, Example, balanced, examples, fit, power, probabilities, source
from watchkeeper.evaluation.names.truth import NAME_OF
from watchkeeper.evaluation.protocol.splits import Recipe, simulated

CLEAR = ("gps_bias_20m", "gps_freeze", "imu_stuck")


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    """A multirotor that is in no split, and one that is too short for an attack."""
    return roomy(
        [simulated("quad-n", Recipe(901, 150)), simulated("quad-short", Recipe(902, 60))],
        [catalogue().find(name) for name in CLEAR],
    )


def test_every_named_family_is_in_the_catalogue_and_has_a_name_of_the_model():
    assert set(NAME_OF) <= set(catalogue().families)
    assert set(NAME_OF.values()) == set(NAMES)
    left = set(catalogue().families) - set(NAME_OF)
    assert left == {"gps_dropout", "imu_dropout", "link_loss", "coordinated_imu"}


def test_plain_attacks_are_called_what_they_are(flights: list[Flight]):
    assert [flight.id for flight in flights] == ["quad-n"]
    found = names(flights, [catalogue().find(name) for name in CLEAR], DEFAULT)
    assert found.unnamed == 0
    assert {(n.attack, n.last) for n in found.named} == {
        (name, OF_NAME[NAME_OF[catalogue().find(name).family]][0]) for name in CLEAR
    }
    assert all(n.pattern and n.names == 1 for n in found.named)
    assert "held out: quad-n" in table(found)


def test_patterns_are_taken_at_every_age_and_only_of_alarms(flights: list[Flight]):
    attacks = [catalogue().find(name) for name in ("gps_bias_20m", "gps_bias_0.1m")]
    rows = examples(flights, attacks, DEFAULT, 1)
    assert [row.age_s for row in rows] == [0.0, 2.0, 4.0, 8.0, 16.0]
    assert {row.name for row in rows} == {NAMES.index("spoofing")}


@pytest.fixture(scope="module")
def made() -> list[Example]:
    """Names that one feature each gives away, with noise."""
    rng = np.random.default_rng(5)
    rows = []
    for k in range(600):
        name = k % len(NAMES)
        seen = 0.3 * rng.random(WIDTH)
        seen[name] += 2.0
        rows.append(Example("made", f"family {name}", 2.0, name, seen))
    return rows


def test_the_fit_finds_what_there_is_and_is_the_same_again(made: list[Example]):
    seen, name = np.array([row.seen for row in made]), np.array([row.name for row in made])
    found = fit(seen, name, balanced(made))
    assert fit(seen, name, balanced(made)).tobytes() == found.tobytes()
    p = probabilities(made, found)
    assert (p.argmax(axis=1) == name).all()
    assert p.sum(axis=1) == pytest.approx(1.0)
    written: dict[str, object] = {}
    exec(source(found, ["made"], len(made)), written)
    assert np.array_equal(written["COEFFICIENTS"], found)
    assert written["FITTED"] == ("made",)


@pytest.mark.parametrize("noise", [0.4, 2.5])
def test_confidence_is_the_share_that_is_right_on_flights_without_a_part_in_the_fit(noise: float):
    dice = np.random.default_rng(5)
    centres = dice.standard_normal((len(NAMES), WIDTH))
    rows = [
        Example(
            f"quad-{k % (2 * PARTS)}", f"family {name}", 0.0, name, centres[name] + noise * dice.standard_normal(WIDTH)
        )
        for k in range(900)
        for name in [int(dice.integers(len(NAMES)))]
    ]
    fitted, others = rows[:300], rows[300:]
    table = fit(np.array([r.seen for r in fitted]), np.array([r.name for r in fitted]), balanced(fitted))
    truth = np.array([r.name for r in others])

    def off(coefficients: np.ndarray) -> float:
        p = probabilities(others, coefficients)
        return abs(float(p.max(axis=1).mean() - (p.argmax(axis=1) == truth).mean()))

    sure = power(fitted, balanced(fitted))
    assert sure == power(fitted, balanced(fitted)) != 1.0
    assert off(sure * table) < max(0.04, off(table))


def test_families_count_alike_however_many_attacks_they_have(made: list[Example]):
    rows = made[:1] * 5 + made[1:2]
    assert balanced(rows) == pytest.approx([0.1] * 5 + [0.5])


def test_the_bins_hold_every_case_once():
    def case(confidence: float, last: str) -> Named:
        return Named("f", "a", "gps_bias", 0, "gps_spoofing", last, last, "spoofing", confidence, 1, 3.0)

    named = [case(0.55, "gps_spoofing"), case(0.55, "imu_fault"), case(1.0, "gps_spoofing"), case(0.3, "imu_fault")]
    found = {b.low: b for b in bins(named)}
    assert (found[0.5].cases, found[0.5].right, found[0.5].confidence) == (2, 0.5, pytest.approx(0.55))
    assert (found[0.9].cases, found[0.0].cases) == (1, 1)
    assert sum(b.cases for b in found.values()) == len(named)
    assert Result(named, 0, []).to_dict()["bins"][0]["cases"] == 1
