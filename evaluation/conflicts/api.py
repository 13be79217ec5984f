"""`watchkeeper.evaluate.conflicts`: did the controller see the conflicts that were there, and only those?

Reads episodes (load.py), works out the metrics of each (`HallucinationDetector`) and sums them up by group.
command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.findings import Findings, details
from watchkeeper.evaluation.conflicts.load import episodes_in, read_episodes
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS
from watchkeeper.evaluation.conflicts.safety.hotspots import CELL_NM, hot_spots, mistakes
from watchkeeper.evaluation.conflicts.safety.risk import RATES, TARGET_PER_HOUR, risk, survival
from watchkeeper.evaluation.conflicts.summary import aggregate, grouped
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.streams.frames.sources import Log
from watchkeeper.streams.frames.write import NUMBER, TEXT, Backend, rows_frame

EpisodeData: TypeAlias = Log | IntoDataFrame | Mapping[str, Any]
"""A file, a frame, a trajectory, an open log or a simulation."""
Row: TypeAlias = dict[str, Any]
# Separations of more than a few minima are safe, whatever they are.
CURVE_MINIMA = 6.0
COLUMNS = {"file": TEXT, "name": TEXT, **dict.fromkeys(METRICS + BESIDE, NUMBER)}

RISK_COLUMNS = {"event": TEXT, **dict.fromkeys(RATES, NUMBER), "verdict": TEXT}
SURVIVAL_COLUMNS = dict.fromkeys(("separation_nm", "survival", "low_95", "high_95"), NUMBER)
CELL_COLUMNS = dict.fromkeys(("lat", "lon", "false", "missed"), NUMBER)


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The metrics of all episodes, and of all together by group."""

    detector: HallucinationDetector
    episodes: list[dict[str, Any]]
    group_by: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many episodes each group has."""
        return {name: len(rows) for name, rows in grouped(self.episodes, self.group_by).items()}

    @property
    def groups(self) -> dict[str, dict[str, dict[str, float]]]:
        """Group to metric to mean, std, min, max and n; all episodes first."""
        return {name: aggregate(rows) for name, rows in grouped(self.episodes, self.group_by).items()}

    def safety(self, target_per_hour: float = TARGET_PER_HOUR, cell_nm: float = CELL_NM) -> dict[str, list[Row]]:
        """Risk per flight hour, survival of the least separation, and hot spots of mistakes; rows by these names."""
        metrics = [row["metrics"] for row in self.episodes]
        return {
            "risk": risk(metrics, target_per_hour),
            "survival": survival(metrics, CURVE_MINIMA * self.detector.los_threshold_nm),
            "hot_spots": hot_spots((place for row in self.episodes for place in row["mistakes"]), cell_nm),
        }

    def risk_frame(self, target_per_hour: float = TARGET_PER_HOUR, backend: Backend | None = None) -> Any:
        """Losses of separation and collisions per flight hour with exact Poisson intervals, against a target."""
        return rows_frame(self.safety(target_per_hour)["risk"], RISK_COLUMNS, backend)

    def survival_frame(self, backend: Backend | None = None) -> Any:
        """The share of episodes that stayed farther apart than each distance, with bootstrap bands."""
        return rows_frame(self.safety()["survival"], SURVIVAL_COLUMNS, backend)

    def hot_spots_frame(self, cell_nm: float = CELL_NM, backend: Backend | None = None) -> Any:
        """Where alerts were false or missed, cell by cell, the fullest first."""
        return rows_frame(self.safety(cell_nm=cell_nm)["hot_spots"], CELL_COLUMNS, backend)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per episode, one column per metric."""
        rows = [{"file": row["file"], "name": row["name"], **row["metrics"]} for row in self.episodes]
        return rows_frame(rows, COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: what `--out` writes."""
        return {"settings": detector_settings(self.detector), "groups": self.groups, "episodes": self.episodes}


def conflicts(
    episodes: EpisodeData | Sequence[EpisodeData],
    *,
    group_by: str | None = None,
    detail: bool = False,
    jobs: int = 0,
    quiet: bool = True,
    **settings: Any,
) -> Conflicts:
    """The 31 conflict metrics of recorded episodes: conflicts seen, missed and imagined, and what actions cost.

    An episode is a frame (`timestamp`, `agent`, `lat`, `lon` and perhaps `heading_delta_deg`, `speed_delta_kt` …), a
    frame of messages with a column `kind`, a trajectory as a dictionary, a path, or a simulation of `controlled`
    traffic. `settings` are those of HallucinationDetector, such as `horizon_s`; `detail` adds every step and window.

    >>> import watchkeeper as wk
    >>> still = {"timestamp": [0, 0, 10, 10], "agent": ["A", "B"] * 2, "lat": [50.0] * 4, "lon": [8.0, 8.05] * 2}
    >>> wk.evaluate.conflicts(still).to_frame("polars")["fn"].to_list()
    [1.0]
    """
    detector = HallucinationDetector(**settings)
    given = list(episodes) if isinstance(episodes, (list, tuple)) else [episodes]
    paths = [Path(data) for data in given if isinstance(data, (str, PathLike))]
    if len(paths) == len(given):
        work = partial(evaluate_file, detector=detector, detail=detail)
        found = counted(work, paths, "evaluating", jobs=jobs, hidden=quiet)
        return Conflicts(detector, [row for rows in found for row in rows], group_by)
    rows = [
        _as_row(where, name, detector.examine(episode), detail=detail)
        for data in given
        for where, name, episode in episodes_in(data, detector.action_period_s)
    ]
    return Conflicts(detector, rows, group_by)


def evaluate_file(path: Path, *, detector: HallucinationDetector, detail: bool = False) -> list[dict[str, Any]]:
    """Name, metadata, metrics and settings of each episode in a file. Raises LogError."""
    return [
        _as_row(path, name, detector.examine(episode), detail=detail)
        for name, episode in read_episodes(path, detector.action_period_s)
    ]


def findings_of(row: Mapping[str, Any], detector: HallucinationDetector) -> Findings:
    """Everything about one of the episodes that `evaluate_file` gave, for pictures: its file is read again."""
    episodes = read_episodes(Path(row["file"]), detector.action_period_s)
    return detector.examine(next(episode for name, episode in episodes if name == row["name"]))


def detector_settings(detector: HallucinationDetector) -> dict[str, Any]:
    """The settings that all episodes share."""
    return asdict(detector)


def _as_row(path: Path, name: str, found: Findings, *, detail: bool) -> dict[str, Any]:
    row = {
        "file": str(path),
        "name": name,
        "meta": found.episode.meta,
        "agents": len(found.episode.ids),
        "steps_total": len(found.episode.t),
        "problems": list(found.episode.problems),
        "metrics": found.metrics,
        "mistakes": mistakes(found),
        "settings": found.settings,
    }
    return row | details(found) if detail else row
