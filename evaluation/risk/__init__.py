"""Separation risk from logs: how close aircraft come, how often separation is lost, where and when."""
