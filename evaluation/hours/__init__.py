"""Hours without an attack: how many epochs are over the threshold, and how many alarms are raised for nothing."""
