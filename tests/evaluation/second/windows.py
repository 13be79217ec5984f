"""Windows of steps, half-open [start, end): how they are made and matched, and whether a conflict was resolved."""

from __future__ import annotations

from second.log import Log
from second.truth import least_separation_nm

Window = tuple[int, int]


def runs(flags: list[bool]) -> list[Window]:
    """The stretches of consecutive true steps."""
    found: list[Window] = []
    for t, flag in enumerate(flags):
        if not flag:
            continue
        if found and found[-1][1] == t:
            found[-1] = (found[-1][0], t + 1)
        else:
            found.append((t, t + 1))
    return found


def expanded(flags: list[bool], pad_steps: int, *, merge_overlapping: bool) -> list[Window]:
    """The runs with so many steps more at both ends, as far as the episode goes."""
    windows: list[Window] = []
    for run_start, run_end in runs(flags):
        start, end = max(0, run_start - pad_steps), min(len(flags), run_end + pad_steps)
        if merge_overlapping and windows and start < windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def iou(one: Window, other: Window) -> float:
    """Steps in both over steps in either."""
    in_one, in_other = set(range(*one)), set(range(*other))
    return len(in_one & in_other) / len(in_one | in_other)


def matched(truth: list[Window], alerts: list[Window], threshold: float) -> list[tuple[int, int]]:
    """Pairs of indices: each conflict in turn takes the best alert that is left; the first one wins a tie."""
    pairs: list[tuple[int, int]] = []
    for g, conflict in enumerate(truth):
        left = [a for a in range(len(alerts)) if a not in {used for _, used in pairs}]
        # max() keeps the first of equals.
        best = max(left, key=lambda a: iou(conflict, alerts[a]), default=None)
        if best is not None and iou(conflict, alerts[best]) >= threshold:
            pairs.append((g, best))
    return pairs


def failed_resolution(log: Log, conflict: Window) -> bool:
    """Whether any pair is at the separation minimum or below it in the time after the window.

    Where the episode ends with the window, the last seconds of the episode are judged instead.
    """
    window_steps = log.in_steps(log.settings.res_window_s)
    start = conflict[1]
    if start >= log.steps:
        start = max(0, log.steps - window_steps)
    end = min(log.steps, start + window_steps)
    return not least_separation_nm(log, start, end) > log.settings.separation_nm


def lost_separation(log: Log, conflict: Window) -> bool:
    """Whether any pair is below the separation minimum within the window."""
    return least_separation_nm(log, *conflict) < log.settings.separation_nm
