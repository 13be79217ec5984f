"""The aircraft that a receiver hears, and samples of their positions, in columns. Used by squitter.py.

A transponder sends position, velocity, identification and quality in messages of their own, a sample has all of them:
each position takes along what was heard since the one before, if that is HOLD_S old at most, and each value once, as
in reports.py. Aircraft unheard of for FORGET_S leave the table; when it is full, those unheard of for longest do.
"""

from __future__ import annotations

from math import atan2, degrees, hypot, nan
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.adapters.receivers import cpr
from watchkeeper.streams.adapters.receivers.frames import ANSWER, COLUMNS, SQUITTER, Bytes, Ints
from watchkeeper.streams.adapters.receivers.reports import FORGET_S, HOLD_S, SWEEP_S
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB, FIELDS, Kind

WIDTH = len(FIELDS[Kind.ADSB])
# A full table loses the aircraft in the oldest sixteenth of what was heard, so that there is room for more than one.
ROOM = 16
_SEARCH = 0x9E3779B1  # 2**32 over the golden ratio, which spreads addresses of one country
_FREE = -1
_GROUND_CODES, _VELOCITY, _GNSS_CODES = 8, 19, 20
# Type code to navigation integrity category (DO-260B), taking the lower value where a bit sent elsewhere decides.
_NIC = np.full(32, nan)
_NIC[[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22]] = [11, 10, 8, 7, 6, 5, 4, 2, 1, 0, 11, 10, 0]
# The speed on the ground is coded in steps that grow: from this code on, this speed, and this much for each further.
_MOVEMENT = ((124, 175.0, 0.0), (109, 100.0, 5.0), (94, 70.0, 2.0), (39, 15.0, 1.0), (13, 2.0, 0.5), (9, 1.0, 0.25),
             (2, 0.125, 0.125), (1, 0.0, 0.0))  # fmt: skip

AIRCRAFT = np.dtype(
    [
        ("key", np.int64),
        ("t", np.float64),
        ("number", np.int64),  # of the last message, counted over all
        ("held_t", np.float64, (WIDTH,)),
        ("held", np.float64, (WIDTH,)),
        *cpr.TRACK,
    ],
    align=True,
)


class Sky(NamedTuple):
    """The table: aircraft, where to find them by key, and [how many, messages so far], [when it was swept]."""

    aircraft: NDArray[Any]
    places: NDArray[np.int32]
    counts: Ints
    swept: F8


class Frames(NamedTuple):
    """Frames of one piece; `extra` is the row of `extras` with what rs1090 made of one."""

    data: Bytes
    t: F8
    key: Ints
    route: Ints
    extra: Ints
    extras: F8


class Found(NamedTuple):
    """Samples: as many rows as there are frames at most."""

    t: F8
    key: Ints
    data: F8


def sky_of(capacity: int) -> Sky:
    """An empty table; its memory is not touched before it is used."""
    size = 1 << int(4 * capacity - 1).bit_length()
    aircraft = np.zeros(capacity, AIRCRAFT)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        aircraft = aircraft.view(np.recarray)
    return Sky(aircraft, np.full(size, _FREE, np.int32), np.zeros(2, np.int64), np.full(1, nan))


def larger(sky: Sky, capacity: int) -> Sky:
    """The same table with more room."""
    grown = sky_of(capacity)
    used = int(sky.counts[0])
    grown.aircraft[:used] = sky.aircraft[:used]
    grown.counts[:], grown.swept[:] = sky.counts, sky.swept
    _rebuild(grown)
    return grown


@njit(cache=True)
def hear(frames: Frames, sky: Sky, found: Found) -> int:
    """Frames in order; how many samples they make."""
    made = 0
    values = np.empty(WIDTH)
    for i in range(len(frames.t)):
        route, key, t = frames.route[i], frames.key[i], frames.t[i]
        if route not in (COLUMNS, SQUITTER) and (route != ANSWER or _at(sky, key) < 0):
            continue
        one = sky.aircraft[_heard(sky, key, t)]
        if route != COLUMNS:
            row = frames.extra[i]
            if row >= 0:
                _note(one, t, frames.extras[row])
            continue
        values[:] = nan
        frame = frames.data[i]
        if frame[4] >> 3 == _VELOCITY:
            _velocity(frame, values)
            _note(one, t, values)
            continue
        lat, lon = cpr.place(one, t, _position(frame, values))
        if np.isnan(lat):
            _note(one, t, values)
            continue
        found.t[made], found.key[made] = t, key
        _take_along(one, t, values)
        values[ADSB.lat], values[ADSB.lon] = lat, lon
        found.data[made] = values
        made += 1
    return made


@njit(cache=True)
def _note(one: Any, t: float, values: F8) -> None:
    for f in range(WIDTH):
        if not np.isnan(values[f]):
            one.held[f], one.held_t[f] = values[f], t


@njit(cache=True)
def _take_along(one: Any, t: float, values: F8) -> None:
    for f in range(WIDTH):
        if np.isnan(values[f]) and abs(t - one.held_t[f]) <= HOLD_S:
            values[f] = one.held[f]
        one.held[f] = nan


# -- what squitters say: their message begins at byte 4 with five bits of type code --------------------------------


