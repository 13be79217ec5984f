"""Attacks and faults on GPS/IMU recordings: the catalogue, and `inject`."""
