"""What counts as lost separation: in general, where the aircraft are, and between their kinds.

A pair has the minima of the first table about both kinds (config/detectors/kinds.py), if one of the two is other than
an aircraft; else the larger ones of both aircraft's zones (zones.py), where an aircraft in none has the general ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.detectors.conflict import Conflict
from watchkeeper.config.detectors.kinds import KIND_PRESETS, WHATS, KindMinima
from watchkeeper.detectors.kernels.approach import State
from watchkeeper.detectors.kernels.kinds import AIRCRAFT, KINDS, SHIP
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.kernels import njit


class Between:
    """The minima of two kinds in one zone (detectors/kernels/records.py); NaN: those of the zones hold."""

    separation_m: float = math.nan
    """0: never in conflict."""
    vertical_ft: float = math.nan
    tau_s: float = 0.0


NONE: NDArray[Any] = blank(Between, KINDS * KINDS)


class Minima(NamedTuple):
    """What counts as lost separation, and how far ahead.

    Pairs that miss the minima by less than the margins are found too; their times of loss are NaN.
    """

    horizon_s: float
    separation_m: float
    vertical_ft: float
    margin_m: float = 0.0
    margin_ft: float = 0.0
    between: NDArray[Any] = NONE
    """By zone (0: in none, or in two), kind and kind."""


@njit(cache=True, inline="always")
def larger(one: float, other: float, default: float) -> float:
    """The larger of two minima; NaN stands for the default."""
    one = default if math.isnan(one) else one
    return max(one, default if math.isnan(other) else other)


@njit(cache=True)
def minima_of(a: State, b: State, general: Minima) -> tuple[float, float, float]:
    """Separation in metres and in feet, and tau, that hold for a pair; without any separation it has no conflict."""
    if a.kind != AIRCRAFT or b.kind != AIRCRAFT:
        zone = a.zone + 1 if a.zone == b.zone else 0
        own = general.between[(zone * KINDS + a.kind) * KINDS + b.kind]
        if not math.isnan(own.separation_m):
            return own.separation_m, own.vertical_ft, own.tau_s
    separation_m = larger(a.separation_m, b.separation_m, general.separation_m)
    vertical_ft = larger(a.vertical_ft, b.vertical_ft, general.vertical_ft)
    return separation_m, vertical_ft, max(a.tau_s, b.tau_s)


def between_kinds(c: Conflict) -> NDArray[Any]:
    """The minima between kinds, by zone: the first table that fits counts, then the presets."""
    names = [None, *(zone.name for zone in c.zones)]
    table = blank(Between, len(names) * KINDS * KINDS)
    for z, name in enumerate(names):
        for rule in _rules(c):
            if rule.zones and name not in rule.zones:
                continue
            one, other = (WHATS.index(what) for what in rule.between)
            for row in ((z * KINDS + one) * KINDS + other, (z * KINDS + other) * KINDS + one):
                if np.isnan(table["separation_m"][row]):
                    table[row] = rule.separation_nm * NM_M, rule.vertical_ft - c.altitude_step_ft, rule.tau_s
    square = table["separation_m"].reshape(-1, KINDS, KINDS)
    for ships in (square[:, SHIP, :], square[:, :, SHIP]):
        ships[np.isnan(ships)] = 0.0
    return table


def _rules(c: Conflict) -> Sequence[KindMinima]:
    return [*c.kinds, *(rule for preset in c.kind_presets for rule in KIND_PRESETS[preset])]


def widest(m: Minima) -> tuple[float, float]:
    """The largest minima that a pair may have by its kinds or in general, in metres and in feet."""
    own_m, own_ft = m.between["separation_m"], m.between["vertical_ft"]
    meet = own_m > 0.0
    return max(m.separation_m, own_m[meet].max(initial=0.0)), max(m.vertical_ft, own_ft[meet].max(initial=0.0))
