"""`watchkeeper.evaluate.diagnosis`: does the diagnoser name the right fault at the right place, and at what cost?

Plays seeded episodes on simulated telemetry networks with our diagnoser and with baselines (play.py, extra `gym`), or
injects faults into simulated telemetry and lets the whole pipeline find them (streamed.py). command.py is the same from
a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from watchkeeper.evaluation.diagnosis import report
from watchkeeper.evaluation.diagnosis.metrics import CompetitionEvaluator, EpisodeMetrics
from watchkeeper.evaluation.diagnosis.streamed import StreamedFigures, StreamedTask, figures, stream
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.streams.frames.write import FLAG, NUMBER, TEXT, Backend, rows_frame

EPISODES, STREAMED_EPISODES = 1000, 200
STREAMED = "streamed"
_TYPES = {"bool": FLAG, "str": TEXT}
COLUMNS = {
    **dict.fromkeys(("agent", "form"), TEXT),
    **{name: _TYPES.get(str(kind), NUMBER) for name, kind in EpisodeMetrics.__annotations__.items()},
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All episodes, and a summary per agent. `streamed` has the figures of streamed episodes, else None."""

    settings: dict[str, Any]
    played: list[Any]
    summaries: dict[str, dict[str, Any]]
    streamed: StreamedFigures | None = None

    def of(self, agent: str) -> list[Any]:
        """The episodes of one agent."""
        return [played for played in self.played if played.agent == agent]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per episode with a fault: agent, form of the fault, and the metrics."""
        rows = [
            {"agent": p.agent, "form": p.form, **msgspec.to_builtins(p.metrics)}
            for p in self.played
            if p.metrics is not None
        ]
        return rows_frame(rows, COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """Summaries and every episode, ready for JSON: what `--out` writes."""
        episodes = msgspec.to_builtins(self.played)
        if self.streamed is not None:
            return {
                "settings": self.settings,
                "summary": self.summaries[STREAMED],
                "streamed": msgspec.to_builtins(self.streamed),
                "look_alikes": msgspec.to_builtins(report.look_alikes(self.played)),
                "episodes": episodes,
            }
        return {
            "settings": self.settings,
            "agents": self.summaries,
            "look_alikes": {name: msgspec.to_builtins(report.look_alikes(self.of(name))) for name in self.summaries},
            "episodes": episodes,
        }


def diagnosis(
    *,
    episodes: int | None = None,
    seed: int = 2026,
    devices: tuple[int, int] = (4, 200),
    agents: Sequence[str] | None = None,
    streamed: bool = False,
    port_reports: bool = True,
    clean: int = 50,
    jobs: int = 0,
    quiet: bool = True,
) -> Diagnosis:
    """Play troubleshooting episodes and measure how often fault type and location are right, and what it cost.

    Without `streamed`: `episodes` (1000) networks of `devices` devices for each of `agents` (our diagnoser and the
    baselines); needs the extra `gym`. With it: `episodes` (200) faults in telemetry that runs through the pipeline, and
    `clean` ones without; `port_reports` off mutes the devices' reports on their ports.

    >>> import watchkeeper as wk
    >>> result = wk.evaluate.diagnosis(episodes=3, seed=1, devices=(4, 10), agents=["watchkeeper"])
    >>> result.to_frame("polars")["agent"].to_list()
    ['watchkeeper', 'watchkeeper', 'watchkeeper']
    """
    if streamed:
        return _streamed(episodes or STREAMED_EPISODES, seed, clean, jobs, port_reports=port_reports, quiet=quiet)
    if problem := missing_extra("evaluate diagnosis", "gymnasium", "gym"):
        raise ImportError(problem)
    # needs the extra
    from watchkeeper.evaluation.diagnosis.network import SIZE_MAX, SIZE_MIN  # noqa: PLC0415
    from watchkeeper.evaluation.diagnosis.play import AGENTS, Task, play  # noqa: PLC0415

    low, high = devices
    if not SIZE_MIN <= low <= high <= SIZE_MAX:
        raise EvaluationError(f"devices {low} {high}: expected {SIZE_MIN} <= MIN <= MAX <= {SIZE_MAX}")
    names = list(AGENTS) if agents is None else list(agents)
    if unknown := [name for name in names if name not in AGENTS]:
        raise EvaluationError(f"agents: {unknown[0]!r} is none of {', '.join(AGENTS)}")
    count = episodes or EPISODES
    tasks = [Task(name, seed, i, low, high) for name in names for i in range(count)]
    played = counted(play, tasks, "diagnosing", jobs=jobs, hidden=quiet)
    summaries = {
        name: CompetitionEvaluator(p.metrics for p in played if p.agent == name).compute_summary() for name in names
    }
    return Diagnosis({"episodes": count, "seed": seed, "devices": [low, high]}, played, summaries)


def _streamed(episodes: int, seed: int, clean: int, jobs: int, *, port_reports: bool, quiet: bool) -> Diagnosis:
    mute = not port_reports
    tasks = [StreamedTask(seed, i, True, mute) for i in range(episodes)]
    tasks += [StreamedTask(seed, i, False, mute) for i in range(clean)]
    played = counted(stream, tasks, "streaming", jobs=jobs or (2 if len(tasks) > 20 else 1), hidden=quiet)
    summary = CompetitionEvaluator(p.metrics for p in played if p.metrics is not None).compute_summary()
    settings = {"episodes": episodes, "clean": clean, "seed": seed, "port_reports": port_reports}
    return Diagnosis(settings, played, {STREAMED: summary}, figures(played))
