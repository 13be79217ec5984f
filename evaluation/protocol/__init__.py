"""`evaluate protocol`: GPS/IMU detectors on clean and attacked flights."""
