"""The speed of the detector `signal`, from log to alarms."""

from watchkeeper.benchmarks.signals.command import main

__all__ = ["main"]
