"""Whitening: what is new in the innovations of a fix, after all that this vehicle's earlier ones have told.

The innovations of a healthy filter are not white: receivers wander, models are rough. For each vehicle a regression
predicts position and velocity innovation of an axis from their past: two fixes and two leaky means, which takes a
white part and a slow one (a first-order Gauss-Markov process) out of both. North and east share it, the vertical has
one of its own. It is solved again once per block, from sums of products that a block joins when the next one has ended
without suspicion (levels.py).
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.slow.constants import (
    BOTH,
    CLIP,
    FIRST_FIXES,
    HORIZONTAL,
    INNOVATION_FIRST,
    LEAST_LEFT,
    LEFT_FIRST,
    LESS,
    MEANS_S,
    MEMORY_S,
    POSITION_S,
    RIDGE,
    TERMS,
    UPRIGHT,
    VELOCITY_PART,
    VELOCITY_S,
)
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def kind_of(axis: int) -> int:
    """Which regression an axis has."""
    return UPRIGHT if axis == 2 else HORIZONTAL


@njit(cache=True)
def whiten(row: Slow, work: Work) -> None:
    """Fill `white` with what is new, in standard deviations."""
    for k in range(3):
        kind = kind_of(k)
        terms, coefficients, left = row.terms[k], row.coefficients[kind], row.left[kind]
        place, speed = work.innovation[k, 0], work.innovation[k, 1]
        for i in range(TERMS):
            place -= coefficients[i, 0] * terms[i]
            speed -= coefficients[i, 1] * terms[i]
        square = max(left[0, 0], LEAST_LEFT)
        shared = left[0, 1] / square
        own = math.sqrt(max(left[1, 1] - shared * left[0, 1], LEAST_LEFT))
        work.white[k, 0] = min(max(place / math.sqrt(square), -CLIP), CLIP)
        work.white[k, 1] = min(max((speed - shared * place) / own, -CLIP), CLIP)


@njit(cache=True)
def remember_innovations(row: Slow, work: Work, dt: float) -> None:
    """What the next ones are predicted from."""
    for k in range(3):
        for c in range(BOTH):
            row.terms[k, BOTH + c], row.terms[k, c] = row.terms[k, c], work.innovation[k, c]
    for m in range(len(MEANS_S)):
        keep = math.exp(-dt / MEANS_S[m]) if row.fixes > 0 else 0.0
        for k in range(3):
            for c in range(BOTH):
                at = (2 + m) * BOTH + c
                row.terms[k, at] = keep * row.terms[k, at] + (1.0 - keep) * work.innovation[k, c]


@njit(cache=True)
def add_products(row: Slow, work: Work) -> None:
    """Add this fix to the block."""
    for k in range(3):
        kind = kind_of(k)
        terms, new = row.terms[k], work.innovation[k]
        largest = max(abs(work.white[k, 0]), abs(work.white[k, 1]))
        weight = (1.0 if kind == UPRIGHT else 0.5) * (1.0 if largest < LESS else (LESS / largest) ** 2)
        gram, cross, power = row.block_gram[kind], row.block_cross[kind], row.block_power[kind]
        for i in range(TERMS):
            weighted = weight * terms[i]
            for j in range(i + 1):
                gram[i, j] += weighted * terms[j]
            for c in range(BOTH):
                cross[i, c] += weighted * new[c]
        for i in range(BOTH):
            for j in range(BOTH):
                power[i, j] += weight * new[i] * new[j]
    row.block_fixes += 1.0


@njit(cache=True)
def learn_products(row: Slow, work: Work, willing: float) -> None:
    """Let the block that waits count, and solve the regressions again."""
    most = MEMORY_S / row.interval
    counted = willing * row.waiting_fixes
    part = counted / (min(row.known, most) + counted) / row.waiting_fixes
    kept = 1.0 - part * row.waiting_fixes
    for kind in range(2):
        for i in range(TERMS):
            for j in range(i + 1):
                row.gram[kind, i, j] = kept * row.gram[kind, i, j] + part * row.waiting_gram[kind, i, j]
            for c in range(BOTH):
                row.cross[kind, i, c] = kept * row.cross[kind, i, c] + part * row.waiting_cross[kind, i, c]
        for i in range(BOTH):
            for j in range(BOTH):
                row.power[kind, i, j] = kept * row.power[kind, i, j] + part * row.waiting_power[kind, i, j]
    row.known = min(row.known + counted, most)
    solve(row, work)


@njit(cache=True)
def solve(row: Slow, work: Work) -> None:
    """Coefficients and what they leave, from what was expected before anything was known and what was learned."""
    first, matrix, wanted = work.first, work.matrix, work.wanted
    first[:] = 0.0
    first[0, 0] = math.exp(-row.interval / POSITION_S)
    first[1, 1] = VELOCITY_PART * math.exp(-row.interval / VELOCITY_S)
    # what was expected is soon nothing, or a receiver that is far better would be judged by it for minutes
    own = 1.0 - (FIRST_FIXES / (row.known + FIRST_FIXES)) ** 2
    for kind in range(2):
        gram, cross, table = row.gram[kind], row.cross[kind], row.coefficients[kind]
        for i in range(TERMS):
            for c in range(BOTH):
                wanted[i, c] = cross[i, c]
            for j in range(TERMS):
                product = gram[max(i, j), min(i, j)]
                matrix[i, j] = own * product
                for c in range(BOTH):
                    wanted[i, c] -= product * first[j, c]
            matrix[i, i] += (1.0 - own) * INNOVATION_FIRST + RIDGE * gram[i, i]
            for c in range(BOTH):
                wanted[i, c] *= own
        _solve_positive(work)
        for i in range(TERMS):
            for c in range(BOTH):
                table[i, c] = first[i, c] + wanted[i, c]
        _leave(row, kind, own)


@njit(cache=True)
def _leave(row: Slow, kind: int, own: float) -> None:
    """Covariance of innovations less their predictions."""
    gram, cross, table, left = row.gram[kind], row.cross[kind], row.coefficients[kind], row.left[kind]
    for a in range(BOTH):
        for b in range(BOTH):
            total = row.power[kind, a, b]
            for i in range(TERMS):
                total -= table[i, a] * cross[i, b] + table[i, b] * cross[i, a]
                for j in range(TERMS):
                    total += table[i, a] * gram[max(i, j), min(i, j)] * table[j, b]
            left[a, b] = own * total
        left[a, a] += (1.0 - own) * LEFT_FIRST[a]


@njit(cache=True)
def _solve_positive(work: Work) -> None:
    """Solve `matrix` x = `wanted` in place, by Cholesky; the matrix is positive by its ridge."""
    matrix, wanted = work.matrix, work.wanted
    for i in range(TERMS):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(max(total, LEAST_LEFT * LEAST_LEFT)) if i == j else total / matrix[j, j]
    for c in range(BOTH):
        for i in range(TERMS):
            total = wanted[i, c]
            for k in range(i):
                total -= matrix[i, k] * wanted[k, c]
            wanted[i, c] = total / matrix[i, i]
        for i in range(TERMS - 1, -1, -1):
            total = wanted[i, c]
            for k in range(i + 1, TERMS):
                total -= matrix[k, i] * wanted[k, c]
            wanted[i, c] = total / matrix[i, i]
