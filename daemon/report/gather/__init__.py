"""What is kept of a replay while it runs: readings, scores, coverage and alarms, in columns and within limits."""