@njit(cache=True)
def _position(frame: Bytes, values: F8) -> tuple[bool, bool, int, int]:
    """Its values, and the half: odd, on the ground, latitude, longitude."""
    code = frame[4] >> 3
    surface = code <= _GROUND_CODES
    values[ADSB.on_ground] = 1.0 if surface else 0.0
    values[ADSB.nic] = _NIC[code]
    if surface:
        values[ADSB.gs_kt] = _movement((np.int64(frame[4]) & 7) << 4 | frame[5] >> 4)
        if frame[5] & 8:
            values[ADSB.trk_deg] = ((np.int64(frame[5]) & 7) << 4 | frame[6] >> 4) * 360.0 / 128.0
    elif code < _GNSS_CODES:
        values[ADSB.alt_ft] = _altitude(np.int64(frame[5]) << 4 | frame[6] >> 4)
    low = np.int64(frame[8]) << 16 | np.int64(frame[9]) << 8 | np.int64(frame[10])
    lat = (np.int64(frame[6]) & 3) << 15 | np.int64(frame[7]) << 7 | frame[8] >> 1
    return frame[6] & 4 != 0, surface, int(lat), int(low & 0x1FFFF)


@njit(cache=True)
def _velocity(frame: Bytes, values: F8) -> None:
    """Subtypes 1 and 2 have the speed over ground, in kt and in 4 kt; the others air speed and heading."""
    sub = frame[4] & 7
    rate = (np.int64(frame[8]) & 7) << 6 | frame[9] >> 2
    if rate:
        values[ADSB.vs_fpm] = (rate - 1) * (-64.0 if frame[8] & 8 else 64.0)
    east = (np.int64(frame[5]) & 3) << 8 | frame[6]
    north = (np.int64(frame[7]) & 0x7F) << 3 | frame[8] >> 5
    if sub in (1, 2) and east and north:
        unit = 1.0 if sub == 1 else 4.0
        x = (east - 1) * (-unit if frame[5] & 4 else unit)
        y = (north - 1) * (-unit if frame[7] & 0x80 else unit)
        values[ADSB.gs_kt] = hypot(x, y)
        track = degrees(atan2(x, y))
        values[ADSB.trk_deg] = track + 360.0 if track < 0.0 else track


@njit(cache=True)
def _movement(code: int) -> float:
    for first, speed, step in _MOVEMENT:
        if code >= first:
            return nan if code > 124 else speed + (code - first) * step
    return nan


@njit(cache=True)
def _altitude(code: int) -> float:
    """Twelve bits: steps of 25 ft from -1,000 ft, or of 100 ft in Gillham's code; NaN where there is none."""
    if code & 0x10:
        return 25.0 * ((code & 0xFE0) >> 1 | code & 0xF) - 1000.0
    # C1 A1 C2 A2 C4 A4 B1 - B2 D2 B4 D4: five hundreds in D2 D4 A1 A2 A4 B1 B2 B4, hundreds in C1 C2 C4, all as Gray's
    bit = (code >> 11 & 1, code >> 9 & 1, code >> 7 & 1)
    fives = 0
    for shift in (2, 0, 10, 8, 6, 5, 3, 1):
        fives = fives << 1 | (code >> shift & 1) ^ fives & 1
    ones = bit[0] << 2 | (bit[0] ^ bit[1]) << 1 | bit[0] ^ bit[1] ^ bit[2]
    # of the eight codes five are used, and 7 stands for 5
    if ones in (0, 5, 6):
        return nan
    ones = 5 if ones == 7 else ones
    return 500.0 * fives + 100.0 * (6 - ones if fives & 1 else ones) - 1300.0


# -- the table -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def _at(sky: Sky, key: int) -> int:
    """Where an aircraft is in the table; -1: nowhere."""
    mask = len(sky.places) - 1
    place = key * _SEARCH >> 8 & mask
    while sky.places[place] != _FREE:
        if sky.aircraft[sky.places[place]].key == key:
            return int(sky.places[place])
        place = place + 1 & mask
    return _FREE


@njit(cache=True)
def _heard(sky: Sky, key: int, t: float) -> int:
    """The place of an aircraft that is heard now, a new one if need be."""
    at = _at(sky, key)
    if at < 0:
        while sky.counts[0] >= len(sky.aircraft):
            _make_room(sky)
        at = sky.counts[0]
        sky.counts[0] += 1
        one = sky.aircraft[at]
        one.key = key
        one.held[:] = nan
        cpr.forget(one)
        _enter(sky, at)
    sky.counts[1] += 1
    sky.aircraft[at].t, sky.aircraft[at].number = t, sky.counts[1]
    if not abs(t - sky.swept[0]) < SWEEP_S:
        sky.swept[0] = t
        _keep(sky, t, 0)
        at = _at(sky, key)
    return int(at)


@njit(cache=True)
def _make_room(sky: Sky) -> None:
    first, last = sky.aircraft[0].number, sky.aircraft[0].number
    for i in range(sky.counts[0]):
        first, last = min(first, sky.aircraft[i].number), max(last, sky.aircraft[i].number)
    _keep(sky, nan, first + (last - first) // ROOM)


@njit(cache=True)
def _keep(sky: Sky, t: float, after: int) -> None:
    """Only aircraft that were heard within FORGET_S of t, and last after a number."""
    kept = 0
    for i in range(sky.counts[0]):
        if not abs(t - sky.aircraft[i].t) > FORGET_S and sky.aircraft[i].number > after:
            if kept != i:
                sky.aircraft[kept] = sky.aircraft[i]
            kept += 1
    if kept != sky.counts[0]:
        sky.counts[0] = kept
        _rebuild(sky)


@njit(cache=True)
def _rebuild(sky: Sky) -> None:
    sky.places[:] = _FREE
    for i in range(sky.counts[0]):
        _enter(sky, i)


@njit(cache=True)
def _enter(sky: Sky, at: int) -> None:
    mask = len(sky.places) - 1
    place = sky.aircraft[at].key * _SEARCH >> 8 & mask
    while sky.places[place] != _FREE:
        place = place + 1 & mask
    sky.places[place] = at
