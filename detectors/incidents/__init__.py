"""Incidents: alarms with one cause, and the diagnosis of that cause."""
