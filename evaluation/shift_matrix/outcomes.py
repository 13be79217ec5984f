"""Episodes as outcomes: on what their model was trained, on what it was judged, and the metrics. From frames and files.

A table (a frame, or a .csv) has one row per episode with `trained_on`, `judged_on`, the metrics, and perhaps `seed` and
`model`. A result of `evaluate conflicts --out` has the same names in each episode's metadata. Other names of these
columns are understood (NAMES). What is wrong names the file, the row or episode, the key and what is expected.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.conflicts.api import Conflicts
from watchkeeper.evaluation.conflicts.direction import HEADLINES
from watchkeeper.evaluation.conflicts.fields import is_number
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS
from watchkeeper.streams.foreign.files import UnpackError, read_json, text_file
from watchkeeper.streams.frames.cells import FrameError, numbers, texts
from watchkeeper.streams.frames.read import NAME as FRAME
from watchkeeper.streams.frames.read import columns_in
from watchkeeper.streams.logs.source import LogError

TRAINED, JUDGED, SEED, MODEL = "trained_on", "judged_on", "seed", "model"
# Ours, and the names that a key may have instead; the first found counts.
NAMES: dict[str, tuple[str, ...]] = {
    TRAINED: (TRAINED, "baseline_scenario", "train_scenario"),
    JUDGED: (JUDGED, "test_scenario", "scenario"),
    SEED: (SEED,),
    MODEL: (MODEL, "model_alias"),
}
# Columns that are no metrics, whatever they hold.
_NO_METRICS = {"episode", "episode_id", "run", *(name for names in NAMES.values() for name in names)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One episode."""

    trained_on: str
    judged_on: str
    pair: tuple[str, str] | None
    """Model and seed: what pairs it with the same model's episode elsewhere; None without a seed."""
    values: Mapping[str, float]


Cell = tuple[str, str]
Keys = Mapping[str, str]


def outcomes_in(data: object, keys: Keys, cell: Cell | None = None) -> Iterator[Outcome]:
    """The outcomes of a frame, a .csv, a result of `evaluate conflicts` or its file.

    `keys` says under which other name to look for one of NAMES; `cell` says trained and judged on for all of it.
    Raises LogError and FrameError.
    """
    if isinstance(data, Conflicts):
        yield from _episodes(Path("<conflicts>"), data.to_dict(), keys, cell)
    elif isinstance(data, Mapping) and "episodes" in data and isinstance(data["episodes"], list):
        yield from _episodes(Path("<result>"), data, keys, cell)
    elif isinstance(data, (str, PathLike)):
        path = Path(data)
        if path.suffix.lower() == ".csv":
            yield from _table(path, _csv_columns(path), keys, cell)
        else:
            yield from _episodes(path, read_json(path), keys, cell)
    else:
        yield from _table(FRAME, columns_in(data), keys, cell)


def _episodes(path: Path, document: Any, keys: Keys, cell: Cell | None) -> Iterator[Outcome]:
    episodes = document.get("episodes") if isinstance(document, Mapping) else None
    if not isinstance(episodes, list):
        raise LogError(path, "episodes: missing, expected what `evaluate conflicts --out` writes")
    for k, episode in enumerate(episodes):
        where = f"episodes[{k}]"
        metrics, meta = (episode.get(key) if isinstance(episode, Mapping) else None for key in ("metrics", "meta"))
        if not isinstance(metrics, Mapping):
            raise LogError(path, f"{where}.metrics: missing, expected an object from metric to number")
        meta = meta if isinstance(meta, Mapping) else {}
        found = {name: _first(meta, name, keys) for name in NAMES}
        trained, judged = cell or (found[TRAINED], found[JUDGED])
        for name, value in ((TRAINED, trained), (JUDGED, judged)):
            if not value:
                raise LogError(path, f"{where}.meta.{keys.get(name, name)}: missing; it can be given with --cell")
        yield Outcome(trained, judged, _pair(found[MODEL], found[SEED]), _values(path, where, metrics))


