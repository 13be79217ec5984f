"""The part of a flight that an attack works on: copies of the samples in its window, and the dice it may use.

`gps` and `imu` are [field, sample] copies of what the sensors said in the window, `*_s` the time since onset of each
sample, `*_lost` marks samples that never arrive. `gps_t` are the time stamps, which a clock attack may change. The
whole clean flight is at hand for attacks that look back (replay, freeze).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.messages import COLUMN, Kind

GPS, IMU = COLUMN[Kind.GPS], COLUMN[Kind.IMU]
PLACE = slice(GPS["gps_x"], GPS["gps_z"] + 1)
GLOBE = [GPS["lat"], GPS["lon"], GPS["alt_m"]]
VELOCITY = slice(GPS["gps_vx"], GPS["gps_vz"] + 1)
FORCE = slice(IMU["imu_ax"], IMU["imu_az"] + 1)
RATE = slice(IMU["imu_wx"], IMU["imu_wz"] + 1)
RAW = slice(FORCE.start, RATE.stop)
# Mean metres per degree of latitude: an attack of 10 m may be one of 9.97.
DEGREE_M = 111_194.0


@dataclass(slots=True)
class Scene:
    """See the module's docstring."""

    flight: Flight
    gps_rows: slice
    imu_rows: slice
    gps_t: F8
    gps: F8
    gps_lost: Bool
    gps_s: F8
    imu: F8
    imu_lost: Bool
    imu_s: F8
    seconds: float
    rng: np.random.Generator

    def side(self) -> F8:
        """A horizontal unit vector, drawn at random."""
        angle = float(self.rng.uniform(-math.pi, math.pi))
        return np.array((math.cos(angle), math.sin(angle), 0.0))

    def move(self, offset: F8) -> None:
        """Add [3, fix] metres to the position, in whichever form it comes; to a geodetic one as north, east, down."""
        self.gps[PLACE] += offset
        latitude = np.radians(self.gps[GPS["lat"]])
        self.gps[GPS["lat"]] += offset[0] / DEGREE_M
        self.gps[GPS["lon"]] += offset[1] / (DEGREE_M * np.cos(latitude))
        self.gps[GPS["alt_m"]] -= offset[2]

    def tilt(self) -> F8:
        """Rotation of each IMU sample from body (FRD) to local (NED) axes, [3, 3, sample].

        From the attitude in the recording where it has one: the attacker may know what the detector may not use.
        Otherwise level, heading along the track.
        """
        roll, pitch, yaw = (self.imu[IMU[name]] for name in ("roll", "pitch", "yaw"))
        track = np.arctan2(self.gps[VELOCITY.start + 1], self.gps[VELOCITY.start])
        heading = np.interp(self.imu_s, self.gps_s, np.unwrap(np.nan_to_num(track)))
        roll, pitch = np.nan_to_num(roll), np.nan_to_num(pitch)
        yaw = np.where(np.isnan(yaw), heading, yaw)
        cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
        return np.array(
            (
                (cp * cy, sr * sp * cy - cr * sy, cr * sp * cy + sr * sy),
                (cp * sy, sr * sp * sy + cr * cy, cr * sp * sy - sr * cy),
                (-sp, sr * cp, cr * cp),
            )
        )

    def lean(self, angle: F8) -> None:
        """Turn the attitude of the recording by small angles about north and east, [3, sample] in rad."""
        roll, pitch, yaw = (self.imu[IMU[name]] for name in ("roll", "pitch", "yaw"))
        c, s = np.cos(np.nan_to_num(yaw)), np.sin(np.nan_to_num(yaw))
        roll += c * angle[0] + s * angle[1]
        pitch += c * angle[1] - s * angle[0]
