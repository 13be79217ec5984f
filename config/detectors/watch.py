"""Settings of coverage and of its alarm `watch`."""

from __future__ import annotations

from typing import Annotated, Literal

from watchkeeper.config.section import Flag, Section, about

# Reasons that can raise an alarm (detectors/fleet/reasons.py has all of them).
Reason = Literal[
    "never_aligns", "no_fix", "units_force", "units_rate", "wrong_frame", "refused", "failed",
    "no_gps", "no_imu",
]  # fmt: skip


class Watch(Section, frozen=True):
    """Something that should be judged is not."""

    enabled: Flag = True
    reasons: Annotated[
        tuple[Reason, ...],
        about("", "reasons that raise an alarm; take `no_imu` out if vehicles are meant to have no IMU", live=True),
    ] = ("never_aligns", "no_fix", "units_force", "units_rate", "wrong_frame", "refused", "failed", "no_gps", "no_imu")
    missing_s: Annotated[
        float,
        about(
            "s", "a stream that a detector needs next to another is missed after this long", ge=1, le=86_400, live=True
        ),
    ] = 30.0
    no_fix_s: Annotated[
        float,
        about(
            "s",
            "a receiver that says that it has no position, from the start or in flight, is named after this long; a "
            "turn may cost it all satellites for two seconds",
            ge=0,
            le=86_400,
            live=True,
        ),
    ] = 5.0
    never_s: Annotated[
        float,
        about(
            "s", "a moving vehicle whose attitude is not found in this time never aligns", ge=10, le=86_400, live=True
        ),
    ] = 40.0
    lost_s: Annotated[
        float,
        about("s", "a vehicle that was judged and sends on is missed after this long", ge=1, le=86_400, live=True),
    ] = 60.0
    max_alarms: Annotated[
        int,
        about(
            "alarms",
            "about vehicles at once; the others are in the coverage only, and counted",
            ge=1,
            le=100_000,
            live=True,
        ),
    ] = 1000
