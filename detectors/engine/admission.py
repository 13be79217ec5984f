"""What the event clock's verdict means for the rows of a batch: the same for one Pipeline and for the front of several.

by_kind(arrivals, verdict, drop)      the admitted rows of each kind, with their corrected times
one_by_one(arrivals, verdict, drop)   where time itself jumped: sample by sample, and RESET where it went back
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from watchkeeper.detectors.engine.arrivals import Arrivals, single
from watchkeeper.detectors.engine.eventtime import ACCEPT, LATE, REFUSED, HeldSample, Verdict
from watchkeeper.streams.batch import CheckedBatch, Columns
from watchkeeper.streams.messages import Drop, Kind

OnDrop = Callable[[Kind, str, int], None]
RESET = None
"""Time went back for good before the samples that follow."""


def by_kind(arrivals: Arrivals, verdict: Verdict, drop: OnDrop) -> Iterator[tuple[Kind, Columns]]:
    """The rows of each kind that were admitted, if time did not jump."""
    for kind, cols in arrivals.batch.kinds.items():
        place = arrivals.place[kind]
        codes = verdict.codes[place]
        if verdict.shifted:
            cols = replace(cols, t=verdict.t[place])  # noqa: PLW2901
        if codes.any():
            drop(kind, Drop.LATE, int((codes == LATE).sum()))
            drop(kind, Drop.CLOCK, int((codes == REFUSED).sum()))
            cols = cols.take(codes == ACCEPT)  # noqa: PLW2901
        yield kind, cols


def one_by_one(
    arrivals: Arrivals, verdict: Verdict, drop: OnDrop
) -> Iterator[tuple[CheckedBatch, Kind, Columns] | None]:
    """Every admitted sample as columns of its own and the batch that has its names: order matters now, and it is rare.

    What the clock held back comes where it was released.
    """
    batch = arrivals.batch
    released: dict[int, list[HeldSample]] = {}
    for at, held in verdict.released:
        released.setdefault(at, []).append(held)
    for i, code in enumerate(verdict.codes.tolist()):
        if i in verdict.resets:
            yield RESET
        for held in released.get(i, []):
            yield single(held)
        if code == ACCEPT:
            kind, row = arrivals.where(i)
            cols = batch.kinds[kind].take(np.array([row]))
            yield batch, kind, replace(cols, t=verdict.t[i : i + 1], seq=np.zeros(1, np.int64))
        elif code in (LATE, REFUSED):
            drop(arrivals.where(i)[0], Drop.LATE if code == LATE else Drop.CLOCK, 1)
