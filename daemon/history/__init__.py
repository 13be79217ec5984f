"""The history: alarms, tracks, scores and residuals of the last hours in one SQLite file, and how it is read."""
