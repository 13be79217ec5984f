"""From flags per step to windows, and which alert belongs to which conflict. Shared by `intent` and by the evaluation.

A flag series says for each step of an episode (10 s, say) whether a conflict was predicted (truth) or whether a
controller was acting against one (alert). Windows are half-open [start, end) in steps. All of it is one look at a whole
series; `intent` calls it on the part of the series that is still open, so live and offline windows cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import Bool

# Of the ground truth and of the alerts: a controller may act this long before or after the prediction says so.
TRUTH_MARGIN_S, ALERT_MARGIN_S = 30.0, 10.0
Window = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WindowRule:
    """How flags become windows and windows are matched; lengths in steps."""

    debounce_n: int = 2
    debounce_m: int = 3
    lag_pre: int = 1
    lag_post: int = 1
    truth_margin: int = 3
    alert_margin: int = 1
    iou: float = 0.1
    merge_overlapping: bool = False
    """Windows that overlap because of their margins are one; otherwise only steps in a row are."""

    @property
    def before(self) -> int:
        """How many steps back the windows of what happens now can reach."""
        return max(self.truth_margin, self.lag_pre + self.alert_margin, self.debounce_m - 1)

    @property
    def after(self) -> int:
        """How many steps on the windows of what happened before can reach."""
        return max(self.truth_margin, self.debounce_m - 1 + self.lag_post + self.alert_margin)


@dataclass(frozen=True, slots=True)
class Matching:
    """Windows of one series. `pairs` are (index into truth, index into alerts), one to one, in order of truth."""

    steps: int
    alert: Bool
    """Per step, after debouncing and lag."""
    truth: list[Window]
    alerts: list[Window]
    pairs: list[tuple[int, int]]
    quiet_steps: int
    """Steps with neither conflict nor alert."""

    @property
    def tp(self) -> int:
        """Conflicts that were acted upon."""
        return len(self.pairs)

    @property
    def fp(self) -> int:
        """Alerts that belong to no conflict."""
        return len(self.alerts) - len(self.pairs)

    @property
    def fn(self) -> int:
        """Conflicts that nobody acted upon."""
        return len(self.truth) - len(self.pairs)

    @property
    def leads(self) -> list[int]:
        """For each pair how many steps the alert began before the conflict (negative: after)."""
        return [self.truth[g][0] - self.alerts[a][0] for g, a in self.pairs]


def steps_of(seconds: float, step_s: float) -> int:
    """A time as a number of steps, to the nearest; half a step counts as one."""
    return int(np.floor(seconds / step_s + 0.5))


def rule_for(
    step_s: float, *, n: int, m: int, lag_pre: int, lag_post: int, iou: float, merge_overlapping: bool = False
) -> WindowRule:
    """The rule for steps of this length."""
    margins = steps_of(TRUTH_MARGIN_S, step_s), steps_of(ALERT_MARGIN_S, step_s)
    return WindowRule(n, m, lag_pre, lag_post, *margins, iou, merge_overlapping)


def match_series(conflict: Bool, acting: Bool, rule: WindowRule) -> Matching:
    """Windows and matches of one series of conflict flags and one of raw action flags."""
    alert = dilated(debounced(acting, rule.debounce_n, rule.debounce_m), rule.lag_pre, rule.lag_post)
    truth = windows(conflict, rule.truth_margin, merge=rule.merge_overlapping)
    alerts = windows(alert, rule.alert_margin, merge=rule.merge_overlapping)
    quiet = int(np.count_nonzero(~conflict & ~alert))
    return Matching(len(conflict), alert, truth, alerts, matched(truth, alerts, rule.iou), quiet)


def debounced(flag: Bool, n: int, m: int) -> Bool:
    """Whether at least n of the last m steps, this one included, are set."""
    total = np.concatenate(([0], np.cumsum(flag)))
    last = np.arange(1, len(flag) + 1)
    result: Bool = total[last] - total[np.maximum(last - m, 0)] >= n
    return result


def dilated(flag: Bool, before: int, after: int) -> Bool:
    """Set as well for `before` steps before each step that is set and `after` steps after it."""
    total = np.concatenate(([0], np.cumsum(flag)))
    at, n = np.arange(len(flag)), len(flag)
    result: Bool = total[np.minimum(at + before + 1, n)] > total[np.maximum(at - after, 0)]
    return result


def windows(flag: Bool, margin: int, *, merge: bool = False) -> list[Window]:
    """Runs of set steps, `margin` longer on both sides within the series; with `merge` those that overlap are one."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flag, [False])).astype(np.int8)))
    found: list[Window] = []
    for start, end in edges.reshape(-1, 2).tolist():
        wide = max(0, start - margin), min(len(flag), end + margin)
        if merge and found and wide[0] < found[-1][1]:
            found[-1] = (found[-1][0], wide[1])
        else:
            found.append(wide)
    return found


def overlap(a: Window, b: Window) -> float:
    """Intersection over union of two windows that are not empty."""
    common = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return common / (a[1] - a[0] + b[1] - b[0] - common)


def matched(truth: list[Window], alerts: list[Window], least: float) -> list[tuple[int, int]]:
    """One to one, in order of truth: each takes the best alert that is still free, of equals the first."""
    free = set(range(len(alerts)))
    pairs: list[tuple[int, int]] = []
    for g, window in enumerate(truth):
        best, at = 0.0, -1
        for a in sorted(free):
            value = overlap(window, alerts[a])
            if value >= least and value > best:
                best, at = value, a
        if at >= 0:
            free.remove(at)
            pairs.append((g, at))
    return pairs
