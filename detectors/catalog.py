"""Every detector there is: importing this module registers them. Adding a detector adds one line."""

from watchkeeper.detectors import kinematics as _kinematics
from watchkeeper.detectors import silence as _silence
from watchkeeper.detectors.base import REGISTRY
from watchkeeper.detectors.conflict import detector as _conflict
from watchkeeper.detectors.gnss_interference import detector as _gnss_interference
from watchkeeper.detectors.gps_imu import detector as _gps_imu
from watchkeeper.detectors.intent import detector as _intent
from watchkeeper.detectors.link import detector as _link

__all__ = ["REGISTRY"]
_MODULES = (_conflict, _gnss_interference, _gps_imu, _intent, _kinematics, _link, _silence)
