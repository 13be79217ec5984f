"""What the engine has noticed about senders' clocks, on its way to the alarm `clock` and to coverage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockNote:
    """One sender's clock at the fleet's time t of an era; a new era begins when time goes back for good.

    `offset_s` is how far it is ahead of the fleet (behind: negative, back in step: 0); `unsteady`: the offset changes
    all the time, and the sender's samples are refused; `late`: they come too late to be taken. `via` is the number of
    its gateway, -1 for none. If `vehicles` is not 0, so many vehicles behind that gateway have the same offset: the
    gateway is meant, `name` is one of them.
    """

    era: int
    t: float
    name: str
    via: int
    offset_s: float
    unsteady: bool
    late: bool
    vehicles: int
    tolerance_s: float
