"""What a fleet costs on so many workers: measured here on one core, extended on paper to a thousand."""

from watchkeeper.benchmarks.cost.command import main

__all__ = ["main"]
