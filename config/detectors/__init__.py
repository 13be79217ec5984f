"""One file per detector: its thresholds, each with default, range, unit and reason, and its debounce rule.

Profiles (config/*.toml) only change the debounce counts and times.
"""

from __future__ import annotations

from msgspec import field

from watchkeeper.config.detectors.clock import Clock
from watchkeeper.config.detectors.conflict import Conflict, Los
from watchkeeper.config.detectors.emergency import Emergency, TcasRa
from watchkeeper.config.detectors.gnss_interference import GnssInterference
from watchkeeper.config.detectors.gps_imu import GpsImu
from watchkeeper.config.detectors.intent import Intent
from watchkeeper.config.detectors.kinematics import Kinematics
from watchkeeper.config.detectors.link import Link
from watchkeeper.config.detectors.signal import Signal
from watchkeeper.config.detectors.silence import Silence
from watchkeeper.config.detectors.watch import Watch
from watchkeeper.config.section import Extensible


class Detectors(Extensible, frozen=True):
    """All detectors."""

    conflict: Conflict = field(default_factory=Conflict)
    los: Los = field(default_factory=Los)
    gps_imu: GpsImu = field(default_factory=GpsImu)
    kinematics: Kinematics = field(default_factory=Kinematics)
    silence: Silence = field(default_factory=Silence)
    gnss_interference: GnssInterference = field(default_factory=GnssInterference)
    intent: Intent = field(default_factory=Intent)
    link: Link = field(default_factory=Link)
    emergency: Emergency = field(default_factory=Emergency)
    tcas_ra: TcasRa = field(default_factory=TcasRa)
    signal: Signal = field(default_factory=Signal)
    watch: Watch = field(default_factory=Watch)
    clock: Clock = field(default_factory=Clock)
