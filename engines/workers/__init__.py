"""Operators in processes of their own on one machine, joined by pipes, for `--workers N` of `run` and `replay`.

The face is that of a Pipeline (workers.py). Each process runs one Operator (child.py); link.py connects it.
"""
