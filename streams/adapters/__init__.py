"""Readers of other projects' recordings: one file each, and one row in FORMATS (streams/logs/source.py)."""
