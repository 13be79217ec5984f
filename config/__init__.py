"""Typed configuration: every threshold with default, range, unit and reason; loader; profiles."""
