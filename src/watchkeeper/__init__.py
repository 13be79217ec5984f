"""Watchkeeper: real-time conflict and sensor-anomaly alarms. The links beside this file are the project's folders."""
