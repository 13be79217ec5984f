"""What an ArduPilot log tells besides its sensors: flight modes, arming, errors and failsafes, the receiver's figures.

MODE    the flight mode, by the name that pymavlink has for it
EV      events 10 and 11: armed, disarmed
ERR     a subsystem (Subsys) and its error (ECode, 0: over); some of them are failsafes
UBX1    a u-blox receiver's own noise (noisePerMS) and jamming indicator (jamInd), the first instance
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from watchkeeper.streams.logs.told import MARKS_MAX, Figure, Mark, Span, Told, What, mark, spans_of

KINDS = ("MODE", "EV", "ERR", "UBX1")
EV_ARMED, EV_DISARMED = 10, 11
# Subsystems of ERR after LogErrorSubsystem of ArduPilot; those that are failsafes, and some others.
FAILSAFES = {
    5: "radio failsafe", 6: "battery failsafe", 7: "GPS failsafe", 8: "ground station failsafe", 9: "fence breached",
    17: "navigation filter failsafe", 20: "ADS-B failsafe", 23: "terrain failsafe", 26: "sensor failsafe",
    27: "leak failsafe", 29: "vibration failsafe", 31: "dead reckoning failsafe",
}  # fmt: skip
SUBSYSTEMS = {
    2: "radio", 3: "compass", 4: "optical flow", 10: "flight mode", 11: "GPS", 12: "crash check", 16: "filter check",
    18: "barometer", 19: "processor", 21: "terrain", 22: "navigation", 24: "filter lane", 25: "thrust loss",
    30: "internal error",
}  # fmt: skip
# A log of one flight has some dozens of each.
ROWS_MAX = 100_000


class Story:
    """Takes the messages of KINDS in the order of the file. Times are seconds since boot until `told` moves them."""

    def __init__(self) -> None:
        self._modes: list[tuple[float, str]] = []
        self._armed: list[tuple[float, str]] = []
        self._errors: list[tuple[float, int, int]] = []
        self._receiver: list[tuple[float, float, float]] = []

    def take(self, kind: str, message: Any, mode: object) -> None:
        """One message; `mode` is the reader's name of the flight mode. May raise what a damaged message raises."""
        t = float(message.TimeUS) / 1e6
        if kind == "MODE":
            known = mode if isinstance(mode, str) and mode not in ("", "UNKNOWN") else ""
            self._modes.append((t, known or f"mode {int(message.Mode)}"))
        elif kind == "EV" and int(message.Id) in (EV_ARMED, EV_DISARMED):
            self._armed.append((t, "armed" if int(message.Id) == EV_ARMED else ""))
        elif kind == "ERR":
            self._errors.append((t, int(message.Subsys), int(message.ECode)))
        elif kind == "UBX1" and int(getattr(message, "Instance", 0)) == 0 and len(self._receiver) < ROWS_MAX:
            self._receiver.append((t, float(message.noisePerMS), float(message.jamInd)))

    def told(self, vehicle: str, offset_s: float, until_t: float) -> Told:
        """Everything, in the log's time; `until_t` is its end."""
        spans = (*_states("mode", self._modes, offset_s, until_t), *_states("armed", self._armed, offset_s, until_t))
        failsafes = tuple(self._failsafes(offset_s, until_t))
        return Told(vehicle, spans + failsafes, tuple(self._marks(offset_s)), tuple(self._figures(offset_s)))

    def _failsafes(self, offset_s: float, until_t: float) -> Iterator[Span]:
        for number, name in FAILSAFES.items():
            rows = [(t, name if code else "") for t, subsystem, code in self._errors if subsystem == number]
            yield from _states("failsafe", rows, offset_s, until_t)

    def _marks(self, offset_s: float) -> Iterator[Mark]:
        rows = [row for row in self._errors if row[2]]
        for t, subsystem, code in rows[:MARKS_MAX]:
            name = FAILSAFES.get(subsystem) or f"error of {SUBSYSTEMS.get(subsystem, f'subsystem {subsystem}')}"
            yield mark(t + offset_s, f"{name} (code {code})")

    def _figures(self, offset_s: float) -> Iterator[Figure]:
        if self._receiver:
            t, noise, jamming = np.array(self._receiver).T
            yield Figure(
                "receiver noise", "", "noise level that the receiver measures, its own units", t + offset_s, noise
            )
            meaning = "how much continuous interference the receiver sees"
            yield Figure("jamming indicator", "0-255", meaning, t + offset_s, jamming)


def _states(what: What, rows: list[tuple[float, str]], offset_s: float, until_t: float) -> tuple[Span, ...]:
    return spans_of(what, [t + offset_s for t, _ in rows], [word for _, word in rows], until_t)
