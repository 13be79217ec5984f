"""The kinds of telemetry that a detector can be set to watch."""

from __future__ import annotations

from typing import Literal

# The words of streams.messages.Kind, which this layer must not import; a test holds the two together.
Stream = Literal["adsb", "gps", "imu", "action", "route", "link", "signal"]
