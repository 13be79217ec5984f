"""Episodes as the comparison needs them: metrics, metadata and everybody's track; and which of them belong together.

The metadata (`scenario_metadata` of a trajectory, or columns of a CSV that hold one value) says what was shifted:
`seed`, `target_agent`, `shift_type`, `shift_value`. A baseline has `shift_type` "baseline" or none, or a `test_id` that
begins with "baseline". What is wrong is a LogError that names the file, the key and what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from watchkeeper.evaluation.conflicts.api import EpisodeData
from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.load import episodes_in
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.source import LogError

BASELINE = "baseline"
_NONE = ("", "none", "null", BASELINE)
# Names of the same kinds elsewhere: "closer" moves along the meridian, "lateral" along the parallel.
OTHER_NAMES = {"position_closer": "position_lat", "position_lateral": "position_lon"}
# Episodes with different values here have nothing to do with each other.
_WORLD = ("scenario", "model")


class ShiftKey(NamedTuple):
    """Which agent was shifted, what of it, and by how much: a number, or a word such as an aircraft type."""

    agent: str
    kind: str
    size: float | str

    @property
    def words(self) -> str:
        """For tables and pictures."""
        size = self.size if isinstance(self.size, str) else f"{self.size:+g}"
        return f"{self.agent} {self.kind} {size}"


@dataclass(frozen=True, slots=True)
class Flown:
    """One episode."""

    file: Path
    name: str
    meta: Mapping[str, Any]
    metrics: Mapping[str, float]
    ids: tuple[str, ...]
    lat: F8
    lon: F8
    """[step, agent] in degrees, NaN where an agent is not there."""
    lost_at_start: bool
    """Separation is lost at the first step: no controller could have prevented it."""

    @property
    def seed(self) -> str:
        """What pairs it with its baseline. Raises LogError."""
        if str(self.meta.get("seed", "")) == "":
            raise LogError(
                self.file, f"{self.name}: scenario_metadata: no seed, which pairs an episode and its baseline"
            )
        return str(self.meta["seed"])

    @property
    def world(self) -> tuple[str, ...]:
        """What must be the same in an episode and its baseline."""
        return *(str(self.meta.get(key, "")) for key in _WORLD), self.seed

    @property
    def shift(self) -> ShiftKey | None:
        """What was shifted; None in a baseline. Raises LogError."""
        kind = str(self.meta.get("shift_type") or "")
        test = str(self.meta.get("test_id", ""))
        if kind in _NONE or test.startswith(BASELINE):
            return None
        agent = str(self.meta.get("target_agent", ""))
        if not agent:
            raise self._wrong("target_agent", "missing, expected the shifted agent")
        return ShiftKey(agent, OTHER_NAMES.get(kind, kind), self._size())

    def _size(self) -> float | str:
        value = self.meta.get("shift_value")
        if value is None or value == "" or isinstance(value, (bool, list, dict)):
            problem = "missing" if value is None or value == "" else f"is {value!r:.40}"
            raise self._wrong("shift_value", f"{problem}, expected a number, or a word for a kind without sizes")
        try:
            size = float(value)
        except ValueError:
            return str(value)
        except OverflowError:  # a whole number beyond all floats
            size = math.inf
        if not math.isfinite(size):
            raise self._wrong("shift_value", f"is {value!r:.40}, expected a finite number")
        return size

    def _wrong(self, key: str, problem: str) -> LogError:
        return LogError(self.file, f"{self.name}: scenario_metadata.{key}: {problem}")


Pair = tuple[Flown, Flown]


def read(
    data: Sequence[EpisodeData], detector: HallucinationDetector, *, jobs: int = 0, quiet: bool = True
) -> list[Flown]:
    """All episodes, by several processes where all are paths and it pays."""
    work = partial(examined, detector=detector)
    if all(isinstance(one, (str, PathLike)) for one in data):
        found = counted(work, data, "evaluating", jobs=jobs, hidden=quiet)
    else:
        found = [work(one) for one in data]
    return [flown for several in found for flown in several]


def examined(data: EpisodeData, *, detector: HallucinationDetector) -> list[Flown]:
    """The episodes of one file, frame, trajectory or simulation."""
    rows = []
    for path, name, episode in episodes_in(data, detector.action_period_s):
        found = detector.examine(episode)
        lost = bool(len(found.series.lost) and found.series.lost[0])
        rows.append(Flown(path, name, episode.meta, found.metrics, episode.ids, episode.lat, episode.lon, lost))
    return rows


def paired(episodes: Iterable[Flown]) -> tuple[dict[ShiftKey, list[Pair]], list[str]]:
    """By shift the pairs (shifted, baseline) of the same seed, and what was left out.

    Raises EvaluationError where no pair is left, and LogError for an episode that comes twice.
    """
    baselines: dict[tuple[str, ...], Flown] = {}
    shifted: dict[tuple[ShiftKey, tuple[str, ...]], Flown] = {}
    for one in episodes:
        key = one.shift
        known = baselines.setdefault(one.world, one) if key is None else shifted.setdefault((key, one.world), one)
        if known is not one:
            what = "a second baseline" if key is None else f"a second episode of {key.words}"
            raise LogError(one.file, f"{one.name}: {what} with seed {one.seed}, after {known.file} ({known.name})")
    groups: dict[ShiftKey, list[Pair]] = {}
    notes: list[str] = []
    for (key, world), one in sorted(shifted.items(), key=_order):
        if world in baselines:
            groups.setdefault(key, []).append((one, baselines[world]))
        else:
            notes.append(f"{one.file}: {one.name}: no baseline with seed {one.seed}, left out")
    if not groups:
        raise EvaluationError(
            "no shifted episode has a baseline of the same seed: "
            f"{len(shifted):,} shifted, {len(baselines):,} baselines"
        )
    return groups, notes


def _order(item: tuple[tuple[ShiftKey, tuple[str, ...]], Flown]) -> tuple[Any, ...]:
    """Agents and kinds by name, sizes by value, seeds by number where they are numbers."""
    (agent, kind, size), world = item[0]
    number = (0, size, "") if isinstance(size, float) else (1, 0.0, size)
    seed = world[-1]
    return agent, kind, number, world[:-1], (0, int(seed), "") if seed.isdecimal() else (1, 0, seed)
