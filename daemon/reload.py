"""What may change while the daemon runs (SIGHUP), and what needs a restart.

Each setting says so itself (`live` in config/). A live setting takes effect at once and loses no state: the daemon goes
on as if it had been restarted with the new value. Any other is built in at the start: a change is named in a warning
and waits.
"""

from __future__ import annotations

from watchkeeper.config.guests import SETTINGS, build, values_of
from watchkeeper.config.schema import Config


def merge(old: Config, new: Config) -> tuple[Config, list[str], list[str]]:
    """The old configuration with the new live settings; the keys that changed, and those that wait for a restart."""
    before, after = values_of(old), values_of(new)
    differ = [key for key in SETTINGS if before[key] != after[key]]
    changed = [key for key in differ if SETTINGS[key].live]
    waiting = [key for key in differ if not SETTINGS[key].live]
    return build(before | {key: after[key] for key in changed}), changed, waiting
