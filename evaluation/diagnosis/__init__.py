"""`evaluate diagnosis`: fault type and location on simulated networks."""
