"""The worst moment of every active alarm of one kind, in columns: no Python time per alarm and tick.

The worst moment is that of the highest score; or, where the kind declares one, that of the least value of a figure,
such as the separation of two aircraft. Of equal moments the first counts. A moment begins to count when the alarm is
raised. Evidence may know by now how bad it was between its rows (Hindsight): that counts before the rows themselves.
Where a kind's score `grows` with time alone nothing is kept here: ticks in which nothing happens are left out, so only
what is told may count, and the alarm book compares that.

Owned by a Watch. Times are event time in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from watchkeeper.detectors.alarms.debounce import RAISE, STILL
from watchkeeper.detectors.alarms.events import TIME_DIGITS, Moment
from watchkeeper.detectors.base import Evidence, Hindsight
from watchkeeper.detectors.declaration import AlarmKind
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.detectors.fleet.tables import zeros
from watchkeeper.streams.batch import F8, I4, I8, U1
from watchkeeper.streams.kernels import njit

# Digits after the point in an alarm's numbers: a tenth of a millimetre, or of a millisecond.
DIGITS = 4
# Behind every moment that hindsight knows.
UNSEEN = 1e9


class Worst:
    """One row of figures per cell, of which those of active alarms mean something."""

    def __init__(self, kind: AlarmKind, growing: Growing) -> None:
        self._least, self._grows = kind.least, kind.grows
        self._growing = growing
        # what is compared: the score, or the figure's negative
        self._rank: F8 = growing.full(-np.inf)
        self._t: F8 = growing.full(np.nan)
        self._score: F8 = growing.full(np.nan)
        self._bits: I8 = np.zeros(growing.capacity, np.int64)
        self._causes: list[str] | None = None
        # the evidence's numbers by [cell, name]; memory counts where something was written
        self._names: list[str] = []
        self._numbers: F8 = np.zeros((growing.capacity, 0))
        self._details: dict[int, dict[str, Any]] = {}

    def take(self, ev: Evidence, cell: I4, action: U1, rows: I8) -> None:
        """Note the rows that are worse than anything before in their alarms, after the debouncer gave these actions.

        `rows`: those that have an action.
        """
        if self._grows:
            return
        if ev.hindsight is not None and ev.cause_bits is None and not ev.details:
            self._know(ev.numbers)
            if list(ev.numbers) == list(ev.hindsight.numbers) == self._names and not self._details:
                self._take_seen(ev, ev.hindsight, cell, action, rows)
                return
        did, at = action[rows], cell[rows]
        if (new := did == RAISE).any():
            self._rank[at[new]] = -np.inf
        rank = self._ranks(ev, rows)
        worse = (rank > self._rank[at]) & (new | (did == STILL))
        if not worse.any():
            return
        rows, rank = rows[worse], rank[worse]
        if len(rows) > 1:
            # a cell may have several rows: the worst is written last, of equal ones the first
            order = np.argsort(rank[::-1], kind="stable")
            rows, rank = rows[::-1][order], rank[::-1][order]
        at = cell[rows]
        self._rank[at], self._t[at], self._score[at] = rank, ev.t[rows], ev.score[rows]
        if ev.cause_bits is not None:
            self._causes = list(ev.causes)
            self._bits[at] = ev.cause_bits[rows]
        self._know(ev.numbers)
        if ev.details or self._details:
            for place, row in zip(at.tolist(), rows.tolist(), strict=True):
                self._details[place] = ev.details[row] if ev.details else {}
        if len(ev.numbers) < len(self._names):
            self._numbers[at] = np.nan
        if ev.hindsight is None:
            self._note(at, rows, ev.numbers)
            return
        seen = ev.hindsight.rank[rows] > -np.inf
        if not (seen.all() and ev.hindsight.numbers.keys() >= set(self._names)):
            self._note(at, rows, ev.numbers)
            at, rows = at[seen], rows[seen]
        self._t[at] = ev.hindsight.t[rows]
        self._note(at, rows, ev.hindsight.numbers)

    def _take_seen(self, ev: Evidence, seen: Hindsight, cell: I4, action: U1, rows: I8) -> None:
        """The same where evidence is numbers only, and both it and hindsight have all of them: for many in one go."""
        t, rank, numbers = seen.t, seen.rank, np.array(list(seen.numbers.values()))
        known = rank > -np.inf
        if not known.all():
            figure = ev.numbers.get(self._least)
            t = np.where(known, t, ev.t)
            rank = np.where(known, rank, (ev.score if figure is None else -figure) - UNSEEN)
            numbers = np.where(known, numbers, np.array(list(ev.numbers.values())))
        moments = Moments(np.ascontiguousarray(t), rank, np.ascontiguousarray(ev.score), numbers)
        _take(rows, cell, action, moments, Moments(self._t, self._rank, self._score, self._numbers.T))

    def _note(self, at: I4, rows: I8, numbers: Mapping[str, F8]) -> None:
        """Write these rows of the numbers that there are into these cells."""
        places = [place for place, name in enumerate(self._names) if name in numbers]
        if not places or not len(rows):
            return
        block = np.array([numbers[self._names[place]][rows] for place in places]).T
        if len(places) == len(self._names):
            self._numbers[at] = block
        else:
            self._numbers[at[:, None], places] = block

    def _ranks(self, ev: Evidence, rows: I8) -> F8:
        """How bad each of these rows is: the worse, the larger."""
        figure = ev.numbers.get(self._least)
        rank = ev.score[rows] if figure is None else -figure[rows]
        if ev.hindsight is None:
            return rank
        known = ev.hindsight.rank[rows]
        return np.where(known > -np.inf, known, rank - UNSEEN)

    def _know(self, names: Iterable[str]) -> None:
        """Have a column for each of these numbers. As a rule a kind always has the same ones."""
        new = [name for name in names if name not in self._names]
        if new:
            self._names += new
            numbers = zeros((self._growing.capacity, len(self._names)))
            active = self._rank[: self._growing.ready] > -np.inf
            numbers[: len(active)][active] = np.nan
            numbers[: len(active), : self._numbers.shape[1]] = self._numbers[: len(active)]
            self._numbers = numbers

    def of(self, cell: int) -> Moment | None:
        """The worst moment of an active alarm; None where none is kept."""
        if not self._rank[cell] > -np.inf:
            return None
        causes = None if self._causes is None else named(self._causes, int(self._bits[cell]))
        numbers = dict(zip(self._names, self._numbers[cell].tolist(), strict=True))
        evidence = evidence_of(causes, numbers, self._details.get(cell))
        return Moment(round(float(self._t[cell]), TIME_DIGITS), round(float(self._score[cell]), DIGITS), evidence)

    def adopt(self, cell: int, moment: Moment | None) -> None:
        """An alarm of a journal is active now: its worst moment, unless a worse one is known here."""
        self.forget(np.array([cell], np.int32))
        if moment is None or self._grows:
            return
        evidence = dict(moment.evidence)
        rank = evidence.get(self._least) if self._least else moment.score
        if not isinstance(rank, int | float):
            return
        self._rank[cell], self._t[cell], self._score[cell] = -rank if self._least else rank, moment.t, moment.score
        numbers = {name: value for name, value in evidence.items() if isinstance(value, float) or value is None}
        self._know(numbers)
        self._numbers[cell] = [math.nan if numbers.get(name) is None else numbers[name] for name in self._names]
        self._details[cell] = {name: value for name, value in evidence.items() if name not in numbers}

    def forget(self, cells: I4) -> None:
        """No alarm is active in these cells."""
        self._rank[cells] = -np.inf
        self._t[cells] = self._score[cells] = np.nan
        self._bits[cells] = 0
        self._numbers[cells] = 0.0
        for cell in cells.tolist() if self._details else ():
            self._details.pop(cell, None)

    def snapshot(self, active: I4) -> dict[str, Any]:
        """The moments of these cells."""
        wanted = set(active.tolist())
        return {
            "cells": active,
            "rank": self._rank[active],
            "t": self._t[active],
            "score": self._score[active],
            "bits": self._bits[active],
            "causes": self._causes,
            "names": list(self._names),
            "numbers": self._numbers[active],
            "details": [[cell, details] for cell, details in self._details.items() if cell in wanted],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        at = state["cells"]
        self._rank[at], self._t[at], self._score[at] = state["rank"], state["t"], state["score"]
        self._bits[at] = state["bits"]
        self._causes = None if state["causes"] is None else list(state["causes"])
        self._know(state["names"])
        self._numbers[at] = state["numbers"]
        self._details = {cell: dict(details) for cell, details in state["details"]}


class Moments(NamedTuple):
    """When, how bad, the score, and the numbers of then, `numbers[number, row]`; by row of evidence, or by cell."""

    t: F8
    rank: F8
    score: F8
    numbers: F8


@njit(cache=True)
def _take(rows: I8, cell: I4, action: U1, new: Moments, worst: Moments) -> None:
    for row in rows:
        if action[row] == RAISE:
            worst.rank[cell[row]] = -np.inf
    for row in rows:
        c = cell[row]
        if (action[row] == RAISE or action[row] == STILL) and new.rank[row] > worst.rank[c]:
            worst.t[c], worst.rank[c], worst.score[c] = new.t[row], new.rank[row], new.score[row]
            for k in range(new.numbers.shape[0]):
                worst.numbers[k, c] = new.numbers[k, row]


def named(causes: Sequence[str], bits: int) -> list[str]:
    """The causes whose bits are set.

    >>> named(["jump", "climb", "speed"], 0b101)
    ['jump', 'speed']
    """
    return [name for i, name in enumerate(causes) if bits >> i & 1]


def evidence_of(
    causes: list[str] | None, numbers: Mapping[str, float], details: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Evidence as it is published: causes by name, rounded numbers, null for what is not known."""
    evidence: dict[str, Any] = {} if causes is None else {"causes": causes}
    for name, value in numbers.items():
        evidence[name] = round(value, DIGITS) if -math.inf < value < math.inf else None
    if details:
        evidence |= details
    return evidence
