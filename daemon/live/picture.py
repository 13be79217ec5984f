"""The picture that the live page draws: the whole fleet and the pairs in conflict, as columns of one binary message.

    "WKP1" · u32 length of the header · header (JSON) · columns

Little-endian; the header is padded with blanks so that the columns begin at a multiple of 8, and so does each column.
The header names them in order as [name, type, rows]: `u1 u4 i4 f4`, as NumPy spells them. Its `t` is the event time of
the last tick, which ages and predictions refer to, `t_now` that of the newest sample. A place is `y`, `x` in 1e-7
degrees of latitude and longitude, or, in a local frame, in centimetres north and east. NaN means unknown.

Made from the fleet's own columns without a loop over vehicles, at most once a second, and shared by everybody watching.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchkeeper.daemon.live.scores import Scores
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.foreign.decode import from_json
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.messages import COLUMN, Kind

MAGIC = b"WKP1"
ALIGN = 8
# How a vehicle tells its place; the order is that of the column `frame`.
ADSB, GPS, LOCAL = range(3)
DEGREE = 1e7
METRE = 100.0
# More pairs than anybody can look at; the most probable ones are sent.
MAX_PAIRS = 500
# Pairs are shown from this part of the alarm's threshold on: what may become one is worth a thin line.
PAIR_PART = 0.5

_A, _G = COLUMN[Kind.ADSB], COLUMN[Kind.GPS]
_PAIR = ("tcpa_s", "dcpa_nm", "vsep_ft", "sep_nm")
Columns = dict[str, NDArray[Any]]


def encode(header: dict[str, Any], columns: Columns) -> bytes:
    """Header and columns as one message."""
    listed = [[name, column.dtype.str[1:], len(column)] for name, column in columns.items()]
    head = msgspec.json.encode({**header, "columns": listed})
    head += b" " * (-(len(MAGIC) + 4 + len(head)) % ALIGN)
    parts = [MAGIC, struct.pack("<I", len(head)), head]
    for column in columns.values():
        data = column.tobytes()
        parts += (data, b"\0" * (-len(data) % ALIGN))
    return b"".join(parts)


def decode(message: bytes) -> tuple[dict[str, Any], Columns]:
    """The reverse of `encode`. Raises ForeignError or ValueError when it is no such message."""
    magic, size = struct.unpack_from("<4sI", message)
    if magic != MAGIC:
        raise ValueError("no picture")
    at = len(MAGIC) + 4 + size
    header = from_json(message[len(MAGIC) + 4 : at])
    columns: Columns = {}
    for name, kind, rows in header.pop("columns"):
        columns[name] = np.frombuffer(message, f"<{kind}", rows, at)
        at += columns[name].nbytes + (-columns[name].nbytes % ALIGN)
    return header, columns


def vehicles(fleet: Fleet, scores: Scores, t: float, *, enu: bool) -> Columns:
    """Everybody whose place is known, in the order of slots."""
    n = fleet.high
    adsb, gps = fleet.value[Kind.ADSB][:, :n], fleet.value[Kind.GPS][:, :n]
    adsb_t, gps_t = fleet.value_t[Kind.ADSB], fleet.value_t[Kind.GPS]
    # who tells a place in several ways is where the newest of them says
    told_t = np.stack((adsb_t[_A["lat"], :n], gps_t[_G["lat"], :n], gps_t[_G["gps_x"], :n]))
    frame = told_t.argmax(axis=0)
    slot: I8 = np.flatnonzero(np.isfinite(told_t.max(axis=0))) if n else np.empty(0, np.int64)
    frame, adsb, gps = frame[slot], adsb[:, slot], gps[:, slot]
    north, east, up, climb, v_north, v_east = _axes(gps, enu=enu)
    score, worst = scores.worst(slot, t)
    plane = frame == ADSB
    speed = np.where(plane, adsb[_A["gs_kt"]] * KT_MS, np.hypot(v_north, v_east))
    track = np.where(plane, adsb[_A["trk_deg"]], np.degrees(np.arctan2(v_east, v_north)) % 360.0)
    alt = np.where(plane, adsb[_A["alt_ft"]] * FT_M, np.where(frame == GPS, gps[_G["alt_m"]], up))
    return {
        "slot": slot.astype(np.uint32),
        "y": _whole(np.choose(frame, (adsb[_A["lat"]] * DEGREE, gps[_G["lat"]] * DEGREE, north * METRE))),
        "x": _whole(np.choose(frame, (adsb[_A["lon"]] * DEGREE, gps[_G["lon"]] * DEGREE, east * METRE))),
        "alt_m": alt.astype(np.float32),
        "speed_mps": speed.astype(np.float32),
        "track_deg": track.astype(np.float32),
        "climb_mps": np.where(plane, adsb[_A["vs_fpm"]] * FT_M / 60.0, climb).astype(np.float32),
        "age_s": (t - told_t[frame, slot]).astype(np.float32),
        "score": score,
        "worst": worst,
        "frame": frame.astype(np.uint8),
        "ground": (plane & (adsb[_A["on_ground"]] == 1.0)).astype(np.uint8),
    }


def pairs(scores: Scores) -> Columns:
    """The pairs that are in conflict, or nearly so, at the last tick; the most probable first."""
    found = scores.latest.get("conflict")
    if found is None or found.b is None:
        rows: I8 = np.empty(0, np.int64)
        a = b = np.empty(0, np.int32)
        ratio, numbers = np.empty(0), dict.fromkeys((*_PAIR, "los"), np.empty(0))
    else:
        a, b, numbers, ratio = found.a, found.b, found.numbers, found.score / found.threshold
        rows = np.flatnonzero(ratio >= PAIR_PART)
        rows = rows[np.argsort(-ratio[rows], kind="stable")[:MAX_PAIRS]]
    return {
        "pair_a": a[rows].astype(np.uint32),
        "pair_b": b[rows].astype(np.uint32),
        "pair_score": ratio[rows].astype(np.float32),
        **{f"pair_{name}": numbers[name][rows].astype(np.float32) for name in _PAIR},
        "pair_los": (numbers["los"][rows] > 0.0).astype(np.uint8),
    }


def _axes(gps: F8, *, enu: bool) -> tuple[F8, F8, F8, F8, F8, F8]:
    """North, east, up, climb, and velocity north and east of a GPS whose local frame is north-east-down or not."""
    x, y, z = (gps[_G[name]] for name in ("gps_x", "gps_y", "gps_z"))
    vx, vy, vz = (gps[_G[name]] for name in ("gps_vx", "gps_vy", "gps_vz"))
    return (y, x, z, vz, vy, vx) if enu else (x, y, -z, -vz, vx, vy)


def _whole(values: F8) -> I4:
    """Rounded; everything that a message may hold fits (180 degrees, 10,000 km)."""
    rounded: I4 = np.nan_to_num(np.rint(values)).astype(np.int32)
    return rounded
