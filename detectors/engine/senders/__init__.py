"""The clock of every sender against that of the fleet; used by eventtime.py only."""
