"""Vehicles that a detector judges, if it does not say so itself: those with fresh samples of the streams it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import Code, no_stream
from watchkeeper.streams.batch import F8, I8, U1
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind

# A stream without a sample for so long is silent. Chosen: surveillance networks report every few seconds, with holes.
FRESH_S = 60.0
# Streams that a vehicle has a sensor for, and can lack.
SENSORS = frozenset({Kind.ADSB, Kind.GPS, Kind.IMU})
# Codes as the kernel takes them.
WATCHED, NOT_APPLICABLE, SILENT = int(Code.WATCHED), int(Code.NOT_APPLICABLE), int(Code.SILENT)


class Needs(NamedTuple):
    """The streams that detectors need, of all their alarm kinds in one table.

    Detector d has the kinds from `kinds[d]` up to `kinds[d + 1]`, kind k the groups from `rows[k]` up to `rows[k + 1]`;
    of each group one stream will do (`groups` has a bit for each), and `missing` is the code when there is none.
    """

    kinds: I8
    rows: I8
    groups: I8
    missing: U1


def needs_of(declarations: Sequence[Declaration]) -> Needs:
    """The table of these detectors."""
    kinds = [kind for declaration in declarations for kind in declaration.kinds]
    # without needs any stream will do
    needs = [kind.needs or (tuple(Kind),) for kind in kinds]
    groups = [group for own in needs for group in own]
    return Needs(
        np.cumsum([0, *(len(declaration.kinds) for declaration in declarations)]),
        np.cumsum([0, *map(len, needs)]),
        np.array([sum(1 << stream for stream in group) for group in groups], np.int64),
        # a vehicle that is given no commands is none that lacks them
        np.array([no_stream(g[0]) if SENSORS & set(g) else NOT_APPLICABLE for g in groups], np.uint8),
    )


def covered(needs: Needs, fleet: Fleet, t: float) -> U1:
    """By detector a code for every slot in use: watched when of each group that some kind needs a stream is fresh."""
    codes = np.empty((len(needs.kinds) - 1, fleet.high), np.uint8)
    _cover(fleet.last_t, t, needs, codes)
    return codes


@njit(cache=True)
def _cover(last_t: F8, t: float, needs: Needs, codes: U1) -> None:
    kinds, rows, groups, missing = needs
    heard_before = fresh_before = -1
    for s in range(codes.shape[1]):
        heard = fresh = 0
        for stream in range(last_t.shape[0]):
            if last_t[stream, s] > -np.inf:
                heard |= 1 << stream
                if t - last_t[stream, s] <= FRESH_S:
                    fresh |= 1 << stream
        if heard == heard_before and fresh == fresh_before:
            # most vehicles of a fleet send the same streams
            for d in range(codes.shape[0]):
                codes[d, s] = codes[d, s - 1]
            continue
        heard_before, fresh_before = heard, fresh
        for d in range(codes.shape[0]):
            code = NOT_APPLICABLE
            for kind in range(kinds[d], kinds[d + 1]):
                found, sends = WATCHED, False
                for row in range(rows[kind], rows[kind + 1]):
                    if not groups[row] & heard:
                        found = missing[row]
                    else:
                        sends = True
                        if found == WATCHED and not groups[row] & fresh:
                            found = SILENT
                if sends:
                    code = found
                if code == WATCHED:
                    # a vehicle that one of the detector's kinds judges is judged
                    break
            codes[d, s] = code
