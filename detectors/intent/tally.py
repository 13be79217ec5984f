"""The running tally of `intent`: conflicts and alerts of all steps so far, as the evaluation would count them now.

Steps come in one at a time. Those whose windows are settled, because a quiet stretch lies between them and whatever may
come, are counted and forgotten; the rest waits. `figures()` matches what waits as if the episode ended now, with the
evaluation's own code, so at every moment they equal those of the same steps offline. An airspace that is never quiet
is cut after OPEN_STEPS, because memory is bounded: a window may then be counted twice, and `forced` says how often.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from watchkeeper.detectors.kernels.windows import Matching, WindowRule, match_series
from watchkeeper.streams.batch import Bool

# Steps that may wait for a quiet stretch: eleven hours of ten seconds.
OPEN_STEPS = 4000


@dataclass(slots=True)
class Counts:
    """Sums over settled steps."""

    steps: int = 0
    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0
    conflict_steps: int = 0
    alert_steps: int = 0
    lead_steps: int = 0

    def plus(self, matching: Matching, conflict: Bool) -> Counts:
        """With these steps as well."""
        return Counts(
            self.steps + matching.steps,
            self.tp + matching.tp,
            self.fp + matching.fp,
            self.fn + matching.fn,
            self.tn + matching.quiet_steps,
            self.conflict_steps + int(np.count_nonzero(conflict)),
            self.alert_steps + int(np.count_nonzero(matching.alert)),
            self.lead_steps + sum(matching.leads),
        )


class Tally:
    """Counts of one endless episode."""

    def __init__(self, rule: WindowRule) -> None:
        self.rule = rule
        self.forced = 0
        self._settled = Counts()
        self._open: list[tuple[bool, bool]] = []
        self._still = 0

    def add(self, conflict: bool, acting: bool) -> None:
        """One more step."""
        self._open.append((conflict, acting))
        self._still = 0 if conflict or acting else self._still + 1
        quiet = self._still >= self.rule.before + self.rule.after
        if quiet:
            self._settle(len(self._open) - self.rule.before)
        elif len(self._open) > OPEN_STEPS:
            self.forced += 1
            self._settle(len(self._open))

    def pause(self, steps: int) -> None:
        """That many steps in which nothing was heard."""
        enough = self.rule.before + self.rule.after
        for _ in range(min(steps, enough)):
            self.add(conflict=False, acting=False)
        rest = max(0, steps - enough)
        self._settled.steps += rest
        self._settled.tn += rest

    def _settle(self, steps: int) -> None:
        if steps > 0:
            self._settled = self._counted(self._open[:steps])
            del self._open[:steps]

    def _counted(self, steps: list[tuple[bool, bool]]) -> Counts:
        flags = np.array(steps, bool).reshape(-1, 2)
        return self._settled.plus(match_series(flags[:, 0], flags[:, 1], self.rule), flags[:, 0])

    def counts(self) -> Counts:
        """Of all steps so far, as if the last one ended the episode."""
        return self._counted(self._open)

    def figures(self, step_s: float) -> dict[str, float]:
        """Counts, and what follows from them, under the names that the evaluation uses."""
        c = self.counts()
        return {
            "tp": float(c.tp),
            "fp": float(c.fp),
            "fn": float(c.fn),
            "tn": float(c.tn),
            "num_conflict_steps": float(c.conflict_steps),
            "precision": c.tp / max(1, c.tp + c.fp),
            "recall": c.tp / max(1, c.tp + c.fn),
            "alert_duty_cycle": c.alert_steps / c.steps if c.steps else math.nan,
            "avg_lead_time_s": c.lead_steps / c.tp * step_s if c.tp else 0.0,
            "steps": float(c.steps),
            "cuts_forced": float(self.forced),
        }

    def snapshot(self) -> dict[str, Any]:
        """Settled sums and open steps."""
        return {
            "settled": asdict(self._settled),
            "open": np.array(self._open, bool).reshape(-1, 2),
            "still": self._still,
            "forced": self.forced,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._settled = Counts(**state["settled"])
        self._open = [(bool(g), bool(a)) for g, a in state["open"].tolist()]
        self._still, self.forced = state["still"], state["forced"]
