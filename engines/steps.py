"""What the stages tell each other in one turn: steps for operators, answers for Merge. wire.py makes bytes of them.

Front says of a step to which operator each vehicle belongs (`Spread`). Whoever drives the operators cuts it into one
`Step` for each (`Turn.split`), or lets each of them take its own samples out of the whole (workers/whole.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.streams.batch import I4, Bool, CheckedBatch
from watchkeeper.streams.split import split


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time is, the same for every operator and for Merge. The parts of a step happen in this order.

    `away`: from when to when nobody listened; `notes`: about senders' clocks, and `gateways`, the names of the numbers
    in them; `first`: the first tick of all, once it is known; `tick`: run every tick up to this one, `provisional`: but
    time may come back; `forget`: vehicles that have to make room; `end_t`: time went back for good after this;
    `accept`: the vehicle whose lasting state a person accepts, in a step of its own.
    """

    away: tuple[float, float] | None = None
    notes: tuple[ClockNote, ...] = ()
    gateways: tuple[str, ...] = ()
    first: int | None = None
    tick: int | None = None
    provisional: bool = False
    forget: tuple[str, ...] = ()
    end_t: float | None = None
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step for one operator: samples, and where time is after them. `moved`: their times were corrected."""

    samples: CheckedBatch | None
    moved: bool
    clock: Clock


@dataclass(slots=True)
class Told:
    """What an operator has to say of one tick: events, what incidents may have to look at, and who came and went.

    `seen` is as seen.py makes it; `called` are new callsigns, `gone` vehicles that were forgotten.
    """

    tick: int
    events: list[AlarmEvent]
    seen: dict[str, Any] | None = None
    called: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """What an operator has to say of one step, tick by tick; `ended` are the alarms that ended with it.

    They ended with an era, or because a person accepted what they were about.
    """

    ticks: list[Told] = field(default_factory=list)
    ended: list[AlarmEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Spread:
    """One step for all operators: `samples.ids[i]` belongs to the operator of vehicles `part[i]`.

    `across[i]`: the operator of the fleet gets it too. Both are empty without samples.
    """

    samples: CheckedBatch | None
    part: I4
    across: Bool
    moved: bool
    clock: Clock

    def split(self, shards: int) -> list[Step]:
        """What each operator gets, vehicles first, the fleet's last."""
        return [Step(part, self.moved, self.clock) for part in self._parts(shards)]

    def _parts(self, shards: int) -> list[CheckedBatch | None]:
        batch, across = self.samples, self.across
        if batch is None:
            return [None] * (shards + 1)
        parts = [batch] if shards == 1 else split(batch, self.part, shards)
        if not across.any():
            return [*parts, None]
        return [*parts, batch if across.all() else split(batch, (~across).astype(np.int32), 2)[0]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of Front, for so many operators of vehicles."""

    number: int
    shards: int
    spreads: list[Spread]

    def split(self) -> list[list[Step]]:
        """For each step what each operator gets, vehicles first, the fleet's last. Copies the samples."""
        return [spread.split(self.shards) for spread in self.spreads]

    @property
    def clocks(self) -> list[Clock]:
        """What Merge gets."""
        return [spread.clock for spread in self.spreads]
