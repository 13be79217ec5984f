"""`evaluate alarms`: conflict alarms against the losses of separation that a recording shows."""
