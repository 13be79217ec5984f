"""Which models are there, and which runs of each: by the names of folders.

A model is a folder with results of `evaluate tracks` in it: the metrics file itself, in a folder by time
(`2025-01-01_12-00-00`, of which the newest counts), in `eval/` and a folder by time, or any of these below a folder for
each seed (`seed42`). Below a folder of models, `vanilla_seed42` and `vanilla_seed43` are two seeds of `vanilla`.
Called by command.py and api.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from watchkeeper.evaluation.tracks.metrics import FILE_NAME

_TIME = re.compile(r"\d{4}-\d\d-\d\d[_T]\d\d[-:]\d\d[-:]\d\d.*")
_SEED = re.compile(r"seed[-_]?(\d+)", re.IGNORECASE)
_NAME_AND_SEED = re.compile(r"(.+?)[-_]seed[-_]?(\d+)", re.IGNORECASE)
RESULT_FOLDER = "eval"


@dataclass(frozen=True, slots=True)
class Found:
    """A model's folder and its metrics files, by seed; a run without one has the seed ""."""

    name: str
    folder: Path
    files: dict[str, Path] = field(default_factory=dict)


def runs_of(path: Path) -> dict[str, Path]:
    """The metrics files of one model, by seed; empty where there is none."""
    if path.is_dir() and not (path / FILE_NAME).exists():
        seeds = {match[1]: folder for folder in sorted(path.iterdir()) if (match := _SEED.fullmatch(folder.name))}
        runs = {seed: file for seed, folder in seeds.items() if (file := find_file(folder)) is not None}
        if runs:
            return _in_order(runs)
    file = find_file(path)
    return {} if file is None else {"": file}


def find_file(path: Path) -> Path | None:
    """The metrics file: the path itself, or in a result folder, or in the newest of its (eval/) timestamp folders."""
    if not path.is_dir():
        return path
    for pattern in (FILE_NAME, f"*/{FILE_NAME}", f"{RESULT_FOLDER}/*/{FILE_NAME}"):
        # the folders are named by time, so the last name is the newest
        found = sorted(path.glob(pattern))
        if found:
            return found[-1]
    return None


def models_below(folder: Path, *, but: Path | None = None) -> tuple[list[Found], list[Path]]:
    """All models below a folder, in order of their names, and its folders that have no metrics; `but` is not looked at.

    Where results lie below `folder` by time alone, each of them is a model.
    """
    models: dict[tuple[str, ...], Found] = {}
    for file in sorted(folder.rglob(FILE_NAME)):
        if but is not None and file.is_relative_to(but):
            continue
        parts, seed = _model_and_seed(file.parent.relative_to(folder).parts)
        own = models.setdefault(parts, Found("_".join(parts) or folder.resolve().name, folder.joinpath(*parts)))
        own.files[seed] = file  # folders by time come in order, so the newest stays
    ordered = [
        Found(own.name, own.folder if own.folder.is_dir() else own.folder.parent, _in_order(own.files))
        for own in models.values()
    ]
    used = {file.relative_to(folder).parts[0] for own in ordered for file in own.files.values()}
    empty = [
        below for below in sorted(folder.iterdir())
        if below.is_dir() and below.name not in used and not below.name.startswith(".") and below != but
        and not any(below.rglob(FILE_NAME))
    ]  # fmt: skip
    return ordered, empty


def _in_order(runs: dict[str, Path]) -> dict[str, Path]:
    """By seed, as numbers."""
    return dict(sorted(runs.items(), key=lambda run: int(run[0] or -1)))


def _model_and_seed(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """What of a result folder's path names the model, and the seed."""
    seed, rest = "", parts
    while rest and (_TIME.fullmatch(rest[-1]) or rest[-1] == RESULT_FOLDER or (not seed and _SEED.fullmatch(rest[-1]))):
        if match := _SEED.fullmatch(rest[-1]):
            seed = match[1]
        rest = rest[:-1]
    if rest and not seed and (match := _NAME_AND_SEED.fullmatch(rest[-1])):
        return (*rest[:-1], match[1]), match[2]
    # nothing but times and seeds: then these are all that tells one from the other
    return (rest, seed) if rest else (parts, "")
