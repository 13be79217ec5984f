"""`evaluate paired`: two models on the same trajectories."""