def _values(path: Path, where: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    values = {}
    for name, value in metrics.items():
        if value is None or (isinstance(value, float) and math.isnan(value)):
            values[name] = math.nan
        elif not is_number(value):
            raise LogError(path, f"{where}.metrics.{name}: is {value!r:.40}, expected a finite number or null")
        else:
            values[name] = float(value)
    return values


def _table(path: Path, columns: Mapping[str, Any], keys: Keys, cell: Cell | None) -> Iterator[Outcome]:
    def wrong(problem: str) -> Exception:
        return FrameError(problem) if path == FRAME else LogError(path, problem)

    rows = len(next(iter(columns.values())))
    words: dict[str, list[str]] = {}
    for name in NAMES:
        column = next((known for known in _known(name, keys) if known in columns), None)
        words[name] = [""] * rows if column is None else texts(columns[column])
        if cell is None and column is None and name in (TRAINED, JUDGED):
            allowed = ", ".join(_known(name, keys))
            raise wrong(f"no column {allowed.replace(', ', ' or ')}; there are: {', '.join(columns)}")
    metrics = [name for name in columns if name not in _NO_METRICS | set(keys.values()) and _numeric(columns[name])]
    values = {name: numbers(columns[name], name, "a number").tolist() for name in metrics}
    for row in range(rows):
        trained, judged = cell or (words[TRAINED][row], words[JUDGED][row])
        if not trained or not judged:
            name = TRAINED if not trained else JUDGED
            raise wrong(f"row {row}: {keys.get(name, name)}: missing, expected the name of a scenario")
        pair = _pair(words[MODEL][row], words[SEED][row])
        yield Outcome(trained, judged, pair, {name: values[name][row] for name in metrics})


def _csv_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a CSV: numbers where every cell is one or empty, words elsewhere."""
    with text_file(path) as file:
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            rows = []
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(header):
                    raise LogError(path, f"line {reader.line_num}: {len(cells)} values, the header has {len(header)}")
                rows.append(cells)
        except (csv.Error, UnpackError) as error:
            raise LogError(path, f"line {reader.line_num}: {error}") from error
    if not rows:
        raise LogError(path, "no rows")
    return {name: _typed(path, name, [row[k].strip() for row in rows]) for k, name in enumerate(header)}


def _typed(path: Path, name: str, cells: list[str]) -> list[Any]:
    try:
        return [math.nan if cell.lower() in ("", "nan", "none", "null") else float(cell) for cell in cells]
    except ValueError:
        if name in METRICS + BESIDE:
            row, cell = next((k, cell) for k, cell in enumerate(cells) if cell and not _is_number(cell))
            raise LogError(path, f"row {row}: {name}: {cell!r:.40} is not a number") from None
        return cells


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numeric(cells: Any) -> bool:
    try:
        numbers(cells, "", "")
    except FrameError:
        return False
    return True


def _known(name: str, keys: Keys) -> Sequence[str]:
    return (keys[name],) if name in keys else NAMES[name]


def _first(meta: Mapping[str, Any], name: str, keys: Keys) -> str:
    return next((str(meta[known]) for known in _known(name, keys) if str(meta.get(known, "")) != ""), "")


def _pair(model: str, seed: str) -> tuple[str, str] | None:
    return (model, seed) if seed else None


def chosen(outcomes: Sequence[Outcome], metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics to show: those asked for, else the headlines that are there, else all. Raises LookupError."""
    there = dict.fromkeys(name for outcome in outcomes for name in outcome.values)
    if metrics is None:
        return tuple(name for name in HEADLINES if name in there) or tuple(there)
    for name in metrics:
        if name not in there:
            raise LookupError(f"metric {name!r}: in no episode; there are: {', '.join(there) or 'none'}")
    return tuple(dict.fromkeys(metrics))
