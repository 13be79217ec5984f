"""Runs, expansion and matching of the second implementation, worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from second.alerts import debounce, widen
from second.compare import compare
from second.log import Log
from second.settings import Settings
from second.windows import expanded, iou, matched, runs


def flags(picture: str) -> list[bool]:
    return [character == "#" for character in picture]


def picture(values: list[bool]) -> str:
    return "".join("#" if value else "." for value in values)


def log(**settings: int) -> Log:
    return Log({"positions": [{}]}, Settings(**settings))


def test_runs_are_half_open():
    assert runs(flags("##..#.###")) == [(0, 2), (4, 5), (6, 9)]
    assert runs(flags("....")) == []


@given(st.lists(st.booleans()))
def test_runs_give_the_flags_back(values: list[bool]):
    found = runs(values)
    inside = {t for start, end in found for t in range(start, end)}
    assert [t in inside for t in range(len(values))] == values
    # Maximal: between two runs there is a step that is in none.
    assert all(end < start for (_, end), (start, _) in pairwise(found))


def test_expansion_is_clipped_and_leaves_overlaps_separate():
    #  0123456789
    #  .##..#....   runs [1, 3) and [5, 6); two steps more: [-1, 5) and [3, 8)
    assert expanded(flags(".##..#...."), 2, merge_overlapping=False) == [(0, 5), (3, 8)]
    assert expanded(flags(".##..#...."), 2, merge_overlapping=True) == [(0, 8)]
    # One step more: [0, 4) and [4, 7) touch.
    assert expanded(flags(".##..#...."), 1, merge_overlapping=True) == [(0, 4), (4, 7)]


def test_iou_counts_steps():
    assert iou((0, 10), (5, 15)) == pytest.approx(5 / 15)
    assert iou((0, 60), (5, 11)) == 0.1
    assert iou((0, 5), (5, 10)) == 0.0


def test_matching_is_greedy_in_the_order_of_conflicts():
    # The first conflict takes the only alert (IoU 4/12), though the second is the same window (10/10).
    assert matched([(0, 6), (2, 12)], [(2, 12)], 0.1) == [(0, 0)]
    # Best first, and each alert once.
    assert matched([(0, 10), (0, 10)], [(0, 4), (0, 8)], 0.1) == [(0, 1), (1, 0)]
    # The first of two equals.
    assert matched([(0, 10)], [(0, 4), (6, 10)], 0.1) == [(0, 0)]
    # At the threshold it matches, below it does not: 1/10 and 1/11.
    assert matched([(0, 10)], [(9, 10)], 0.1) == [(0, 0)]
    assert matched([(0, 11)], [(9, 10)], 0.1) == []


def test_debounce_looks_back():
    #   #.#...##.#   two of three, the step itself and the two before it
    assert picture(debounce(flags("#.#...##.#"), log())) == "..#....###"
    assert picture(debounce(flags("#.#...##.#"), log(debounce_n=1, debounce_m=1))) == "#.#...##.#"


def test_widening():
    assert picture(widen(flags("...#....#"), log())) == "..###..##"
    assert picture(widen(flags("...#....#"), log(lag_pre_steps=2, lag_post_steps=0))) == ".###..###"


def test_compare_names_what_differs():
    first = {"tp": 1, "rate": None, "nm": 100.0, "only": 1.0}
    second = {"tp": 2, "rate": float("nan"), "nm": 100.00005, "other": 1.0}
    assert compare(first, second) == ["only", "other", "tp"]
    assert compare({"rate": None, "nm": 0.0}, {"rate": 0.0, "nm": 1e-5}) == ["nm", "rate"]
    assert compare({"nm": 0.0}, {"nm": 1e-5}, tolerance=1e-4) == []
