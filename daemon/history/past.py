"""Everybody at a moment: the picture of the live page, made from the history.

The message is that of live/picture.py, so that the page shows the past with the code that shows the present. Slots are
the vehicles' numbers in the file, which stay the same over the whole history; the header's `roster` names them, in the
form of the page's own roster message.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from watchkeeper.daemon.history.blocks import BUCKET_S, DamagedError, Rows, bucket_of, joined, unpack_last
from watchkeeper.daemon.history.layers import Layer
from watchkeeper.daemon.history.reader import Era, layers_of, open_rows
from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.scores import Scores
from watchkeeper.streams.batch import F8, I8

# A pair's numbers are of its moment, and are shown for so long.
PAIRS_S = 10.0
# Buckets before that of the moment in which a vehicle's last sample may be, where they are not packed.
OLDER = 5


class Moment:
    """The vehicles that were known at a time: codes, report times, and the track's columns by name."""

    def __init__(self, code: I8, t: F8, columns: dict[str, F8], kinds: tuple[str, ...]) -> None:
        self.code, self.t, self.columns, self.kinds = code, t, columns, kinds

    def __len__(self) -> int:
        return len(self.code)


def moment(db: sqlite3.Connection, era: int, t: float, forget_s: float) -> Moment:
    """Each vehicle's last sample at or before t, if it is not older than `forget_s`."""
    for number, layer in layers_of(db, "track"):
        parts = list(_last_samples(db, era, t, number, layer))
        if parts:
            rows = _newest(joined(parts))
            told_t = bucket_of(t) * BUCKET_S + rows.t_ms / 1000.0
            keep = told_t >= t - forget_s
            rows = rows.take(keep)
            kinds = next((column.words for column in layer.columns if column.name == "worst"), ())
            return Moment(rows.vehicle, told_t[keep], layer.values(rows.data), kinds)
    return Moment(np.empty(0, np.int64), np.empty(0), {}, ())


def _last_samples(db: sqlite3.Connection, era: int, t: float, number: int, layer: Layer) -> Iterator[Rows]:
    """Samples at or before t, counted from the beginning of its bucket; the last one of each vehicle is among them."""
    n, bucket = len(layer.columns), bucket_of(t)
    step_ms = int(BUCKET_S * 1000)
    at_ms = round((t - bucket * BUCKET_S) * 1000.0)
    # a packed bucket begins with the last samples before it; one that is not, and an empty one, do not
    for older in range(OLDER + 1):
        packed = False
        for rows in _of_blocks(db, era, bucket - older, number, n, at_ms + older * step_ms):
            packed = True
            yield Rows(rows.vehicle, rows.t_ms - np.int32(older * step_ms), rows.data)
        unpacked = open_rows(db, era, bucket - older, number, n)
        if unpacked is not None:
            unpacked = Rows(unpacked.vehicle, unpacked.t_ms - np.int32(older * step_ms), unpacked.data)
            yield unpacked.take(unpacked.t_ms <= at_ms)
        elif packed:
            return


def _of_blocks(db: sqlite3.Connection, era: int, bucket: int, number: int, columns: int, at_ms: int) -> Iterator[Rows]:
    found = db.execute(
        "SELECT code, data FROM blocks WHERE era = ? AND layer = ? AND bucket = ?", (era, number, bucket)
    ).fetchall()
    codes = np.array([code for code, _ in found], np.int64)
    for places, last in unpack_last([data for _, data in found], columns, at_ms):
        yield Rows(codes[places], last[:, 0], np.ascontiguousarray(last[:, 1:].T))


def _newest(rows: Rows) -> Rows:
    """The last sample of each vehicle."""
    order = np.lexsort((rows.t_ms, rows.vehicle))
    vehicle = rows.vehicle[order]
    return rows.take(order[np.r_[vehicle[1:] != vehicle[:-1], True]] if len(order) else order)


# -- names ------------------------------------------------------------------------------------------------------


def named(db: sqlite3.Connection, codes: I8) -> dict[int, tuple[int, str, str]]:
    """Number in the file, name and callsign of vehicles, by code."""
    if len(codes) > 50:
        wanted = set(codes.tolist())
        rows = db.execute("SELECT code, vehicle, name, callsign FROM vehicles")
        return {code: (number, name, callsign) for code, number, name, callsign in rows if code in wanted}
    found = {}
    for code in codes.tolist():
        row = db.execute("SELECT vehicle, name, callsign FROM vehicles WHERE code = ?", (code,)).fetchone()
        if row is not None:
            found[code] = row
    return found


