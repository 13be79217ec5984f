"""Sorting and selection for kernels: small, in place, and compiled once.

NumPy's own `sort`, `argsort` and `median` are compiled again with every kernel that calls them, a second each time. A
heap sort is twenty lines, takes no memory and has no bad cases. A selection takes a tenth of its time where one value
is asked for; where its pivots turn out badly, which a sender could arrange, the rest is sorted.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def sort_by(keys: F8, rows: I8) -> None:
    """Sort both by the keys, the smallest first; of equal keys the smaller row comes first."""
    n = keys.size
    for root in range(n // 2 - 1, -1, -1):
        _sift(keys, rows, root, n)
    for end in range(n - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        rows[0], rows[end] = rows[end], rows[0]
        _sift(keys, rows, 0, end)


@njit(cache=True)
def _sift(keys: F8, rows: I8, root: int, end: int) -> None:
    """Put the element at the root of a heap in its place; the heap has this end."""
    key, row = keys[root], rows[root]
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        right = child + 1
        if right < end and (keys[right] > keys[child] or (keys[right] == keys[child] and rows[right] > rows[child])):
            child = right
        if keys[child] < key or (keys[child] == key and rows[child] <= row):
            break
        keys[root], rows[root] = keys[child], rows[child]
        root = child
    keys[root], rows[root] = key, row


# Rounds of a selection, of which each leaves about half of the keys: 32 are enough for any number of them.
ROUNDS = 32


@njit(cache=True)
def nth(keys: F8, k: int) -> float:
    """The key that a sort would put at place k; smaller ones come before it, larger ones behind it."""
    low, high = 0, keys.size - 1
    for _ in range(ROUNDS):
        if low >= high:
            break
        # the middle one of three: keys that are sorted already are no bad case
        first, middle, last = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            low = high = k
    if low < high:
        sort_by(keys[low : high + 1], np.zeros(high - low + 1, np.int64))
    return float(keys[k])


@njit(cache=True)
def median(keys: F8) -> float:
    """Of at least one key, in any order, which changes."""
    half = keys.size // 2
    upper = nth(keys, half)
    if keys.size % 2:
        return upper
    lower = keys[0]
    for i in range(1, half):
        lower = max(lower, keys[i])
    return float(0.5 * (lower + upper))
