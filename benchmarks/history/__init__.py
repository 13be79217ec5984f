"""The benchmark of the history: a made-up day, and how long questions about it take."""

from watchkeeper.benchmarks.history.questions import main

__all__ = ["main"]
