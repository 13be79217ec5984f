"""Every detector there is: importing this module registers them. Adding a detector adds one line."""

from watchkeeper.detectors import conflict as _conflict
from watchkeeper.detectors import gnss_interference as _gnss_interference
from watchkeeper.detectors import gps_imu as _gps_imu
from watchkeeper.detectors import intent as _intent
from watchkeeper.detectors import kinematics as _kinematics
from watchkeeper.detectors import link as _link
from watchkeeper.detectors import silence as _silence
from watchkeeper.detectors.base import REGISTRY

__all__ = ["REGISTRY"]
_MODULES = (_conflict, _gnss_interference, _gps_imu, _intent, _kinematics, _link, _silence)
