"""Pure online detectors, debouncing, alarm life cycle, and the one Pipeline that runs them. No I/O, no wall clock."""
