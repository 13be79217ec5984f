"""One stream by itself: what a GPS shows without an IMU, and an IMU without a GPS."""
