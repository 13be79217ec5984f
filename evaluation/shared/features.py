"""Which features the evaluation may use: names that are circular, fused or true are banned by pattern.

A detector that is judged on GPS against IMU may see the raw sensors only. Everything that a flight controller has
already fused, or that carries the answer, would make the score circular. In the strict profile the attitude of an AHRS
is banned too; the `ahrs` profile allows it, for users whose AHRS runs on the IMU alone and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

AHRS: tuple[str, ...] = ("roll", "pitch", "yaw")
# What is known of a flight, and no sensor's word: it may be learned, and must not be learned from.
TRUTH: tuple[str, ...] = ("truth_*", "true_*", "label", "label_*", "is_attack*", "attack_*")
# Patterns, for the name in snake case. The first two rows are what the protocol names, the rest says the same in other
# words.
BANNED: tuple[str, ...] = (
    "baro_alt*", "barometric_alt*", "mag_heading*", "magnetic_heading*",
    "derived_*", "fused_*", "filtered_*", "ekf_*", "*ground_truth*",
    "ekf2_*", "est_*", "estimated_*", "estimator_*", "nav_*", "kalman_*", "ahrs_*", "attitude_*",
    *TRUTH,
)  # fmt: skip
STRICT: tuple[str, ...] = (*BANNED, *AHRS, "quat*", "q0", "q1", "q2", "q3", "heading", "heading_deg", "heading_rad")
PROFILES: dict[str, tuple[str, ...]] = {"strict": STRICT, "ahrs": BANNED}


def banned(names: Iterable[str], profile: str = "strict") -> list[str]:
    """Those of the names that the profile does not allow.

    >>> banned(["gps_x", "imu_ax", "EKF_vel_n", "baro_alt", "roll"])
    ['EKF_vel_n', 'baro_alt', 'roll']
    >>> banned(["roll", "fused_alt", "BaroAlt", "ekfVelN", "GpsGroundTruthX"], "ahrs")
    ['fused_alt', 'BaroAlt', 'ekfVelN', 'GpsGroundTruthX']
    """
    patterns = PROFILES[profile]
    return [name for name in names if any(fnmatchcase(form, p) for form in _forms(name) for p in patterns)]


def is_truth(name: str) -> bool:
    """Whether a name is that of an answer, such as a label."""
    return any(fnmatchcase(form, pattern) for form in _forms(name) for pattern in TRUTH)


def _forms(name: str) -> tuple[str, str]:
    """A name in lower case as it is, and in snake case."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.\-]+", "_", name)
    return name.lower(), re.sub("_+", "_", apart).lower()
