"""Records of event time made by hand: a fleet of three at time T, one report every three seconds."""

from __future__ import annotations

from typing import Any

from watchkeeper.detectors.engine.senders.records import Now, Rules
from watchkeeper.detectors.kernels.records import blank

RULES = Rules(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, tolerance_s=0.5)
T = 1000.0


def made(record: type, **fields: Any) -> Any:
    """A record with these values."""
    row = blank(record, 1)[0]
    for name, value in fields.items():
        row[name] = value
    return row


def now(**fields: Any) -> Any:
    """The fleet's time, with these values in place of the usual ones."""
    return made(Now, **{"t": T, "active": 3, "every_s": 3.0, "usual_s": 2.0, "wait_s": 1.0, **fields})
