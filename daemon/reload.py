"""What may change while the daemon runs (SIGHUP), and what needs a restart.

Thresholds, debounce counts, the rules of event time, the alarm table, the declared network and the log change at once
and lose no state. Addresses, sizes and the set of detectors are built in at the start: a change is named in a warning
and waits.
"""

from __future__ import annotations

from typing import Any

import msgspec

from watchkeeper.config.loader import SETTINGS
from watchkeeper.config.schema import Config

LIVE_SECTIONS = ("profile", "time", "alarms", "log", "topology", "detectors")
# Ticks are numbered by their length; detectors and their tables are made once.
FIXED_KEYS = ("time.tick_s", "detectors.conflict.max_pairs")


def is_live(key: str) -> bool:
    """True if a new value of this setting takes effect without a restart."""
    return key.partition(".")[0] in LIVE_SECTIONS and key not in FIXED_KEYS and not key.endswith(".enabled")


def merge(old: Config, new: Config) -> tuple[Config, list[str], list[str]]:
    """The old configuration with the new live settings; the keys that changed, and those that wait for a restart."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    changed, waiting = [], []
    for key, setting in SETTINGS.items():
        *path, name = setting.path
        table, wanted = _table(before, path), _table(after, path)[name]
        if table[name] == wanted:
            continue
        if is_live(key):
            table[name] = wanted
            changed.append(key)
        else:
            waiting.append(key)
    return msgspec.convert(before, Config), changed, waiting


def _table(tree: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for name in path:
        tree = tree[name]
    return tree
