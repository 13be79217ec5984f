"""The HTTP API below /api/v1: one table of routes that both serves and documents, see table.py and docs/api.md."""
