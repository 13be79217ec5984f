"""Settings of the detector `kinematics`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Section, about


class Kinematics(Section, frozen=True):
    """A track that contradicts itself: jumps, speed against displacement, duplicate ids; altitude only with those."""

    enabled: Flag = True
    jump_speed_kt: Annotated[
        float, about("kt", "implied speed between two positions that no aircraft flies", ge=100, le=20_000, live=True)
    ] = 1500.0
    speed_error_kt: Annotated[
        float, about("kt", "displacement speed against reported speed, beyond report noise", ge=5, le=5000, live=True)
    ] = 150.0
    climb_fpm: Annotated[
        float, about("ft/min", "implied vertical rate that no aircraft flies", ge=1000, le=200_000, live=True)
    ] = 30_000.0
    drone_speed_kt: Annotated[
        float,
        about(
            "kt",
            "speed that no drone flies, and none reports; large ones that send ADS-B fly 340",
            ge=10,
            le=20_000,
            live=True,
        ),
    ] = 400.0
    glider_speed_kt: Annotated[
        float, about("kt", "speed that no glider flies, and none reports", ge=10, le=20_000, live=True)
    ] = 250.0
    ship_speed_kt: Annotated[
        float, about("kt", "speed that no ship makes, and none reports", ge=5, le=20_000, live=True)
    ] = 80.0
    slow_error_kt: Annotated[
        float,
        about("kt", "as `speed_error_kt`, of drones, gliders and ships, which are slower", ge=5, le=5000, live=True),
    ] = 30.0
    slow_noise_m: Annotated[
        float, about("m", "as `position_noise_m`, of drones, gliders and ships", ge=1, le=10_000, live=True)
    ] = 50.0
    operator_m: Annotated[
        float,
        about("m", "farther than this no drone is from its operator: beyond usual links", ge=100, le=2e7, live=True),
    ] = 20_000.0
    position_noise_m: Annotated[
        float,
        about(
            "m",
            "position and time-stamp noise that displacement must exceed to mean anything",
            ge=1,
            le=10_000,
            live=True,
        ),
    ] = 400.0
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=5))
