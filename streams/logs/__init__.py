"""Recorded logs: .wklog, CSV, and how a file's format is told."""
