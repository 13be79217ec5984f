"""The code check: Python sources read as syntax trees, values followed through a file, nothing run."""
