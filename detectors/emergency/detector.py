"""emergency: what a crew declares by transponder, and resolution advisories of the collision avoidance system (TCAS).

Each ADS-B sample that carries a transponder code (`squawk`) or a declared state (`emergency`) is one epoch of its
aircraft: score 1 where one of the causes in the settings applies, 0 where none does. A sample without either says
nothing, so an aircraft whose code is asked for only every turn of a radar keeps its alarm in between. `tcas_ra` is the
same, as a kind of its own. Nothing is remembered here: two reports, time and gaps are for the debouncer.

7500 and 7700, an aircraft that is down and every advisory are warnings; radio failure and minimum fuel are cautions,
and so is all that an aircraft on the ground declares, where transponders are tested.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.emergency.declaration import CAUSES, DECLARATION
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.messages import COLUMN, Kind

# Of each cause in order the code, and the number of the declared state (DO-260B, 2.2.3.2.7.8.1.1).
_NONE = math.nan
CODES = (7500.0, 7600.0, 7700.0, _NONE, _NONE)
STATES = (5.0, 4.0, 1.0, 3.0, 6.0)
# Causes that are warnings.
GRAVE = sum(1 << i for i, cause in enumerate(CAUSES) if cause in ("unlawful", "general", "downed"))
CAUTION, WARNING = 1, 2


class Emergency:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._declared = self._advisories = 0
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new settings."""
        wanted = config.detectors.emergency.causes
        self._wanted = sum(1 << i for i, cause in enumerate(CAUSES) if cause in wanted)
        self._with_advisories = config.detectors.tcas_ra.enabled

    def step(self, window: Window) -> list[Evidence]:
        """Every sample that says something about an emergency or an advisory."""
        samples = window.samples.get(Kind.ADSB)
        self._declared = self._advisories = 0
        if samples is None:
            return []
        return [*self._emergencies(samples), *self._resolutions(samples)]

    def _emergencies(self, s: Samples) -> list[Evidence]:
        squawk, state = s.col("squawk"), s.col("emergency")
        rows = np.flatnonzero(~(np.isnan(squawk) & np.isnan(state)))
        if not len(rows):
            return []
        bits = _bits(squawk[rows], state[rows]) & self._wanted
        self._declared = len(np.unique(s.slot[rows[bits > 0]]))
        airborne = self._newest("on_ground", s.slot[rows]) != 1.0
        severity = np.where((bits & GRAVE > 0) & airborne, WARNING, CAUTION)
        return [
            self._evidence(
                "emergency",
                s,
                rows,
                bits > 0,
                severity,
                {"squawk": squawk[rows]},
                causes=tuple(CAUSES),
                cause_bits=bits,
            )
        ]

    def _resolutions(self, s: Samples) -> list[Evidence]:
        advisory = s.col("tcas_ra")
        rows = np.flatnonzero(~np.isnan(advisory))
        if not len(rows) or not self._with_advisories:
            return []
        on = advisory[rows] > 0.0
        self._advisories = len(np.unique(s.slot[rows[on]]))
        return [self._evidence("tcas_ra", s, rows, on, np.full(len(rows), WARNING), {})]

    def _evidence(
        self, kind: str, s: Samples, rows: I8, on: Any, severity: Any, numbers: dict[str, F8], **causes: Any
    ) -> Evidence:
        slots = s.slot[rows]
        places = {name: self._newest(name, slots) for name in ("alt_ft", "vs_fpm", "lat", "lon")}
        return Evidence(
            kind,
            slots,
            t=s.t[rows],
            epoch=s.t[rows],
            score=on.astype(np.float64),
            threshold=np.ones(len(rows)),
            severity=severity.astype(np.uint8),
            numbers={**numbers, **places},
            **causes,
        )

    def _newest(self, name: str, slots: I4) -> F8:
        """The newest values of a field, of these vehicles."""
        values: F8 = self._fleet.value[Kind.ADSB][COLUMN[Kind.ADSB][name], slots]
        return values

    def quiet_until(self, t: float) -> float:  # noqa: ARG002
        """Nothing changes without reports."""
        return math.inf

    def forget(self, slots: I4) -> None:
        """Nothing is kept of a vehicle."""

    def gauges(self) -> dict[str, float]:
        """Aircraft that declared something, or had an advisory, in the last window."""
        return {"aircraft": float(self._declared), "advisories": float(self._advisories)}

    def snapshot(self) -> dict[str, Any]:
        """The figures of the last step."""
        return {"declared": self._declared, "advisories": self._advisories}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._declared, self._advisories = state["declared"], state["advisories"]


def _bits(squawk: F8, state: F8) -> I8:
    """Which causes apply, by bits in the order of CAUSES.

    >>> _bits(np.array([7700.0, 1000.0, np.nan]), np.array([np.nan, 4.0, 0.0])).tolist()
    [4, 2, 0]
    """
    found = np.zeros(len(squawk), np.int64)
    for i, (code, declared) in enumerate(zip(CODES, STATES, strict=True)):
        found |= ((squawk == code) | (state == declared)).astype(np.int64) << i
    return found
