"""Geometry that several detectors and the evaluation share."""
