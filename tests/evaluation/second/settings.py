"""Every threshold of the second implementation, with the default of the specification; units are in the names.

The last five are choices where the specification leaves room; the list is in the docstring of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    horizon_s: float = 120.0
    separation_nm: float = 5.0
    los_threshold_nm: float = 5.0
    vertical_ft: float = 1000.0
    heading_threshold_deg: float = 3.0
    speed_threshold_kt: float = 5.0
    # A turn that brings the nose nearer to the waypoint by more than this is navigation.
    navigation_deg: float = 1.0
    threat_nm: float = 6.0
    # A command after which the closest approach is wider by more than this was an escape.
    escape_nm: float = 0.3
    # None: from the timestamps, and 10 s without them.
    step_s: float | None = None
    debounce_n: int = 2
    debounce_m: int = 3
    lag_pre_steps: int = 1
    lag_post_steps: int = 1
    truth_pad_s: float = 30.0
    alert_pad_s: float = 10.0
    merge_overlapping: bool = False
    iou_threshold: float = 0.1
    res_window_s: float = 60.0
    waypoint_nm: float = 1.0
    expected_time_s: float = 300.0
    dead_zone_deg: float = 2.0
    # The largest command of the environment: what total variation and action cost are measured in.
    full_heading_deg: float = 18.0
    full_speed_kt: float = 10.0
    earth_radius_km: float = 6371.0088
    # Of the plane of a closest approach; None: the radii of WGS 84 there.
    plane_radius_km: float | None = None
    vertical_for: tuple[Literal["conflict", "threat", "los"], ...] = ("conflict", "threat", "los")
    time_without_timestamps: Literal["steps", "zero"] = "steps"
    debounce_per_agent: bool = False
    los_duration: Literal["steps", "span"] = "steps"
    steps_of: Callable[[float], int] = round
