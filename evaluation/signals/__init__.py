"""How well faults in named signals are found: recall at a fixed share of false positives, next to plain methods."""
