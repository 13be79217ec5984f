"""Sorting for kernels: small, in place, and compiled once.

NumPy's own `sort`, `argsort` and `median` are compiled again with every kernel that calls them, a second each time. A
heap sort is twenty lines, takes no memory and has no bad cases.
"""

from __future__ import annotations

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


@njit(cache=True)
def median(keys: F8) -> float:
    """Of keys that are sorted; there must be one."""
    n = keys.size
    return float(0.5 * (keys[(n - 1) // 2] + keys[n // 2]))
