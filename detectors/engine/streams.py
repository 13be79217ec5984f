"""Whom a detector judges that does not say so itself: vehicles with fresh samples of the streams that it needs."""

from __future__ import annotations

from functools import cache

import numpy as np

from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import Code, no_stream
from watchkeeper.streams.batch import F8, U1, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind

# A stream without a sample for so long is silent. Chosen: surveillance networks report every few seconds, with holes.
FRESH_S = 60.0
# Streams that a vehicle has a sensor for, and can lack.
SENSORS = frozenset({Kind.ADSB, Kind.GPS, Kind.IMU})
# Codes as the kernel takes them.
WATCHED, NOT_APPLICABLE, SILENT = int(Code.WATCHED), int(Code.NOT_APPLICABLE), int(Code.SILENT)


def covered(declaration: Declaration, fleet: Fleet, t: float) -> U1:
    """A code for every slot in use: watched when of each group of streams that some kind needs one is fresh."""
    codes = np.full(fleet.high, NOT_APPLICABLE, np.uint8)
    for groups, missing in (_groups(kind.needs) for kind in declaration.kinds):
        _cover(fleet.last_t, t, groups, missing, codes)
    return codes


@cache
def _groups(needs: tuple[tuple[Kind, ...], ...]) -> tuple[Bool, U1]:
    """For each group the streams in it, and the code when all of them are missing; without needs any stream will do."""
    needs = needs or (tuple(Kind),)
    groups = np.array([[stream in group for stream in Kind] for group in needs], np.bool_)
    # a vehicle that is given no commands is none that lacks them
    missing = [no_stream(group[0]) if SENSORS & set(group) else NOT_APPLICABLE for group in needs]
    return groups, np.array(missing, np.uint8)


@njit(cache=True)
def _cover(last_t: F8, t: float, groups: Bool, missing: U1, codes: U1) -> None:
    for s in range(codes.size):
        if codes[s] == WATCHED:
            # a vehicle that one of its kinds judges is judged
            continue
        found, sends = WATCHED, False
        for row in range(groups.shape[0]):
            newest = -np.inf
            for kind in range(groups.shape[1]):
                if groups[row, kind]:
                    newest = max(newest, last_t[kind, s])
            if newest == -np.inf:
                found = missing[row]
            else:
                sends = True
                if t - newest > FRESH_S and found == WATCHED:
                    found = SILENT
        if sends:
            codes[s] = found
