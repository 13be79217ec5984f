"""Partial reports of aircraft put together into ADS-B samples. Used by the adapters of receivers (sbs.py, modes.py).

A transponder sends position, velocity, identification and quality in messages of their own, a sample has all of them.
A sample is made of each position. It takes along what was heard since the sample before, if that is HOLD_S old at
most, and each value once: a value that is repeated without having been measured again would look younger than it is.
The fleet remembers what a sample leaves out, with its true age.

Aircraft unheard of for FORGET_S leave the table, and when it is full the longest unheard of.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np

from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.messages import COLUMN, FIELDS, ID_MAX, Kind

HOLD_S = 2.0
FORGET_S = 300.0
# How often the table is looked through for the unheard of, in seconds.
SWEEP_S = 30.0
LIMIT = 50_000

_COLUMN = COLUMN[Kind.ADSB]
_LAT, _LON = _COLUMN["lat"], _COLUMN["lon"]
_WIDTH = 1 + len(FIELDS[Kind.ADSB])


class _Heard:
    """What one aircraft has sent since its last position: field to time and value."""

    __slots__ = ("fields", "t")

    def __init__(self) -> None:
        self.t = nan
        self.fields: dict[str, tuple[float, float]] = {}


class Reports:
    """The aircraft of one receiver. `take` gives the samples made since the last time."""

    def __init__(self, *, via: str = "", limit: int = LIMIT) -> None:
        self._via = via
        self._limit = limit
        # in order of the last report, the longest unheard of first
        self._aircraft: dict[str, _Heard] = {}
        self._swept_t = nan
        self._reset()

    def _reset(self) -> None:
        self._vid: dict[str, int] = {}
        self._rows: list[list[float]] = []
        self._of_row: list[int] = []
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
            self._callsigns[name] = callsign[:ID_MAX]

    def place(self, name: str, t: float, lat_deg: float, lon_deg: float, values: Mapping[str, float]) -> None:
        """A position was heard, together with these values: a sample."""
        heard = self._heard(name, t)
        row = [nan] * _WIDTH
        row[0], row[1 + _LAT], row[1 + _LON] = t, lat_deg, lon_deg
        for field, (noted_t, value) in heard.fields.items():
            if abs(t - noted_t) <= HOLD_S:
                row[1 + _COLUMN[field]] = value
        for field, value in values.items():
            row[1 + _COLUMN[field]] = value
        heard.fields.clear()
        self._rows.append(row)
        self._of_row.append(self._vid.setdefault(name, len(self._vid)))

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
        if not self._rows:
            return None
        table = np.array(self._rows, np.float64).T
        n = len(self._rows)
        via = np.full(n, 0 if self._via else -1, np.int32)
        cols = Columns(np.arange(n), np.array(self._of_row, np.int32), via, table[0].copy(), table[1:].copy())
        callsigns = {name: sign for name, sign in self._callsigns.items() if name in self._vid}
        batch = Batch(list(self._vid), {Kind.ADSB: cols}, [self._via] if self._via else [], callsigns)
        waiting = {name: sign for name, sign in self._callsigns.items() if name not in self._vid}
        self._reset()
        # a callsign may come before the first position
        self._callsigns = dict(list(waiting.items())[-self._limit :])
        return batch
