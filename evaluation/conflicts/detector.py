"""HallucinationDetector: from a recorded episode to the metrics of its conflicts and of its controller.

The name is that of the document which defines the metrics: a controller that reacts to conflicts that are not there.
`watchkeeper.evaluation.conflicts.command` exports it; docs/evaluation/conflicts.md has the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from watchkeeper.detectors.kernels.pairs import ARRIVED_NM, NAVIGATION_DEG, THREAT_NM
from watchkeeper.detectors.kernels.windows import ALERT_MARGIN_S, TRUTH_MARGIN_S, match_series, rule_for
from watchkeeper.evaluation.conflicts import metrics, steering
from watchkeeper.evaluation.conflicts.departures import AS_DOCUMENTED, CHOICES
from watchkeeper.evaluation.conflicts.episode import TIMES, Episode, from_trajectory
from watchkeeper.evaluation.conflicts.findings import Findings, details
from watchkeeper.evaluation.conflicts.series import series_of

_ABOVE_ZERO = (
    "horizon_s",
    "res_window_s",
    "action_period_s",
    "los_threshold_nm",
    "collision_nm",
    "iou_threshold",
    "vertical_ft",
)


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
    collision_nm: float = 3.0
    """Closer than this is counted as a collision."""
    lag_pre_steps: int = 1
    lag_post_steps: int = 1
    debounce_n: int = 2
    debounce_m: int = 3
    iou_threshold: float = 0.1
    merge_overlapping: bool = False
    """Windows whose margins overlap are one; otherwise only consecutive steps are."""
    # the rest departs from the document: departures.py
    tangent_plane: str = "midpoint"
    """Where the plane of closest approach touches: `midpoint` of a pair, or its `first` aircraft."""
    vertical_ft: float | None = 1000.0
    """Altitudes that differ by this much separate a pair; None: altitudes do not count."""
    step_from_timestamps: bool = True
    """The step is the median time between timestamps; otherwise `action_period_s`."""
    time_without_timestamps: str = "steps"
    """`flight_time_s` of an episode without timestamps: that of its `steps`, or `zero`."""
    los_duration: str = "steps"
    """A loss of separation lasts its number of `steps`, or the `span` from its first to its last."""
    extra_path_without_waypoints: str = "nan"
    """`avg_extra_path_*` where no aircraft has a waypoint: `nan` or `zero`."""
    team_potential: str = "least"
    """Of a recomputed reward: from the `least` separation of all pairs, or the `sum` of everybody's least in NM."""

    @classmethod
    def as_documented(cls, **settings: Any) -> HallucinationDetector:
        """Every departure from the document undone; `settings` for the rest."""
        return cls(**AS_DOCUMENTED | settings)

    def __post_init__(self) -> None:
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            if not (value is None and name == "vertical_ft") and not 0.0 < value < math.inf:
                raise ValueError(f"{name} is {value!r}, expected a number above 0")
        if self.iou_threshold > 1.0:
            raise ValueError(f"iou_threshold is {self.iou_threshold!r}, expected at most 1")
        if len(self.action_thresh) != 2 or not all(float(limit) > 0.0 for limit in self.action_thresh):
            raise ValueError(f"action_thresh is {self.action_thresh!r}, expected two numbers above 0: degrees, knots")
        if not 1 <= self.debounce_n <= self.debounce_m:
            raise ValueError(f"debounce is {self.debounce_n} of {self.debounce_m}, expected 1 or more of at least that")
        if min(self.lag_pre_steps, self.lag_post_steps) < 0:
            raise ValueError("lag_pre_steps and lag_post_steps are 0 or more")
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected {' or '.join(words)}")

    def compute(self, trajectory: Mapping[str, Any], *, detail: bool = False) -> dict[str, Any]:
        """All metrics by name, and `settings`; with `detail` also `steps` and `windows`. Raises EpisodeError."""
        found = self.examine(from_trajectory(trajectory, self.action_period_s))
        result = {**found.metrics, "settings": found.settings}
        return {**result, **details(found)} if detail else result

    def examine(self, episode: Episode) -> Findings:
        """The same for an episode in columns, with everything that the metrics come from."""
        if not self.step_from_timestamps:
            episode = replace(episode, step_s=self.action_period_s)
        series = series_of(
            episode,
            horizon_s=self.horizon_s,
            separation_nm=self.los_threshold_nm,
            vertical_ft=math.inf if self.vertical_ft is None else self.vertical_ft,
            action_thresh=(float(self.action_thresh[0]), float(self.action_thresh[1])),
            share_b=1.0 if self.tangent_plane == "midpoint" else 0.0,
        )
        rule = rule_for(
            episode.step_s, n=self.debounce_n, m=self.debounce_m,
            lag_pre=self.lag_pre_steps, lag_post=self.lag_post_steps, iou=self.iou_threshold,
            merge_overlapping=self.merge_overlapping,
        )  # fmt: skip
        matching = match_series(series.conflict, series.acting, rule)
        timeless = TIMES in episode.derived and self.time_without_timestamps == "zero"
        flight_s = 0.0 if timeless or len(episode.t) < 2 else float(episode.t[-1] - episode.t[0])
        total, source = metrics.reward(episode, series, self.los_threshold_nm, self.team_potential)
        values = {
            **metrics.detection(matching),
            **metrics.safety(series, self.collision_nm, span=self.los_duration == "span"),
            **metrics.alerting(episode, matching, flight_s),
            **metrics.efficiency(
                episode, flight_s, of_none=math.nan if self.extra_path_without_waypoints == "nan" else 0.0
            ),
            **metrics.resolution(episode, series, matching, self.los_threshold_nm, self.res_window_s),
            **steering.interventions(series, matching),
            **steering.alerts(episode, series, matching),
            "oscillation_rate": steering.oscillation(episode),
            "reward_total": total,
        }
        ordered = {name: values[name] for name in metrics.METRICS + metrics.BESIDE}
        return Findings(ordered, self._settings(episode, source), episode, series, matching)

    def _settings(self, episode: Episode, reward_source: str) -> dict[str, Any]:
        return asdict(self) | {
            "action_thresh": list(self.action_thresh),
            "threat_nm": max(THREAT_NM, self.los_threshold_nm),
            "navigation_deg": NAVIGATION_DEG,
            "arrived_nm": ARRIVED_NM,
            "truth_margin_s": TRUTH_MARGIN_S,
            "alert_margin_s": ALERT_MARGIN_S,
            "step_s": episode.step_s,
            "reward_source": reward_source,
            "derived": list(episode.derived),
        }
