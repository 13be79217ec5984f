"""Who was judged by which detector, for how long, and why not: gathered about once a second of event time.

Vehicles that are forgotten before the end of the log keep their rows here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.daemon.report.gather.rows import Rows
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.reasons import JUDGED, NAMES, NOT_YET, PARTLY, VOID, Code, words
from watchkeeper.streams.batch import F8, U1, Bool

LOOK_S = 1.0
# Time that nobody saw is not counted as judged.
STEP_MAX_S = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one detector has to do with one vehicle: `judged`, `partly`, or `not`, with the reason and its words."""

    detector: str
    state: str
    reason: str
    words: str
    seconds: float


class JudgedTable:
    """[detector, row]: the last code, whether it was ever judged, and for how many seconds."""

    def __init__(self, detectors: tuple[str, ...]) -> None:
        self.detectors = detectors
        self._code: U1 = np.empty((len(detectors), 0), np.uint8)
        self._ever: Bool = np.empty((len(detectors), 0), bool)
        self._seconds: F8 = np.empty((len(detectors), 0))
        self._looked_t = -np.inf

    def look(self, pipeline: Pipeline, rows: Rows, t: float, *, last: bool = False) -> None:
        """Take over what is known at t; not more often than LOOK_S, except for the last time."""
        if t - self._looked_t < LOOK_S and not last and t >= self._looked_t:
            return
        step_s = min(max(t - self._looked_t, 0.0), STEP_MAX_S) if np.isfinite(self._looked_t) else 0.0
        self._looked_t = t
        fleet, table = pipeline.fleet, pipeline.guard.coverage
        slots = np.fromiter(fleet.slot_of.values(), np.int32, len(fleet.slot_of))
        if not len(slots):
            return
        row = rows.of(fleet, slots)
        slots, row = slots[row >= 0], row[row >= 0]
        self._reserve(len(rows.names))
        code = table.code[:, slots]
        self._seconds[:, row] += np.where(np.isin(code, JUDGED), step_s, 0.0)
        self._code[:, row] = code
        self._ever[:, row] |= table.judged[:, slots]

    def of(self, row: int) -> list[Verdict]:
        """All detectors that judge something of what this vehicle sends."""
        found: list[Verdict] = []
        if row >= self._code.shape[1]:
            return found
        for d, name in enumerate(self.detectors):
            code, ever = int(self._code[d, row]), bool(self._ever[d, row])
            if code in NOT_YET:
                # nothing more will come
                code = int(Code.WATCHED) if ever else int(Code.TOO_SHORT)
            if code == Code.NOT_APPLICABLE and not ever:
                continue
            good = ever and code not in VOID
            state = "partly" if good and code in PARTLY else "judged" if good else "not"
            reason, said = (NAMES[code], words(code)) if state != "judged" else ("watched", "watched")
            found.append(Verdict(name, state, reason, said, float(self._seconds[d, row])))
        return found

    def _reserve(self, rows: int) -> None:
        if (more := rows - self._code.shape[1]) <= 0:
            return
        shape = (len(self.detectors), more)
        self._code = np.concatenate((self._code, np.full(shape, Code.NOT_APPLICABLE, np.uint8)), axis=1)
        self._ever = np.concatenate((self._ever, np.zeros(shape, bool)), axis=1)
        self._seconds = np.concatenate((self._seconds, np.zeros(shape)), axis=1)
