"""`evaluate leakage`: what a test set must not share with the training data."""
