"""`evaluate tracks`: generated trajectories against real ones."""
