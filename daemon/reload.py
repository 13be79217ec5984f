"""What may change while the daemon runs (SIGHUP), and what needs a restart.

Each setting says so itself (`live` in config/). A live setting takes effect at once and loses no state: the daemon goes
on as if it had been restarted with the new value. Any other is built in at the start: a change is named in a warning
and waits. A configuration that cannot be read changes nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from watchkeeper.config.guests import SETTINGS, build, values_of
from watchkeeper.config.loader import ConfigError
from watchkeeper.config.schema import Config
from watchkeeper.daemon import logs
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.supervisor import Supervisor

log = logging.getLogger(__name__)


def merge(old: Config, new: Config) -> tuple[Config, list[str], list[str]]:
    """The old configuration with the new live settings; the keys that changed, and those that wait for a restart."""
    before, after = values_of(old), values_of(new)
    differ = [key for key in SETTINGS if before[key] != after[key]]
    changed = [key for key in differ if SETTINGS[key].live]
    waiting = [key for key in differ if not SETTINGS[key].live]
    return build(before | {key: after[key] for key in changed}), changed, waiting


class Reloader:
    """Reads the configuration again when it is called, and counts how that went.

    `load` reads it, None: there is nothing to read; `current` is what is in force, `apply` puts another in force.
    """

    def __init__(
        self,
        load: Callable[[], Config] | None,
        supervisor: Supervisor,
        current: Callable[[], Config],
        apply: Callable[[Config], None],
    ) -> None:
        self._load, self._supervisor = load, supervisor
        self._current, self._apply = current, apply
        self.counts: Counter[str] = Counter()

    def __call__(self) -> None:
        """Read it again; a bad one changes nothing."""
        if self._load is None:
            return
        self._supervisor.reloading()
        try:
            self._reload(self._load)
        except Exception:  # a configuration that nobody foresaw: the old one stays, and the supervisor is answered
            self.counts["refused"] += 1
            log.exception("configuration refused")
        finally:
            self._supervisor.ready()

    def _reload(self, load: Callable[[], Config]) -> None:
        try:
            config, changed, waiting = merge(self._current(), load())
        except ConfigError as error:
            self.counts["refused"] += 1
            for problem in error.problems:
                log.error("configuration refused", extra=kv(key=problem.key, problem=" ".join(str(problem).split())))
            return
        self._apply(config)
        logs.set_up(config.log)
        self.counts["applied"] += 1
        log.info("configuration reloaded", extra=kv(changed=",".join(changed) or "nothing"))
        if waiting:
            log.warning("these settings need a restart", extra=kv(keys=",".join(waiting)))
