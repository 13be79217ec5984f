"""Known limits of usual signals, by name: what a number cannot be while all is well, whatever it was before.

A preset is chosen by its word in `detectors.signal.presets`. Names are patterns as in file names; our adapters use
`battery.cell_v`, `battery.temperature_c`, `motor[0].output`, `esc[0].rpm`, `gps.fix`, `vibration.x` and so on, and the
topics of autopilots keep their own names behind a point. Limits of your own come first.
"""

from __future__ import annotations

from watchkeeper.config.detectors.signal import Preset, SignalLimit

PRESETS: dict[Preset, tuple[SignalLimit, ...]] = {
    # lithium polymer: 4.35 V full of the high-voltage kind, damage below 3.0 V; under load autopilots call 3.3 V empty
    "battery": (
        SignalLimit(names=("*cell_v*", "*voltage_cell*"), low=3.3, high=4.45, armed=True, severity="warning"),
        SignalLimit(names=("*battery*remaining*",), low=0.07, armed=True, severity="caution"),
    ),
    "temperature": (
        SignalLimit(names=("*battery*temp*",), low=-20.0, high=65.0),
        # MOSFETs and motor windings of small vehicles are rated to 100 to 120 degrees
        SignalLimit(names=("*esc*temp*", "*motor*temp*"), low=-40.0, high=110.0),
        SignalLimit(names=("*cpu*temp*", "*imu*temp*", "*baro*temp*"), low=-40.0, high=95.0),
    ),
    # a motor that turned since arming and stands while others turn: on the ground all of them stand
    "motors": (
        SignalLimit(
            names=("esc*.rpm", "motor*.rpm", "*motor_*_rpm"), low=50.0, armed=True, others=True, severity="warning"
        ),
        SignalLimit(names=("motor*.output", "actuator_motors*"), low=0.01, armed=True, others=True, severity="warning"),
    ),
    "gps": (
        SignalLimit(names=("gps*fix*",), low=3.0, armed=True, severity="warning"),
        SignalLimit(names=("gps*sats*", "gps*satellites_used*"), low=5.0, armed=True, severity="caution"),
        SignalLimit(names=("gps*eph*", "gps*hacc*"), high=10.0, armed=True, severity="caution"),
        SignalLimit(names=("gps*jamming*",), high=120.0, severity="caution"),
    ),
    # ArduPilot and PX4 both name 60 m/s2 as the level at which an estimator suffers
    "vibration": (SignalLimit(names=("vibration.x", "vibration.y", "vibration.z"), high=60.0, armed=True),),
}
