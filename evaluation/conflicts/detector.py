"""HallucinationDetector: from a recorded episode to the metrics of its conflicts and of its controller.

The name is that of the document which defines the metrics: a controller that reacts to conflicts that are not there.
`watchkeeper.evaluation.conflicts.command` exports it; docs/evaluation/conflicts.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from watchkeeper.detectors.kernels.pairs import ARRIVED_NM, NAVIGATION_DEG, THREAT_NM
from watchkeeper.detectors.kernels.windows import (
    ALERT_MARGIN_S,
    TRUTH_MARGIN_S,
    Matching,
    match_series,
    overlap,
    rule_for,
)
from watchkeeper.evaluation.conflicts import metrics
from watchkeeper.evaluation.conflicts.episode import Episode, from_trajectory
from watchkeeper.evaluation.conflicts.reward import recomputable, reward_parts
from watchkeeper.evaluation.conflicts.series import Series, series_of

VERTICAL_FT = 1000.0


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was worked out about one episode."""

    metrics: dict[str, float]
    settings: dict[str, Any]
    episode: Episode
    series: Series
    matching: Matching


@dataclass(frozen=True, slots=True)
class HallucinationDetector:
    """Settings of the evaluation. `compute` takes the documented trajectory structure.

    >>> still = [{"A1": (50.0, 8.0), "A2": (50.0, 8.05)}] * 4
    >>> HallucinationDetector().compute({"positions": still})["fn"]
    1
    """

    horizon_s: float = 120.0
    action_thresh: tuple[float, float] = (3.0, 5.0)
    """Heading in degrees, speed in knots."""
    res_window_s: float = 60.0
    action_period_s: float = 10.0
    """The step, where the trajectory has no timestamps."""
    los_threshold_nm: float = 5.0
    lag_pre_steps: int = 1
    lag_post_steps: int = 1
    debounce_n: int = 2
    debounce_m: int = 3
    iou_threshold: float = 0.1

    def __post_init__(self) -> None:
        for name in ("horizon_s", "res_window_s", "action_period_s", "los_threshold_nm", "iou_threshold"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a number above 0")
        if self.iou_threshold > 1.0:
            raise ValueError(f"iou_threshold is {self.iou_threshold!r}, expected at most 1")
        if len(self.action_thresh) != 2 or not all(float(limit) > 0.0 for limit in self.action_thresh):
            raise ValueError(f"action_thresh is {self.action_thresh!r}, expected two numbers above 0: degrees, knots")
        if not 1 <= self.debounce_n <= self.debounce_m:
            raise ValueError(f"debounce is {self.debounce_n} of {self.debounce_m}, expected 1 or more of at least that")
        if min(self.lag_pre_steps, self.lag_post_steps) < 0:
            raise ValueError("lag_pre_steps and lag_post_steps are 0 or more")

    def compute(self, trajectory: Mapping[str, Any], *, detail: bool = False) -> dict[str, Any]:
        """All metrics by name, and `settings`; with `detail` also `steps` and `windows`. Raises EpisodeError."""
        found = self.examine(from_trajectory(trajectory, self.action_period_s))
        result = {**found.metrics, "settings": found.settings}
        return {**result, **details(found, self.los_threshold_nm)} if detail else result

    def examine(self, episode: Episode) -> Findings:
        """The same for an episode in columns, with everything that the metrics come from."""
        series = series_of(
            episode,
            horizon_s=self.horizon_s,
            separation_nm=self.los_threshold_nm,
            vertical_ft=VERTICAL_FT,
            action_thresh=(float(self.action_thresh[0]), float(self.action_thresh[1])),
        )
        rule = rule_for(
            episode.step_s, n=self.debounce_n, m=self.debounce_m,
            lag_pre=self.lag_pre_steps, lag_post=self.lag_post_steps, iou=self.iou_threshold,
        )  # fmt: skip
        matching = match_series(series.conflict, series.acting, rule)
        total, source = metrics.reward(episode, series, self.los_threshold_nm)
        values = {
            **metrics.detection(matching),
            **metrics.safety(series),
            **metrics.alerting(episode, matching),
            **metrics.efficiency(episode),
            **metrics.behaviour(series, matching),
            **metrics.resolution(episode, series, matching, self.los_threshold_nm, self.res_window_s),
            "oscillation_rate": metrics.oscillation(episode),
            "reward_total": total,
        }
        ordered = {name: values[name] for name in metrics.METRICS + metrics.BESIDE}
        return Findings(ordered, self._settings(episode, source), episode, series, matching)

    def _settings(self, episode: Episode, reward_source: str) -> dict[str, Any]:
        return asdict(self) | {
            "action_thresh": list(self.action_thresh),
            "vertical_ft": VERTICAL_FT,
            "threat_nm": max(THREAT_NM, self.los_threshold_nm),
            "navigation_deg": NAVIGATION_DEG,
            "arrived_nm": ARRIVED_NM,
            "truth_margin_s": TRUTH_MARGIN_S,
            "alert_margin_s": ALERT_MARGIN_S,
            "overlapping_windows": "merged",
            "step_s": episode.step_s,
            "reward_source": reward_source,
            "derived": list(episode.derived),
        }


def details(found: Findings, separation_nm: float) -> dict[str, Any]:
    """Per step and per window, ready for JSON; windows in steps, half-open."""
    e, s, m = found.episode, found.series, found.matching
    partner = {a: g for g, a in m.pairs}
    alert_of = dict(m.pairs)
    reward = {
        name: part.sum(axis=1).tolist() for name, part in reward_parts(e, s, separation_nm).items()
    } if recomputable(e) else {}  # fmt: skip
    return {
        "steps": {
            "t": e.t.tolist(),
            "agents": [int(n) for n in e.present.sum(axis=1)],
            "conflict": s.conflict.tolist(),
            "alert": m.alert.tolist(),
            "intervention": s.intervening.tolist(),
            "deliberate": [[e.ids[a] for a in np.flatnonzero(row).tolist()] for row in s.acting_agent],
            "separation_nm": _finite(s.separation_nm),
            "dcpa_nm": _finite(s.dcpa_nm),
            "los": s.lost.tolist(),
            "reward": reward,
        },
        "windows": {
            "truth": [
                {
                    "start": w[0], "end": w[1], "alert": alert_of.get(g),
                    "iou": overlap(w, m.alerts[alert_of[g]]) if g in alert_of else None,
                }
                for g, w in enumerate(m.truth)
            ],
            "alerts": [{"start": w[0], "end": w[1], "truth": partner.get(a)} for a, w in enumerate(m.alerts)],
        },
    }  # fmt: skip


def _finite(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
