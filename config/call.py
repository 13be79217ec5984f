"""`watchkeeper.config(…)`: a configuration from Python. The package itself can be called, see __init__.py."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchkeeper.config.schema import Config


def config(path: str | PathLike[str] | None = None, **overrides: Any) -> Config:
    """The effective configuration: defaults, profile, file, environment, and what is given here.

    A setting is named by its sections, with two underscores between the levels as in environment variables, or given
    as a nested dictionary. Without a path the file is the one in WATCHKEEPER_CONFIG, if any. Raises ConfigError, which
    says all that is wrong.

    >>> import watchkeeper as wk
    >>> wk.config(detectors__conflict__horizon_s=90.0).detectors.conflict.horizon_s
    90.0
    >>> wk.config(profile="high-sensitivity").detectors.conflict.debounce.n
    3
    """
    # on first use: `import watchkeeper` stays quick
    from watchkeeper.config.guests import discover  # noqa: PLC0415
    from watchkeeper.config.loader import load  # noqa: PLC0415

    discover()

    tree: dict[str, Any] = {}
    for name, value in overrides.items():
        *sections, key = name.split("__")
        table = tree
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    return load(None if path is None else Path(path), overrides=tree)
