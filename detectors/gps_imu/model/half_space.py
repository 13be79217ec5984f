"""Half-space trees (Tan, Ting and Liu 2011): how rarely a point of the unit cube lies where points lay lately.

Every node halves a box somewhere at random, in one of its dimensions; where is fixed when the trees are grown. A point
goes down each tree and adds to the mass of the boxes it is in. After a window of points these masses become those that
score. A point in boxes of little mass is unusual.

The nodes of all trees stand in one table, each tree from its root down, left before right. A node at depth d has its
left child next to it and its right one 2 ** (height - d) further. The numbers are those of river's HalfSpaceTrees
(0.1 of the window as least mass, cuts that leave 0.15 on each side), which the tests hold beside it.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.kernels import njit

# A box is not cut closer to its edge than this part of its width.
PADDING = 0.15
# A point goes no deeper where a box has less than this part of a window.
LEAST = 0.1
# Columns of a node's masses: of the window that is being filled, and of the one before.
FILLING, SCORING = 0, 1


@cache
def grow(names: tuple[str, ...], trees: int, height: int, seed: int) -> tuple[I4, F8]:
    """Dimension and place of every node's cut; leaves have dimension -1. Every model of one seed has the same trees."""
    rng = random.Random(seed)
    order = sorted(range(len(names)), key=lambda k: names[k])
    cuts: list[tuple[int, float]] = []

    def split(box: dict[int, tuple[float, float]], levels: int) -> None:
        if not levels:
            cuts.append((-1, 0.0))
            return
        (on,) = rng.choices(order, [box[k][1] - box[k][0] for k in order])
        low, high = box[on]
        at = rng.uniform(low + PADDING * (high - low), high - PADDING * (high - low))
        cuts.append((on, at))
        split(box | {on: (low, at)}, levels - 1)
        split(box | {on: (at, high)}, levels - 1)

    for _ in range(trees):
        split(dict.fromkeys(order, (0.0, 1.0)), height)
    return np.array([on for on, _ in cuts], np.int32), np.array([at for _, at in cuts])


@njit(cache=True)
def score(point: F8, on: I4, at: F8, masses: I8, height: int, window: int) -> float:
    """From 0, usual, to 1, by the masses of the last full window."""
    size = 2 ** (height + 1) - 1
    total = 0.0
    for root in range(0, on.size, size):
        node, weight = root, 1.0
        for depth in range(height + 1):
            mass = masses[node, SCORING]
            total += mass * weight
            if depth == height or mass < LEAST * window:
                break
            node = _below(point, on, at, node, height - depth)
            weight *= 2.0
    return float(1.0 - total / (on.size // size * window * size))


@njit(cache=True)
def learn(point: F8, on: I4, at: F8, masses: I8, height: int) -> None:
    """Add a point to the window that is being filled."""
    size = 2 ** (height + 1) - 1
    for root in range(0, on.size, size):
        node = root
        masses[node, FILLING] += 1
        for depth in range(height):
            node = _below(point, on, at, node, height - depth)
            masses[node, FILLING] += 1


@njit(cache=True)
def turn(masses: I8) -> None:
    """A window is full: score by it from now on."""
    for node in range(masses.shape[0]):
        masses[node, SCORING] = masses[node, FILLING]
        masses[node, FILLING] = 0


@njit(cache=True)
def _below(point: F8, on: I4, at: F8, node: int, levels: int) -> int:
    """The child whose half the point is in, of a node with so many levels below it."""
    return node + 1 if point[on[node]] < at[node] else node + 2**levels
