"""The shift matrix: known answers of a hand-made one, properties, and intervals against SciPy's."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import watchkeeper as wk
from watchkeeper.evaluation.paired.stats import compare_models_paired
from watchkeeper.evaluation.shared.errors import EvaluationError

CELLS = {
    ("calm", "calm"): [1.0, 1.0, 1.0, 0.8],
    ("calm", "busy"): [0.5, 0.5, 0.7, 0.7],
    ("busy", "calm"): [0.9, 0.7, 0.8, 0.8],
    ("busy", "busy"): [0.8, 0.6, 0.7, 0.7],
}


def frame(cells: dict[tuple[str, str], list[float]], *, seeds: bool = True, metric: str = "f1_score") -> dict[str, Any]:
    rows = [(*cell, k, value) for cell, values in cells.items() for k, value in enumerate(values)]
    columns = dict(zip(("trained_on", "judged_on", "seed", metric), map(list, zip(*rows, strict=True)), strict=True))
    return columns if seeds else {name: column for name, column in columns.items() if name != "seed"}


def cell_of(result: Any, trained: str, judged: str) -> Any:
    return next(c for c in result.matrices[0].cells if (c.trained_on, c.judged_on) == (trained, judged))


def test_a_hand_made_matrix_has_the_known_answers() -> None:
    result = wk.evaluate.shift_matrix(frame(CELLS))
    matrix = result["f1_score"]
    assert matrix.trained_on == matrix.judged_on == ["calm", "busy"]
    assert matrix.grid("mean") == pytest.approx(np.array([[0.95, 0.6], [0.8, 0.7]]))
    assert matrix.grid("std")[0] == pytest.approx([0.1, 0.2 / math.sqrt(3.0)])
    assert (matrix.grid("n") == 4.0).all()
    assert matrix.grid("difference") == pytest.approx(np.array([[0.0, -0.35], [0.1, 0.0]]))
    assert matrix.grid("ratio") == pytest.approx(np.array([[1.0, 0.6 / 0.95], [0.8 / 0.7, 1.0]]))
    assert matrix.grid("native_difference") == pytest.approx(np.array([[0.0, -0.1], [-0.15, 0.0]]))
    calm, busy, everything = matrix.gaps
    assert (calm.gap, busy.gap, everything.gap) == pytest.approx((-0.35, 0.1, -0.125))
    # every pair of the second row differs by exactly 0.1, for the better
    assert (busy.low, busy.high, busy.worse) == pytest.approx((0.1, 0.1, False))
    assert (calm.worse, everything.trained_on, everything.scenarios) == (True, "", 2)


def test_lower_is_better_turns_the_verdict_and_an_unknown_metric_has_none() -> None:
    for metric, verdict in (("num_los_events", False), ("f1_score", True), ("my_own_figure", None)):
        result = wk.evaluate.shift_matrix(frame(CELLS, metric=metric))
        assert cell_of(result, "calm", "busy").worse is verdict


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_diagonal_has_no_gap(home: list[float], away: list[float]) -> None:
    result = wk.evaluate.shift_matrix(frame({("a", "a"): home, ("a", "b"): away}), resamples=100)
    cell = cell_of(result, "a", "a")
    assert (cell.difference, cell.low, cell.high, cell.how) == (0.0, 0.0, 0.0, "diagonal")
    assert math.isnan(cell.ratio) if cell.mean == 0.0 else cell.ratio == 1.0


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=20, deadline=None)
def test_permuting_the_rows_permutes_the_matrix_and_changes_nothing_else(random: Any, seeds: bool) -> None:
    names = ["a", "b", "c"]
    cells = {(i, j): [random.uniform(0.0, 1.0) for _ in range(5)] for i in names for j in names}
    data = frame(cells, seeds=seeds)
    order = list(range(len(data["f1_score"])))
    random.shuffle(order)
    mixed = {name: [column[k] for k in order] for name, column in data.items()}
    first, second = (wk.evaluate.shift_matrix(each, resamples=200)["f1_score"] for each in (data, mixed))
    # compared as text, because NaN is NaN
    plain = [
        {str(msgspec.to_builtins(row)) for row in rows} for m in (first, second) for rows in (m.cells, m.gaps[:-1])
    ]
    assert (plain[0], plain[1]) == (plain[2], plain[3])
    assert (first.gaps[-1].gap, first.gaps[-1].low) == pytest.approx((second.gaps[-1].gap, second.gaps[-1].low))
    at = [first.trained_on.index(name) for name in second.trained_on]
    to = [first.judged_on.index(name) for name in second.judged_on]
    assert (first.grid("mean")[np.ix_(at, to)] == second.grid("mean")).all()


def test_the_same_seeds_are_compared_pair_by_pair() -> None:
    cell = cell_of(wk.evaluate.shift_matrix(frame(CELLS), seed=3), "calm", "busy")
    expected = compare_models_paired(CELLS["calm", "busy"], CELLS["calm", "calm"], "", "", "f1_score", seed=3)
    assert (cell.how, cell.low, cell.high) == ("paired", expected.ci_low, expected.ci_high)
    assert cell.p_value == expected.p_value


@pytest.mark.parametrize(
    "change", [{"seed": [0, 1, 2, 3, 4, 5, 6, 7]}, {"seed": [0, 1, 2, 2, 0, 1, 2, 2]}, {"seed": None}]
)
def test_other_seeds_seeds_that_come_twice_and_none_are_not_paired(change: dict[str, Any]) -> None:
    data = frame({cell: CELLS[cell] for cell in (("calm", "calm"), ("calm", "busy"))}) | change
    result = wk.evaluate.shift_matrix({name: column for name, column in data.items() if column is not None})
    cell = cell_of(result, "calm", "busy")
    assert (cell.how, math.isnan(cell.p_value)) == ("independent", True)
    assert cell.difference == pytest.approx(-0.35)
    assert any("twice" in note for note in result.notes) == (change["seed"] == [0, 1, 2, 2, 0, 1, 2, 2])


def test_the_independent_interval_is_that_of_scipys_bootstrap() -> None:
    rng = np.random.default_rng(5)
    home, away = rng.normal(1.0, 0.3, 60), rng.normal(0.7, 0.5, 40)
    cells = {("a", "a"): home.tolist(), ("a", "b"): away.tolist()}
    cell = cell_of(wk.evaluate.shift_matrix(frame(cells, seeds=False), resamples=20_000), "a", "b")
    expected = stats.bootstrap(
        (away, home), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), n_resamples=20_000,
        method="percentile", random_state=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert (cell.low, cell.high) == pytest.approx((expected.low, expected.high), abs=0.005)


def test_the_gap_of_a_row_counts_every_scenario_once() -> None:
    cells = {("a", "a"): [1.0] * 4, ("a", "b"): [0.5] * 4, ("a", "c"): [0.0] * 40}
    (gap,) = wk.evaluate.shift_matrix(frame(cells, seeds=False))["f1_score"].gaps
    assert (gap.gap, gap.low, gap.high, gap.scenarios, gap.how) == (-0.75, -0.75, -0.75, 2, "independent")


def test_the_gap_over_all_rows_draws_the_same_seeds_in_each() -> None:
    differences = [0.1, -0.2, 0.3, 0.05, 0.4]
    cells = {
        ("a", "a"): [1.0] * 5, ("a", "b"): [1.0 + d for d in differences],
        ("b", "b"): [1.0] * 5, ("b", "a"): [1.0 - d for d in differences],
    }  # fmt: skip
    first, second, everything = wk.evaluate.shift_matrix(frame(cells))["f1_score"].gaps
    assert first.high - first.low > 0.1
    assert (second.low, second.high) == pytest.approx((-first.high, -first.low))
    assert (everything.gap, everything.low, everything.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_values_that_are_no_numbers_are_left_out_and_few_episodes_have_no_interval() -> None:
    cells = {("a", "a"): [1.0, math.nan, 1.0], ("a", "b"): [0.5, 0.5, math.nan], ("a", "c"): [math.nan] * 3}
    result = wk.evaluate.shift_matrix(frame(cells))
    cell = cell_of(result, "a", "b")
    assert (cell.n, cell.mean, cell.how, math.isnan(cell.low)) == (2, 0.5, "none", True)
    assert cell.difference == -0.5
    nothing = cell_of(result, "a", "c")
    assert (nothing.n, math.isnan(nothing.mean), math.isnan(nothing.difference)) == (0, True, True)


def test_without_a_diagonal_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(EvaluationError, match="trained on a; judged on b"):
        wk.evaluate.shift_matrix(frame({("a", "b"): [1.0, 2.0]}))
    result = wk.evaluate.shift_matrix(frame({("a", "a"): [1.0], ("b", "a"): [2.0]}))
    assert result.notes == ["trained on b: never judged there, so nothing to compare with"]
    assert math.isnan(cell_of(result, "b", "a").difference)
