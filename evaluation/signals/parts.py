"""Which vehicles are for development and which are held out. Constants of `signal` are tuned on the first part only.

development   `watchkeeper evaluate signals --part development`: may be looked at as often as one likes
held out      `--part held-out`: other seeds, rates, shapes and recordings; run to report, never to choose

The constants that the detector began with were chosen on the simulated quadrotors of seed 1 and on all six flights that
are long enough, before there was a split. The three flights in HELD_OUT are therefore held out only from what was
changed since (`seen`); the simulated fleets and the ADS-B recordings of HELD_OUT were never tuned on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.evaluation.signals.series import Vehicle, recorded, simulated
from watchkeeper.evaluation.signals.shapes import plants


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated fleet: `quad` flies (streams/simulate/signals.py), `plant` runs an engine (shapes.py)."""

    seed: int
    shape: str = "quad"
    vehicles: int = 3
    seconds: float = 900.0
    rate_hz: float = 1.0
    signals: int = 22


@dataclass(frozen=True, slots=True)
class Recording:
    """A file below a folder of logs, by the start of its name; thinned to `rate_hz`, of it at most `most` tracks."""

    name: str
    rate_hz: float = 2.0
    most: int = 1000
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """What is evaluated together."""

    fleets: tuple[Fleet, ...]
    recordings: tuple[Recording, ...]


DEVELOPMENT = Part(
    fleets=(Fleet(seed=1), Fleet(seed=2, rate_hz=4.0, seconds=600.0), Fleet(seed=3, shape="plant")),
    recordings=(Recording("quad106"), Recording("quad122a"), Recording("plane_testlog2")),
)
HELD_OUT = Part(
    fleets=(
        Fleet(seed=101),
        Fleet(seed=102, rate_hz=5.0, seconds=600.0, vehicles=2),
        Fleet(seed=103, signals=40, vehicles=2),
        Fleet(seed=104, shape="plant"),
        Fleet(seed=105, shape="plant", rate_hz=2.0, vehicles=2),
    ),
    recordings=(
        Recording("quad_optflow"),
        Recording("plane_search"),
        Recording("plane_thor75"),
        Recording("monterey", rate_hz=0.2, most=10, seen=False),
        Recording("watsonville", rate_hz=0.25, most=10, seen=False),
    ),
)
PARTS = {"development": DEVELOPMENT, "held-out": HELD_OUT}


def fleets_of(part: Part) -> Iterator[Vehicle]:
    """The simulated vehicles of a part."""
    for fleet in part.fleets:
        if fleet.shape == "plant":
            yield from plants(fleet.vehicles, fleet.seconds, fleet.seed, fleet.rate_hz)
        else:
            yield from simulated(fleet.vehicles, fleet.seconds, fleet.seed, fleet.rate_hz, fleet.signals)


def recordings_of(part: Part, folder: Path, *, seen: bool) -> Iterator[Vehicle]:
    """The recordings of a part, found anywhere below a folder: those that were ever tuned on, or the others."""
    for recording in part.recordings:
        if recording.seen is seen:
            for path in sorted(folder.rglob(f"{recording.name}.*")):
                yield from recorded(path, recording.rate_hz, recording.most)
