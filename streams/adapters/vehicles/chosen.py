"""Which numbers of a recording are signals: the usual ones of its format, and others by pattern (`[recordings]`).

Of each topic or message the name of a number is `topic.field`; of another than the first instance `topic[1].field`.
Used by the readers of flight logs and bags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.signals import RESERVED, SIGNAL_NAME_MAX, is_name, matcher

# An array of more is a picture or a cloud, and messages within messages end somewhere.
ARRAY_MAX, DEPTH_MAX = 32, 4
# What is in every message and is no measurement.
_STAMPS = frozenset({"timestamp", "timestamp_sample", "TimeUS", "header", "mavpackettype"})
_NAMES_TOLD = 5


class Chosen:
    """What a configuration asks of one recording; `problems` says what of it could not be done."""

    def __init__(self, settings: Recordings | None = None) -> None:
        settings = settings or Recordings()
        self.patterns = settings.signals
        self._more, self._without = matcher(settings.signals), matcher(settings.without)
        self._begins = [re.split(r"[*?\[]", pattern, maxsplit=1)[0] for pattern in settings.signals]
        self._left: dict[str, None] = {}
        self._found = False

    def usual(self, name: str) -> bool:
        """Whether a number that is a signal by default is one."""
        return not self._without.fullmatch(name)

    def more(self, name: str) -> bool:
        """Whether another number is a signal."""
        if not self._more.fullmatch(name) or self._without.fullmatch(name):
            return False
        self._found = True
        if is_name(name):
            return True
        if len(name) > SIGNAL_NAME_MAX:
            self._left[name] = None
        return False

    def might(self, topic: str) -> bool:
        """Whether a number of this topic can be meant: others need not be read."""
        return any(topic.startswith(begin) or begin.startswith((f"{topic}.", topic)) for begin in self._begins)

    def problems(self) -> list[str]:
        """In words, for `info` and warnings."""
        found = []
        if self.patterns and not self._found:
            found.append(f"recordings.signals: nothing in it is called {' or '.join(self.patterns)}")
        if self._left:
            named = ", ".join(list(self._left)[:_NAMES_TOLD])
            found.append(
                f"{len(self._left)} numbers with names of more than {SIGNAL_NAME_MAX} characters left out: {named}"
            )
        return found


def numbers_in(message: Any, name: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    """The plain numbers of a message of ROS and of those within it, `name` being the topic's.

    >>> list(numbers_in([1.5, True], "esc"))
    [('esc[0]', 1.5), ('esc[1]', 1.0)]
    """
    if isinstance(message, (bool, int, float, np.number, np.bool_)):
        yield name, float(message)
    elif isinstance(message, (list, tuple, np.ndarray)):
        if len(message) <= ARRAY_MAX and depth < DEPTH_MAX:
            for k, part in enumerate(message):
                yield from numbers_in(part, f"{name}[{k}]", depth + 1)
    elif is_dataclass(message) and depth < DEPTH_MAX:
        for field in fields(message):
            if not field.name.startswith("_") and field.name not in _STAMPS:
                yield from numbers_in(getattr(message, field.name), f"{name}.{field.name}", depth + 1)


def numbers_of(topic: str, columns: Iterator[str] | list[str], instance: int) -> Iterator[tuple[str, str]]:
    """The columns of a topic of a flight log, and what each is called.

    >>> list(numbers_of("BARO", ["TimeUS", "Temp"], 1))
    [('Temp', 'BARO[1].Temp')]
    """
    place = f"{topic}[{instance}]" if instance else topic
    for column in columns:
        last = column.rpartition(".")[2]
        if last not in _STAMPS | RESERVED and not last.startswith("_"):
            yield column, f"{place}.{column}"
