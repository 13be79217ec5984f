"""What a PX4 log tells besides its sensors: flight modes, arming, failsafes, warnings, the receiver's own figures.

vehicle_status         nav_state (the mode in control), arming_state, failsafe
logged messages        those of the level warning and worse
the GPS topic          jamming_indicator, noise_per_ms, s_variance_m_s, jamming_state, spoofing_state
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.told import MARKS_MAX, Figure, Mark, Span, Told, What, mark, spans_of

STATUS = "vehicle_status"
ARMED = 2
# `nav_state` in words, after vehicle_status.msg of PX4 1.15; 7, 8, 9, 11 and 16 are of versions up to 1.13.
MODES = {
    0: "Manual", 1: "Altitude", 2: "Position", 3: "Mission", 4: "Hold", 5: "Return", 6: "Position slow",
    7: "Return, no data link", 8: "Land, engine failure", 9: "Land, GPS failure", 10: "Acro", 12: "Descend",
    13: "Termination", 14: "Offboard", 15: "Stabilized", 16: "Rattitude", 17: "Takeoff", 18: "Land",
    19: "Follow me", 20: "Precision land", 21: "Orbit", 22: "VTOL takeoff",
}  # fmt: skip
# Column of the GPS topic: name, unit and meaning.
_FIGURES = {
    "jamming_indicator": ("jamming indicator", "0-255", "how much continuous interference the receiver sees"),
    "noise_per_ms": ("receiver noise", "", "noise level that the receiver measures, in units of its own"),
    "s_variance_m_s": ("speed accuracy", "m/s", "the receiver's own estimate of its speed error"),
    "jamming_state": ("jamming state", "0-3", "the receiver's word: 1 none, 2 warning, 3 critical; 0 it cannot tell"),
    "spoofing_state": ("spoofing state", "0-3", "the receiver's word: 1 none, 2 indicated, 3 certain; 0 cannot tell"),
}
# How the reference reader calls the levels that are worth a mark.
_SEVERE = {"WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def told(log: Any, status: Mapping[str, F8], gps: Mapping[str, F8], vehicle: str, offset_s: float) -> Told:
    """Everything; `status` and `gps` are topics, empty where they were not logged. Times are moved by `offset_s`."""
    until_t = float(log.last_timestamp) / 1e6 + offset_s
    spans: tuple[Span, ...] = ()
    if "timestamp" in status:
        times = (status["timestamp"].astype(np.float64) / 1e6 + offset_s).tolist()
        modes = [MODES.get(code, f"mode {code}") for code in status.get("nav_state", np.zeros(0)).tolist()]
        armed = ["armed" if code == ARMED else "" for code in status.get("arming_state", np.zeros(0)).tolist()]
        failsafe = ["failsafe" if on else "" for on in status.get("failsafe", np.zeros(0)).tolist()]
        states: tuple[tuple[What, list[str]], ...] = (("mode", modes), ("armed", armed), ("failsafe", failsafe))
        for what, words in states:
            spans += spans_of(what, times, words, until_t) if words else ()
    return Told(vehicle, spans, _marks(log, offset_s), _figures(gps, offset_s))


def _marks(log: Any, offset_s: float) -> tuple[Mark, ...]:
    severe = [m for m in log.logged_messages if m.log_level_str() in _SEVERE]
    return tuple(mark(m.timestamp / 1e6 + offset_s, _COLOUR.sub("", m.message)) for m in severe[:MARKS_MAX])


def _figures(gps: Mapping[str, F8], offset_s: float) -> tuple[Figure, ...]:
    found = []
    for column, (name, unit, meaning) in _FIGURES.items():
        # a receiver that never says anything but zero does not measure it
        if column in gps and np.any(gps[column] != 0):
            t = gps["timestamp"].astype(np.float64) / 1e6 + offset_s
            found.append(Figure(name, unit, meaning, t, gps[column].astype(np.float64)))
    return tuple(found)
