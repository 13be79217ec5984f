"""What each family of the catalogue should be called: the name of its pattern, fault type and sensor."""

from __future__ import annotations

SPOOFING, JAMMING, RECEIVER, FROZEN, CLOCK = "spoofing", "jamming", "receiver_fault", "frozen_receiver", "clock"
BIAS, SCALE, STUCK, SATURATION = "imu_bias", "imu_scale", "imu_stuck", "imu_saturation"

# Families that are no contradiction (a stream stops), or one that nobody can see (coordinated_imu), have no name.
NAME_OF: dict[str, str] = {
    **dict.fromkeys(
        (
            "gps_bias", "gps_altitude_bias", "gps_drift", "gps_altitude_drift", "gps_velocity", "coordinated",
            "coordinated_ramp", "closed_loop", "gps_intermittent", "gps_replay", "gps_replay_here", "gps_ar1",
        ),
        SPOOFING,
    ),
    "gps_jamming": JAMMING,
    "gps_noise": RECEIVER, "gps_velocity_noise": RECEIVER,
    "gps_freeze": FROZEN,
    "gps_clock": CLOCK,
    "imu_accel_bias": BIAS, "imu_gyro_bias": BIAS,
    "imu_accel_scale": SCALE, "imu_gyro_scale": SCALE,
    "imu_stuck": STUCK, "imu_accel_stuck": STUCK, "imu_gyro_stuck": STUCK,
    "imu_accel_saturation": SATURATION, "imu_gyro_saturation": SATURATION,
}  # fmt: skip
