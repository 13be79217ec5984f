"""Every detector of the project, in the order in which the pipeline asks them. Adding a detector adds one line."""

from watchkeeper.detectors.base import REGISTRY, register
from watchkeeper.detectors.conflict.detector import Conflict
from watchkeeper.detectors.gnss_interference.detector import GnssInterference
from watchkeeper.detectors.gps_imu.detector import GpsImu
from watchkeeper.detectors.intent.detector import Intent
from watchkeeper.detectors.kinematics.detector import Kinematics
from watchkeeper.detectors.link.detector import LinkDetector
from watchkeeper.detectors.silence.detector import Silence

__all__ = ["REGISTRY"]

for _detector in (Kinematics, Conflict, GnssInterference, GpsImu, Intent, LinkDetector, Silence):
    register(_detector)
