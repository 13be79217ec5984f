"""Partial reports of aircraft put together into ADS-B samples. Used by adapters whose input has the fields (sbs.py …).

Raw Mode S has a table of its own in columns, heard.py.

A transponder sends position, velocity, identification and quality in messages of their own, a sample has all of them.
A sample is made of each position. It takes along what was heard since the sample before, if that is HOLD_S old at
most, and each value once: a value that is repeated without having been measured again would look younger than it is.
The fleet remembers what a sample leaves out, with its true age.

Aircraft unheard of for FORGET_S leave the table, and when it is full the longest unheard of.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import ID_MAX, Kind

HOLD_S = 2.0
FORGET_S = 300.0
# How often the table is looked through for the unheard of, in seconds.
SWEEP_S = 30.0
LIMIT = 50_000
_OCTAL = frozenset("01234567")
# Three times all aircraft that fly at one time: more in one document is not a sky, and would hold up the daemon.
AIRCRAFT_MAX = 50_000


class _Heard:
    """What one aircraft has sent since its last position: field to time and value."""

    __slots__ = ("fields", "t")

    def __init__(self) -> None:
        self.t = nan
        self.fields: dict[str, tuple[float, float]] = {}


class Reports:
    """The aircraft of one receiver. `take` gives the samples made since the last time."""

    def __init__(self, *, via: str = "", limit: int = LIMIT) -> None:
        self._limit = limit
        # in order of the last report, the longest unheard of first
        self._aircraft: dict[str, _Heard] = {}
        self._swept_t = nan
        self._rows = Rows(via)
        self._callsigns: dict[str, str] = {}

    def __len__(self) -> int:
        """Samples waiting for `take`."""
        return len(self._rows)

    def note(self, name: str, t: float, values: Mapping[str, float]) -> None:
        """Something other than a position was heard."""
        fields = self._heard(name, t).fields
        for field, value in values.items():
            fields[field] = (t, value)

    def call(self, name: str, callsign: str) -> None:
        """A callsign was heard."""
        if callsign := callsign.strip():
            if len(self._callsigns) >= self._limit:
                del self._callsigns[next(iter(self._callsigns))]
            self._callsigns[name] = callsign[:ID_MAX]

    def place(self, name: str, t: float, lat_deg: float, lon_deg: float, values: Mapping[str, float]) -> None:
        """A position was heard, together with these values: a sample."""
        heard = self._heard(name, t)
        noted = {field: value for field, (noted_t, value) in heard.fields.items() if abs(t - noted_t) <= HOLD_S}
        heard.fields.clear()
        self._rows.add(Kind.ADSB, name, t, {**noted, **values, "lat": lat_deg, "lon": lon_deg})

    def _heard(self, name: str, t: float) -> _Heard:
        heard = self._aircraft.pop(name, None)
        if heard is None:
            heard = _Heard()
            if len(self._aircraft) >= self._limit:
                del self._aircraft[next(iter(self._aircraft))]
        self._aircraft[name] = heard
        heard.t = t
        if not abs(t - self._swept_t) < SWEEP_S:
            self._swept_t = t
            for old in [n for n, h in self._aircraft.items() if abs(t - h.t) > FORGET_S]:
                del self._aircraft[old]
        return heard

    def take(self) -> Batch | None:
        """The samples since the last take; None when there are none."""
        told = {name: sign for name, sign in self._callsigns.items() if name in self._rows}
        batch = self._rows.take(told)
        if batch is not None:
            # a callsign may come before the first position
            self._callsigns = {name: sign for name, sign in self._callsigns.items() if name not in told}
        return batch


# Categories that adapters know beforehand; that of a ship no transponder of aircraft has.
DRONE, SHIP = 14.0, 40.0


def category_of(word: Any) -> float | None:
    """An emitter category as receivers write it, such as `B1`, as our number; None where it says nothing.

    >>> category_of("A3"), category_of("B1"), category_of("B6"), category_of("A0"), category_of("x"), category_of(None)
    (3.0, 9.0, 14.0, None, None, None)
    """
    if not isinstance(word, str) or len(word) != 2 or word[0] not in "ABCD" or word[1] not in "1234567":
        return None
    return 8.0 * "ABCD".index(word[0]) + int(word[1])


# What a transponder may declare, as DO-260B numbers it, in the words of rs1090 and of readsb.
_STATES: dict[str, float] = {
    "none": 0.0, "general": 1.0, "medical": 2.0, "lifeguard": 2.0, "minimum_fuel": 3.0, "minfuel": 3.0,
    "no_communication": 4.0, "nordo": 4.0, "unlawful_interference": 5.0, "unlawful": 5.0,
    "downed_aircraft": 6.0, "downed": 6.0,
}  # fmt: skip


def emergency_of(word: str | None) -> float | None:
    """The emergency that a transponder declares, as a number; None for a word that is not known."""
    return None if word is None else _STATES.get(word)


def squawk_of(code: Any) -> float | None:
    """A transponder code of four octal digits, a text or what a table has made of it, as a number; None: it is none.

    >>> squawk_of("7700"), squawk_of(21.0), squawk_of("7800"), squawk_of(None), squawk_of(float("nan"))
    (7700.0, 21.0, None, None, None)
    """
    digits = code.strip() if isinstance(code, str) else f"{code:04.0f}" if isinstance(code, (int, float)) else ""
    return float(digits) if len(digits) == 4 and set(digits) <= _OCTAL else None
