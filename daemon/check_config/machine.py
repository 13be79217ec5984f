"""What a good configuration needs of this machine: installed packages, files that can be read, folders to write to.

A key whose name ends in `_file` names a file, in `_dir` a folder that the daemon writes to, in `_env` a variable.
Without these and without the packages of its sources the daemon does not start, or starts with less than was asked for.
A document or a serial device may come later: the daemon waits for it, so its absence is only said.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.guests import SETTINGS, values_of
from watchkeeper.config.outputs import Notify
from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.daemon.outputs.notify.service import Service
from watchkeeper.streams.logs.base import LogError


@dataclass(frozen=True, slots=True)
class Lack:
    """What is not there, by the key that asks for it. `waits`: the daemon starts all the same, and waits for it."""

    key: str
    problem: str
    waits: bool = False


def lacks(config: Config, env: Mapping[str, str]) -> list[Lack]:
    """Everything that this configuration names and this machine does not have."""
    return [
        *_named(config, env),
        *(lack for i, source in enumerate(config.sources) for lack in _source(i, source, config)),
        *(lack for i, notify in enumerate(config.notify) for lack in _notify(i, notify)),
    ]


def _named(config: Config, env: Mapping[str, str]) -> Iterator[Lack]:
    for key, value in values_of(config).items():
        if SETTINGS[key].table is None:
            yield from _one(key, value, env)
        else:
            for i, item in enumerate(value):
                for name, inner in item.items():
                    yield from _one(f"{key}[{i}].{name}", inner, env)


def _one(key: str, value: Any, env: Mapping[str, str]) -> Iterator[Lack]:
    if not isinstance(value, str) or not value:
        return
    problem = ""
    if key.endswith("_file"):
        problem = unreadable(Path(value))
    elif key.endswith("_dir"):
        problem = unwritable(Path(value))
    elif key.endswith("_env") and not env.get(value):
        problem = f"the environment variable {value} is not set"
    if problem:
        yield Lack(key, problem)


def unreadable(path: Path) -> str:
    """Why a file cannot be read; empty when it can."""
    try:
        path.open("rb").close()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return ""


def unwritable(path: Path) -> str:
    """Why nothing can be written to a folder, or why it cannot be made; empty when it can."""
    there = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), Path("/"))
    try:
        # a file without a name: it leaves nothing behind
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        return f"{path} cannot be written to: {there}: {error.strerror}"
    return ""


def _source(i: int, source: Source, config: Config) -> Iterator[Lack]:
    key = f"sources[{i}]"
    try:
        LiveSource(source, config, lambda _batch: None)
    except ModuleNotFoundError as error:
        yield Lack(f"{key}.type", str(error))
        return
    except (OSError, ValueError, LogError) as error:
        yield Lack(key, str(error))
        return
    where = urlsplit(source.url)
    path = Path(unquote(where.path))
    if where.scheme in ("file", "serial") and (problem := unreadable(path)):
        yield Lack(f"{key}.url", problem, waits=True)
    if where.scheme == "bluesky" and not where.netloc and where.path != "/" and (problem := unreadable(path)):
        yield Lack(f"{key}.url", problem)


def _notify(i: int, notify: Notify) -> Iterator[Lack]:
    try:
        Service(notify)
    except (ModuleNotFoundError, ValueError) as error:
        yield Lack(f"notify[{i}]", str(error))
    except OSError:
        # said by the name of the file or the variable
        return
