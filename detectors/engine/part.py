"""Which part of a pipeline's work is done here: all of it, that of some vehicles, or what takes the whole fleet.

Thresholds are the same in every part. `WHOLE` is the Pipeline as everybody knows it. Engines that spread the work over
several operators (engines/) run a Pipeline `of_vehicles(i, n)` for each n-th of the vehicles and one for `FLEET`; both
get samples that were admitted before, and a time that is told (`take`, `reach`). What the parts have to say is put
together afterwards (engines/merge.py): clocks of senders and incidents are judged there.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.detectors.declaration import Declaration
from watchkeeper.streams.split import BUCKETS, bucket_of


@dataclass(frozen=True, slots=True)
class Part:
    """`alone` and `across`: whether detectors run here that judge each vehicle by itself, and those that do not.

    `covers`: whether it is told here which vehicles are not watched; `gathers`: whether samples are admitted here, and
    the alarms `clock` and `incident` made. Vehicles of the part are those of every `parts`-th bucket from `index` on.
    """

    name: str
    alone: bool = True
    across: bool = True
    covers: bool = True
    gathers: bool = True
    index: int = 0
    parts: int = 1

    def runs(self, declaration: Declaration) -> bool:
        """Whether a detector runs here."""
        return self.alone if declaration.alone else self.across

    def has(self, vehicle: str) -> bool:
        """Whether a vehicle belongs here."""
        return self.parts == 1 or bucket_of(vehicle) % self.parts == self.index


WHOLE = Part("whole")
FLEET = Part("fleet", alone=False, covers=False, gathers=False)


def of_vehicles(index: int, parts: int) -> Part:
    """The part of vehicles number `index` of so many. ValueError: more parts than vehicles are spread over."""
    if not 0 <= index < parts <= BUCKETS:
        raise ValueError(f"part {index} of {parts}: there can be {BUCKETS} at most")
    return Part(f"vehicles {index + 1} of {parts}", across=False, gathers=False, index=index, parts=parts)
