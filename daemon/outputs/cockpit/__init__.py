"""Traffic and alarms for displays in the cockpit."""
