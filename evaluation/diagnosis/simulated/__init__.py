"""Simulated telemetry networks: how they are drawn, what is wrong in them, their alarms and what they answer."""
