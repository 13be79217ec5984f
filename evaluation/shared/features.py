"""Which features the evaluation may use: names that are circular, fused or true are banned by pattern.

A detector that is judged on GPS against IMU may see the raw sensors only. Everything that a flight controller has
already fused, or that carries the answer, would make the score circular. In the strict profile the attitude of an AHRS
is banned too; the `ahrs` profile allows it, for users whose AHRS runs on the IMU alone and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

AHRS: tuple[str, ...] = ("roll", "pitch", "yaw")
# Patterns, for the lower-case name. The first column is what the protocol names, the rest says the same in other words.
BANNED: tuple[str, ...] = (
    "baro_alt*", "barometric_alt*", "mag_heading*", "magnetic_heading*",
    "derived_*", "fused_*", "filtered_*", "ekf_*", "*ground_truth*",
    "ekf2_*", "est_*", "estimated_*", "estimator_*", "nav_*", "kalman_*", "ahrs_*", "attitude_*", "truth_*", "true_*",
    "label", "label_*", "is_attack*", "attack_*",
)  # fmt: skip
STRICT: tuple[str, ...] = (*BANNED, *AHRS, "quat*", "q0", "q1", "q2", "q3", "heading*")
PROFILES: dict[str, tuple[str, ...]] = {"strict": STRICT, "ahrs": BANNED}


def banned(names: Iterable[str], profile: str = "strict") -> list[str]:
    """Those of the names that the profile does not allow.

    >>> banned(["gps_x", "imu_ax", "EKF_vel_n", "baro_alt", "roll"])
    ['EKF_vel_n', 'baro_alt', 'roll']
    >>> banned(["roll", "fused_alt"], "ahrs")
    ['fused_alt']
    """
    patterns = PROFILES[profile]
    return [name for name in names if any(fnmatchcase(name.lower(), pattern) for pattern in patterns)]
