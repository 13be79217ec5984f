"""Slow faults: a sequential test on whitened innovations, with a budget of alarms of its own."""
