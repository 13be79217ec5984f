"""Recorded logs through the pipeline: to files, to the live page, to a broker."""