# -- the picture ------------------------------------------------------------------------------------------------


def picture_at(db: sqlite3.Connection, era: Era, t: float, forget_s: float) -> tuple[dict[str, Any], picture.Columns]:
    """Header and columns of the message that the page draws."""
    here = moment(db, era.era, t, forget_s)
    who = named(db, here.code)
    pairs = _pairs(db, era.era, t)
    for code in {*pairs["pair_a"].tolist(), *pairs["pair_b"].tolist()} - who.keys() if pairs else ():
        who |= named(db, np.array([code]))
    rows = np.flatnonzero(np.isin(here.code, np.array(list(who), np.int64)))
    order = np.array([who[code][0] for code in here.code[rows].tolist()], np.int64).argsort()
    rows = rows[order]
    seen = [who[code] for code in here.code[rows].tolist()]
    columns = _columns(here, rows, t, np.array([number for number, _, _ in seen], np.uint32))
    columns |= _pair_columns(pairs, {code: number for code, (number, _, _) in who.items()})
    roster = {
        "type": "roster",
        "reset": True,
        "era": f"history-{era.era}",
        "slots": [number for number, _, _ in seen],
        "ids": [name for _, name, _ in seen],
        "callsigns": [callsign for _, _, callsign in seen],
    }
    header: dict[str, Any] = {
        "t": t, "t_now": t, "era": era.era, "past": True, "kinds": here.kinds, "vehicles": len(rows), "figures": {},
        "state": [], "warnings": [], "unwatched": 0, "roster": roster,
    }  # fmt: skip
    return header, columns


def _columns(here: Moment, rows: I8, t: float, slot: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> picture.Columns:
    if not len(rows):
        empty = dict.fromkeys(("y", "x", "alt_m", "speed_mps", "track_deg", "climb_mps", "score"), np.empty(0))
        values = {**empty, "worst": np.empty(0), "frame": np.empty(0), "ground": np.empty(0)}
    else:
        values = {name: column[rows] for name, column in here.columns.items()}
    small = {name: values[name].astype(np.float32) for name in ("alt_m", "speed_mps", "track_deg", "climb_mps")}
    return {
        "slot": slot,
        "y": values["y"].astype(np.int32),
        "x": values["x"].astype(np.int32),
        **small,
        "age_s": (t - here.t[rows]).astype(np.float32),
        "score": values["score"].astype(np.float32),
        **{name: values[name].astype(np.uint8) for name in ("worst", "frame", "ground")},
    }


def _pairs(db: sqlite3.Connection, era: int, t: float) -> picture.Columns:
    found = db.execute(
        "SELECT data FROM pairs WHERE era = ? AND t BETWEEN ? AND ? ORDER BY t DESC LIMIT 1", (era, t - PAIRS_S, t)
    ).fetchone()
    if found is None:
        return {}
    try:
        return picture.decode(zlib.decompress(found[0]))[1]
    except (zlib.error, ValueError) as error:
        raise DamagedError(str(error)) from error


def _pair_columns(pairs: picture.Columns, number: dict[int, int]) -> picture.Columns:
    if not pairs:
        return picture.pairs(Scores(0))
    known = [
        a in number and b in number for a, b in zip(pairs["pair_a"].tolist(), pairs["pair_b"].tolist(), strict=True)
    ]
    rows = np.flatnonzero(known)
    slots = {
        name: np.array([number[code] for code in pairs[name][rows].tolist()], np.uint32)
        for name in ("pair_a", "pair_b")
    }
    return {**{name: column[rows] for name, column in pairs.items()}, **slots}


def extent(db: sqlite3.Connection, era: int, code: int) -> tuple[float | None, float | None]:
    """From when to when, to the bucket, a vehicle has a track."""
    first = last = None
    for number, _ in layers_of(db, "track"):
        found = db.execute(
            "SELECT min(bucket), max(bucket) FROM blocks INDEXED BY blocks_by_vehicle "
            "WHERE code = ? AND era = ? AND layer = ?",
            (code, era, number),
        ).fetchone()
        if found[0] is not None:
            first = found[0] * BUCKET_S if first is None else min(first, found[0] * BUCKET_S)
            last = max(last or 0.0, (found[1] + 1) * BUCKET_S)
    return first, last
