"""Offline truth: how well the alarms, the controllers and the detectors did."""
