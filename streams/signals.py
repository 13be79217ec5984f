"""Names of signals as numbers, so that a sample of the stream `signal` is columns and nothing else.

    name_columns(["battery_v", …]) -> F8[6, n]      the columns `name_0` … `name_5` of messages.py
    names_in(columns) -> ["battery_v", …]           the way back
    label("MISSION"), label_of(value)               a word as a value: flight modes and other states

A name has up to 48 characters of A-Z a-z 0-9 _ . : / [ ] -, eight to a column, each a digit of a number in base 96; a
column that the name does not reach is 0. Such a number is below 2^53, so a double holds it exactly. Rows are whole by
themselves: whatever cuts, joins, sorts, spreads or stores samples treats them like any other. The price is 48 bytes of
memory a row; in a log the columns pack to the few values that they have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

import numpy as np

from watchkeeper.streams.batch import F8
from watchkeeper.streams.messages import NAME_COLUMNS, SIGNAL

PER_COLUMN = 8
SIGNAL_NAME_MAX = NAME_COLUMNS * PER_COLUMN
BASE, FIRST = 96, 31
# Words of a message that are no signals.
RESERVED = frozenset({"t", "id", "via", "callsign", "kind", "v"})
_NAME = re.compile(rf"[A-Za-z0-9_.:/\[\]-]{{1,{SIGNAL_NAME_MAX}}}")
_INSTANCE = re.compile(r"\[(\d+)\]")
_OTHER = re.compile(r"[^A-Za-z0-9_.:/\[\]-]+")
# Values from here on are words: the first character is the highest digit.
LABEL_MIN = float(BASE ** (PER_COLUMN - 1))
# Names whose numbers are remembered; a fleet has hundreds.
REMEMBERED = 1 << 16


def is_name(name: str) -> bool:
    """Whether a signal can have this name."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def as_name(text: str) -> str:
    """A text as a signal's name: other characters become `_`, and the end is cut off.

    >>> as_name("Motor 1 (rpm)")
    'Motor_1_rpm_'
    """
    return _OTHER.sub("_", text)[:SIGNAL_NAME_MAX] or "_"


def matcher(patterns: Sequence[str]) -> re.Pattern[str]:
    """What names of signals are meant: names, or patterns as of files, in which `[0]` is also the instance 0.

    >>> [bool(matcher(["motor[0].*"]).fullmatch(name)) for name in ("motor[0].output", "motor0.output", "motor[1].rpm")]
    [True, True, False]
    """
    both = [form for pattern in patterns for form in (pattern, _INSTANCE.sub(r"[[]\1]", pattern))]
    return re.compile("|".join(map(translate, both)) or r"(?!)")


@lru_cache(REMEMBERED)
def name_numbers(name: str) -> tuple[float, ...]:
    """A name as the numbers of its columns. ValueError: no signal can have it.

    >>> name_numbers("rpm")[1:]
    (0.0, 0.0, 0.0, 0.0, 0.0)
    """
    if not is_name(name):
        raise ValueError(f"{name[:SIGNAL_NAME_MAX]!r} is no name of a signal")
    parts = (name[i : i + PER_COLUMN] for i in range(0, SIGNAL_NAME_MAX, PER_COLUMN))
    return tuple(map(_number, parts))


def _number(text: str) -> float:
    number = 0
    for character in text.ljust(PER_COLUMN, chr(FIRST)):
        number = number * BASE + ord(character) - FIRST
    return float(number)


@lru_cache(REMEMBERED)
def _text(numbers: tuple[float, ...]) -> str:
    digits = []
    for number in numbers:
        whole, part = int(number), []
        for _ in range(PER_COLUMN):
            whole, digit = divmod(whole, BASE)
            part.append(chr(FIRST + digit))
        digits.append("".join(reversed(part)))
    return "".join(digits).rstrip(chr(FIRST))


def name_columns(names: Sequence[str]) -> F8:
    """The columns of these names, one row of the result for each. ValueError: one of them is none."""
    return np.array([name_numbers(name) for name in names], np.float64).reshape(-1, NAME_COLUMNS).T.copy()


def names_in(columns: F8) -> list[str]:
    """The names in columns `name_0` … of samples; what is no name (damaged input) comes out as some other text."""
    return [_text(tuple(row)) for row in columns.T.tolist()]


def name_in(data: F8, row: int) -> str:
    """The name of one row of samples."""
    return _text(tuple(data[SIGNAL.name_0 :, row].tolist()))


def label(word: str) -> float:
    """A word as a value: its first eight characters.

    >>> label_of(label("MISSION")), label_of(3.0)
    ('MISSION', '')
    """
    return _number(_OTHER.sub("_", word)[:PER_COLUMN] or "_")


def label_of(value: float) -> str:
    """The word that a value stands for; empty for a plain number."""
    if not LABEL_MIN <= value < LABEL_MIN * BASE or value != int(value):
        return ""
    text = _text((value,))
    return text if _NAME.fullmatch(text) else ""
