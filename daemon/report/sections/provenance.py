"""Where a report comes from: the logs with their digests, the settings that are not the default, versions, command."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from pathlib import Path
from typing import Any

from watchkeeper.config.guests import SETTINGS, default
from watchkeeper.config.masking import masked_value
from watchkeeper.config.reference import toml_value
from watchkeeper.config.schema import Config

CHUNK_BYTES = 1 << 20
PACKAGES = ("watchkeeper", "numpy", "numba", "pyulog", "pymavlink", "rs1090")
HIDDEN = "(set, and not shown)"


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting that is not the default."""

    key: str
    value: str
    default: str
    unit: str
    reason: str


def changed(config: Config) -> list[Changed]:
    """The settings of this configuration that differ from the default, without secrets."""
    found = []
    plain = default()
    for setting in SETTINGS.values():
        value, usual = attrgetter(setting.key)(config), attrgetter(setting.key)(plain)
        if value == usual:
            continue
        if setting.secret:
            shown = HIDDEN
        elif setting.table is not None:
            shown = f"{len(value)} tables"
        else:
            shown = _shown(value)
        before = "none" if setting.table is not None else _shown(usual)
        found.append(Changed(setting.key, shown, before, setting.unit, setting.reason))
    return found


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return masked_value(toml_value(value)) if isinstance(value, str) else toml_value(value)


def digest(path: Path) -> str:
    """The SHA-256 of a file, or of the files of a folder one after the other; empty when it is no file."""
    parts = sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]
    total = hashlib.sha256()
    try:
        for part in parts:
            with part.open("rb") as file:
                while data := file.read(CHUNK_BYTES):
                    total.update(data)
    except OSError:
        return ""
    return total.hexdigest()


def versions() -> dict[str, str]:
    """What the figures depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def command_line(words: Sequence[str]) -> str:
    """The command that makes the same report again, for a shell."""
    return masked_value(shlex.join(words))
