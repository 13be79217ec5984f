"""Feature leakage: columns that give the answer away, by their name or by how they go with the label or each other."""

from __future__ import annotations

import csv
from array import array
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from watchkeeper.evaluation.shared.features import banned
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.files import UnpackError, text_file
from watchkeeper.streams.frames.cells import texts
from watchkeeper.streams.frames.read import NAME as FRAME
from watchkeeper.streams.frames.read import columns_in
from watchkeeper.streams.logs.source import LogError

LABELS = ("label", "is_attack", "attacked")
# Columns that say where a row comes from, not what was measured.
BOOKKEEPING = ("id", "t", "kind", "flight", "flight_id", "split", "via")


@dataclass(frozen=True, slots=True)
class Feature:
    """One column and how closely it follows the label, whichever of Pearson and Spearman is larger in size."""

    name: str
    correlation: float


def correlations(data: object, label: str | None) -> tuple[str, list[Feature]]:
    """The label's name, and all features, the most telling first; of a file or a frame."""
    chosen, truth, columns = _columns(data, label)
    features = [Feature(name, _correlation(column, truth)) for name, column in columns.items()]
    return chosen, sorted(features, key=lambda feature: -abs(feature.correlation))


def feature_leaks(data: object, limit: float, label: str | None, profile: str) -> list[str]:
    """What a feature table gives away, one line each."""
    chosen, truth, columns = _columns(data, label)
    features = {name: _correlation(column, truth) for name, column in columns.items()}
    found = [f"column {name!r} is banned by its name" for name in banned(features, profile)]
    found += [
        f"column {name!r} goes with {chosen!r} (correlation {features[name]:+.3f}, limit {limit:g})"
        for name in sorted(features, key=lambda name: -abs(features[name]))
        if abs(features[name]) > limit
    ]
    for (a, one), (b, other) in combinations(columns.items(), 2):
        if abs(both := _correlation(one, other)) > limit:
            found.append(
                f"columns {a!r} and {b!r} go together (correlation {both:+.3f}, limit {limit:g}): one is a copy"
            )
    return found


def _columns(data: object, label: str | None) -> tuple[str, F8, dict[str, F8]]:
    """The label's name and values, and the features by name."""
    path = Path(data) if isinstance(data, (str, PathLike)) else None
    names, values = _read(path) if path else _read_frame(data)
    path = path or FRAME
    chosen = label or next((name for name in LABELS if name in names), None)
    if chosen is None or chosen not in names:
        wanted = repr(label) if label else " or ".join(map(repr, LABELS))
        raise LogError(path, f"no column {wanted}; there are: {', '.join(names)}")
    truth = values[names.index(chosen)]
    if np.unique(truth[np.isfinite(truth)]).size < 2:
        raise LogError(path, f"column {chosen!r} has one value only: there is nothing to tell apart")
    columns = zip(names, values, strict=True)
    return chosen, truth, {n: v for n, v in columns if n != chosen and n.lower() not in BOOKKEEPING}


def _correlation(column: F8, truth: F8) -> float:
    both = np.isfinite(column) & np.isfinite(truth)
    x, y = column[both], truth[both]
    if len(x) < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    linear, ranks = (float(np.corrcoef(a, b)[0, 1]) for a, b in ((x, y), (rankdata(x), rankdata(y))))
    return linear if abs(linear) > abs(ranks) else ranks


def _read(path: Path) -> tuple[list[str], list[F8]]:
    with text_file(path) as file:
        rows = csv.reader(file)
        try:
            names = next(rows, [])
            columns = [array("d") for _ in names]
            for row in rows:
                if len(row) != len(names):
                    raise LogError(path, f"line {rows.line_num:,} has {len(row)} columns, the head has {len(names)}")
                for column, word in zip(columns, row, strict=True):
                    column.append(_number(word))
        except (csv.Error, UnpackError) as error:
            raise LogError(path, f"line {rows.line_num + 1:,}: {error}") from error
    if not names:
        raise LogError(path, "empty: no head with the columns' names")
    return names, [np.array(column) for column in columns]


def _read_frame(data: object) -> tuple[list[str], list[F8]]:
    columns = columns_in(data)
    return list(columns), [np.array([_number(word) for word in texts(cells)]) for cells in columns.values()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(word.lower(), np.nan)
