"""`watchkeeper.evaluate.diagnosis`: does the diagnoser name the right fault at the right place, and at what cost?

Plays a set of episodes (episodes.py) on simulated telemetry networks with our diagnoser, with baselines and with
agents of others (play.py, extra `gym`), or injects faults into simulated telemetry and lets the whole pipeline find
them (streamed.py). command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.evaluation.diagnosis import report
from watchkeeper.evaluation.diagnosis.episodes import EpisodeSet, draw_set, read_set
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics
from watchkeeper.evaluation.diagnosis.simulated.network import SIZE_MAX, SIZE_MIN
from watchkeeper.evaluation.diagnosis.streamed import StreamedFigures, StreamedTask, figures, stream
from watchkeeper.evaluation.diagnosis.summary import CompetitionEvaluator
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
    """All episodes, and a summary per agent. `streamed` has the figures of streamed episodes, else None.

    `fingerprint` is that of the set of episodes, None for streamed ones. Of a `frozen` set, one from a file, `to_dict`
    has no wall times, so that the same set gives the same bytes.
    """

    settings: dict[str, Any]
    played: list[Any]
    summaries: dict[str, dict[str, Any]]
    streamed: StreamedFigures | None = None
    fingerprint: str | None = None
    frozen: bool = False

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
        agents = self.summaries
        if self.frozen:
            agents = {name: {**summary, "avg_wall_time_seconds": None} for name, summary in agents.items()}
            for episode in episodes:
                episode["metrics"]["wall_time_seconds"] = None
        return {
            "settings": self.settings,
            "agents": agents,
            "look_alikes": {name: msgspec.to_builtins(report.look_alikes(self.of(name))) for name in self.summaries},
            "episodes": episodes,
        }


def diagnosis(
    *,
    episodes: int | None = None,
    seed: int = 2026,
    devices: tuple[int, int] = (4, 200),
    cycles: float = 0.5,
    frozen: str | Path | None = None,
    agents: Sequence[str] | None = None,
    outside: Mapping[str, str] | None = None,
    streamed: bool = False,
    port_reports: bool = True,
    clean: int = 50,
    jobs: int = 0,
    quiet: bool = True,
) -> Diagnosis:
    """Play troubleshooting episodes and measure how often fault type and location are right, and what it cost.

    Without `streamed`: `episodes` (1000) networks of `devices` devices, a share `cycles` of them with standby links,
    or the set in the file `frozen`; for each of `agents` (our diagnoser and the baselines) and for agents from
    `outside`, by name, each as module:name of what makes it from an action space. Needs the extra `gym`. With it:
    `episodes` (200) faults in telemetry that runs through the pipeline, and `clean` ones without; `port_reports` off
    mutes the devices' reports on their ports.

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
    from watchkeeper.evaluation.diagnosis.play import AGENTS, Task, maker_of, play  # noqa: PLC0415

    others = dict(outside or {})
    names = list(AGENTS) if agents is None else list(agents)
    if unknown := [name for name in names if name not in AGENTS]:
        raise EvaluationError(f"agents: {unknown[0]!r} is none of {', '.join(AGENTS)}")
    if taken := [name for name in others if name in AGENTS]:
        raise EvaluationError(f"agent {taken[0]!r}: the name of one of ours")
    for where in others.values():
        maker_of(where)
    played_on = draw_episodes(episodes, seed, devices, cycles) if frozen is None else read_set(Path(frozen))
    makers = {**dict.fromkeys(names, ""), **others}
    tasks = [Task(name, one, i, where) for name, where in makers.items() for i, one in enumerate(played_on.episodes)]
    played = counted(play, tasks, "diagnosing", jobs=jobs, hidden=quiet)
    summaries = {
        name: CompetitionEvaluator(p.metrics for p in played if p.agent == name).compute_summary() for name in makers
    }
    settings = {
        "episodes": len(played_on.episodes), "seed": played_on.seed, "devices": list(played_on.devices),
        "cycles": played_on.cycles, "set": played_on.fingerprint,
    }  # fmt: skip
    return Diagnosis(settings, played, summaries, fingerprint=played_on.fingerprint, frozen=frozen is not None)


def draw_episodes(episodes: int | None, seed: int, devices: tuple[int, int], cycles: float) -> EpisodeSet:
    """A set of episodes (1000), as `diagnosis` draws it. Raises EvaluationError."""
    low, high = devices
    if not SIZE_MIN <= low <= high <= SIZE_MAX:
        raise EvaluationError(f"devices {low} {high}: expected {SIZE_MIN} <= MIN <= MAX <= {SIZE_MAX}")
    if not 0.0 <= cycles <= 1.0:
        raise EvaluationError(f"cycles {cycles}: expected a share from 0 to 1")
    if seed < 0:
        raise EvaluationError(f"seed {seed}: expected a whole number from 0")
    return draw_set(seed, episodes or EPISODES, (low, high), cycles)


def _streamed(episodes: int, seed: int, clean: int, jobs: int, *, port_reports: bool, quiet: bool) -> Diagnosis:
    mute = not port_reports
    tasks = [StreamedTask(seed, i, True, mute) for i in range(episodes)]
    tasks += [StreamedTask(seed, i, False, mute) for i in range(clean)]
    played = counted(stream, tasks, "streaming", jobs=jobs or (2 if len(tasks) > 20 else 1), hidden=quiet)
    summary = CompetitionEvaluator(p.metrics for p in played if p.metrics is not None).compute_summary()
    settings = {"episodes": episodes, "clean": clean, "seed": seed, "port_reports": port_reports}
    return Diagnosis(settings, played, {STREAMED: summary}, figures(played))
