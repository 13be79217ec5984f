"""`run --once`: listen for some seconds and say what is heard, what can be judged, and what is refused and why."""
