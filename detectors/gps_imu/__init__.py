"""gps_imu: the residual between what the GPS says and what the IMU says."""
