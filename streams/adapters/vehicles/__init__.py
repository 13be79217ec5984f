"""Vehicles and their recorders: MAVLink, PX4, ArduPilot, ROS, CAN."""
