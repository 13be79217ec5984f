"""Which vehicles make a detector raise: the search that a fence makes after a failure.

The window is played to copies of the detector, a group of vehicles at a time and then the vehicles of the groups that
failed one by one; each vehicle is played to one copy once. Those that raise alone are the suspects, if a third copy
takes the window without them. Three copies and about twice the square root of the number of vehicles in steps: a
failure among thousands of vehicles costs a fraction of a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from watchkeeper.detectors.base import Detector, Window
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.streams.batch import I4, Bool
from watchkeeper.streams.messages import FIELDS

# More vehicles than this that raise by themselves are no vehicles' matter.
MOST = 16
NOBODY: I4 = np.empty(0, np.int32)
# For the log: vehicles, and of each the newest samples of each kind.
SHOWN_VEHICLES, SHOWN_ROWS = 3, 5


def find(copy: Callable[[], Detector], window: Window, high: int) -> I4:
    """The slots that make a copy of the detector raise; none when it cannot be told, or is not theirs."""
    present = np.zeros(high, bool)
    for samples in window.samples.values():
        present[samples.slot] = True
    slots = np.flatnonzero(present).astype(np.int32)
    try:
        suspects = slots
        for group_size in (math.isqrt(len(slots)), 1):
            twin = copy()
            groups = np.array_split(suspects, -(-len(suspects) // max(group_size, 1)))
            failing = [group for group in groups if len(group) and _raises(twin, only(window, group, high))]
            if not failing or len(failing) > MOST:
                return NOBODY
            suspects = np.concatenate(failing)
        # what everybody does is the detector's own mistake
        everybody = len(suspects) == len(slots) > 1
        return NOBODY if everybody or _raises(copy(), without(window, suspects)) else suspects
    except Exception:  # the copy itself: nothing can be told
        return NOBODY


def _raises(detector: Detector, window: Window) -> bool:
    try:
        detector.step(window)
    except Exception:
        return True
    return False


def only(window: Window, slots: I4, high: int) -> Window:
    """The window with the samples of these vehicles."""
    chosen = np.zeros(high, bool)
    chosen[slots] = True
    return _cut(window, lambda samples: chosen[samples.slot])


def without(window: Window, slots: I4) -> Window:
    """The window without the samples of these vehicles."""
    return _cut(window, lambda samples: ~np.isin(samples.slot, slots))


def _cut(window: Window, keep: Callable[[Samples], Bool]) -> Window:
    def kept() -> Iterator[Samples]:
        for samples in window.samples.values():
            rows = keep(samples)
            if rows.all():
                yield samples
            elif rows.any():
                data = np.ascontiguousarray(samples.data[:, rows])
                yield Samples(samples.kind, samples.slot[rows], samples.t[rows], data, samples.via[rows])

    return Window(window.t, {samples.kind: samples for samples in kept()})


def rows_of(window: Window, slots: I4 | None, ids: Sequence[str]) -> str:
    """The newest samples of these vehicles, or of the first few, as JSON for the log: exact enough to play them again.

    Values are written to the last bit.
    """
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for samples in window.samples.values():
        chosen = np.unique(samples.slot) if slots is None or not len(slots) else slots
        names = [field.name for field in FIELDS[samples.kind]]
        for slot in chosen[:SHOWN_VEHICLES].tolist():
            rows = np.flatnonzero(samples.slot == slot)[-SHOWN_ROWS:].tolist()
            found.setdefault(ids[slot], {})[samples.kind.word] = [
                {"t": float(samples.t[row])}
                | {
                    name: float(value)
                    for name, value in zip(names, samples.data[:, row], strict=True)
                    if not math.isnan(value)
                }
                for row in rows
            ]
    return msgspec.json.encode(found).decode()
