"""Checked reading of the parts that a trajectory is made of. What does not fit is named: field, step, agent, value."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I8, Bool


class EpisodeError(ValueError):
    """A trajectory that cannot be used; `field` says where."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def no_typos(given: Collection[str], known: Sequence[str], where: str = "") -> None:
    """Other fields may be there, but none whose name is nearly that of a known one that is missing."""
    missing = [name for name in known if name not in given]
    for name in given:
        if name not in known and (near := get_close_matches(str(name), missing, 1, 0.8)):
            raise EpisodeError(f"{where}{name}", f"unknown field; did you mean {near[0]}?")


def part(trajectory: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object of the trajectory; an empty one where it is missing."""
    found = trajectory.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise EpisodeError(name, f"expected an object, got {type(found).__name__}")
    return found


def per_step(trajectory: Mapping[str, Any], name: str, steps: int) -> Sequence[Any]:
    """An array of the trajectory with at most one entry per step; an empty one where it is missing."""
    found = trajectory.get(name)
    if found is None:
        return []
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise EpisodeError(name, f"expected an array with one object per step, got {type(found).__name__}")
    if len(found) > steps:
        raise EpisodeError(name, f"{len(found)} steps, but positions has {steps}")
    return found


def pairs_at(
    steps: Sequence[Mapping[str, Sequence[float]]], name: str, column: Mapping[str, int], *, grow: bool = False
) -> tuple[dict[str, int], I8, F8]:
    """Two numbers per step and agent, as columns of agents, flat places in [step, agent] and values [n, 2].

    With `grow` new agents get the next column; otherwise an agent without one is an error.
    """
    columns = dict(column)
    try:
        if grow:
            for step in steps:
                if not columns.keys() >= step.keys():
                    for agent in step:
                        columns.setdefault(agent, len(columns))
        width, everyone = len(columns), list(columns)
        if all(list(step) == everyone for step in steps):
            at = np.arange(width * len(steps), dtype=np.int64)
        else:
            at = np.array([k * width + columns[agent] for k, step in enumerate(steps) for agent in step], np.int64)
        pairs = list(chain.from_iterable(step.values() for step in steps))
        values = list(chain.from_iterable(pairs))
        # text that looks like a number would pass NumPy, and so would true
        good = set(map(len, pairs)) <= {2} and not {str, bool} & set(map(type, values))
        # by way of an array: that takes a third of the time of a list
        found = np.frombuffer(array("d", values), np.float64)
        good = good and bool(np.isfinite(found).all())
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        good = False
    if not good:
        raise _pair_error(steps, name, columns)
    return columns, at, found.reshape(-1, 2)


def _pair_error(steps: Any, name: str, columns: Mapping[str, int]) -> EpisodeError:
    """The first thing wrong with it; only asked when something is."""
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        return EpisodeError(name, f"expected an array with one object per step, got {type(steps).__name__}")
    for k, step in enumerate(steps):
        if not isinstance(step, Mapping):
            return EpisodeError(f"{name}[{k}]", f"expected an object from agent to two numbers, got {step!r:.60}")
        for agent, pair in step.items():
            where = f"{name}[{k}].{agent}"
            if columns and agent not in columns:
                return EpisodeError(where, "this agent has no position")
            if isinstance(pair, str) or not isinstance(pair, (Sequence, np.ndarray)) or len(pair) != 2:
                return EpisodeError(where, f"expected two numbers, got {pair!r:.60}")
            for i in (0, 1):
                if not is_number(pair[i]):
                    return EpisodeError(f"{where}[{i}]", f"expected a finite number, got {pair[i]!r:.40}")
    return EpisodeError(name, "cannot be read")


def is_number(value: Any) -> bool:
    """A finite one; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def series(values: Any, name: str, present: Bool) -> F8:
    """One value per step, None where the agent is absent; or one per step at which it is present."""
    if not isinstance(values, (Sequence, np.ndarray)) or isinstance(values, str):
        raise EpisodeError(name, f"expected an array, got {type(values).__name__}")
    steps, there = len(present), int(present.sum())
    if len(values) not in (steps, there):
        whole = f"{steps}, one per step" + ("" if there == steps else f", or {there}, one per step of this agent")
        raise EpisodeError(name, f"{len(values)} values, expected {whole}")
    found = _floats(values, name)
    if len(found) == steps:
        return found
    out = np.full(steps, np.nan)
    out[present] = found
    return out


def _floats(values: Sequence[Any] | NDArray[Any], name: str) -> F8:
    """Numbers, NaN and None as numbers."""
    kinds = set(map(type, values))
    if kinds <= {float, int, type(None), np.float64}:
        given = [math.nan if value is None else value for value in values] if type(None) in kinds else values
        with suppress(OverflowError):
            found = np.array(given, np.float64)
            if not np.isinf(found).any():
                return found
    for k, value in enumerate(values):
        if value is not None and not (is_number(value) or (isinstance(value, float) and math.isnan(value))):
            raise EpisodeError(f"{name}[{k}]", f"expected a finite number or null, got {value!r:.40}")
    return np.array([math.nan if value is None else value for value in values], np.float64)


def ascending(values: Any, name: str, steps: int) -> F8:
    """Times, one per step, each later than the one before."""
    times = series(values, name, np.ones(steps, bool))
    wrong = np.flatnonzero(~(np.diff(times) > 0.0))
    if len(wrong) or np.isnan(times).any():
        k = int(wrong[0]) + 1 if len(wrong) else 0
        before = f", after {times[k - 1]:g}" if k else ""
        raise EpisodeError(f"{name}[{k}]", f"times must increase, got {times[k]:g}{before}")
    return times
