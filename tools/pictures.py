"""docs/images/detectors: the score of each detector while its own scenario plays, and the alarm that it raises.

    python -m tools.pictures              all of them
    python -m tools.pictures silence      one

`make pictures` runs it. Times are seconds since the first sample of the scenario, scores are divided by the threshold:
what is at or above 1 counts towards an alarm. Of all alarms of a kind the one that lasts longest is drawn.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.pipeline import Pipeline

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "detectors"
# Scores beyond this are drawn at the edge: how far beyond says little, and hides what is near the threshold.
MOST = 4.0
SCORE, LIMIT, ALARM = "#00796b", "#c62828", "#ef6c00"


@dataclass(slots=True)
class Played:
    """What one kind did while a scenario played."""

    start_t: float
    end_t: float = 0.0
    # subject -> times, and scores over their thresholds
    scores: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    alarms: dict[str, list[AlarmEvent]] = field(default_factory=dict)

    def longest(self) -> list[AlarmEvent]:
        """The events of the alarm to be drawn."""
        return max(self.alarms.values(), key=lambda events: (self.until(events) - events[0].t, events[0].id))

    def until(self, events: Sequence[AlarmEvent]) -> float:
        """When this alarm ended, or the scenario."""
        return events[-1].t if events[-1].state == "cleared" else self.end_t


def play(name: str) -> Played:
    """The scenario of a detector through the pipeline, as it is without a configuration."""
    batches = list(REGISTRY[name].declaration.scenario.batches())
    kind = REGISTRY[name].declaration.kinds[0].name
    first = min(float(cols.t.min()) for batch in batches for cols in batch.kinds.values() if len(cols))
    played = Played(first)
    pipeline = Pipeline(DEFAULT, every_tick=True)

    def keep(_window: Window, evidence: list[Evidence]) -> None:
        ids = pipeline.fleet.ids
        for found in (each for each in evidence if each.kind == kind):
            names = found.places or ids
            others = [""] * len(found) if found.b is None else [f"~{ids[b]}" for b in found.b.tolist()]
            for row, (a, other) in enumerate(zip(found.a.tolist(), others, strict=True)):
                point = float(found.t[row]), float(found.score[row] / found.threshold[row])
                played.scores.setdefault(names[a] + other, []).append(point)

    pipeline.on_evidence = keep
    for batch in batches:
        for event in pipeline.feed(batch):
            if event.kind == kind:
                played.alarms.setdefault(event.id, []).append(event)
    played.end_t = max(float(cols.t.max()) for batch in batches for cols in batch.kinds.values() if len(cols))
    return played


def draw(played: Played) -> Figure:
    """One picture."""
    events = played.longest()
    subject = "~".join(events[0].subjects)
    points = np.array(sorted(played.scores[subject]))
    figure = Figure(figsize=(8.0, 2.9), layout="constrained")
    axes = figure.subplots()
    raised, until = events[0].t - played.start_t, played.until(events) - played.start_t
    axes.axvspan(raised, until, color=ALARM, alpha=0.18, lw=0, label="alarm")
    axes.axhline(1.0, color=LIMIT, lw=1.2, ls="--", label="threshold")
    axes.plot(
        points[:, 0] - played.start_t, np.minimum(points[:, 1], MOST), ".-", color=SCORE, lw=1, ms=3, label="score"
    )
    axes.set(
        xlabel="seconds", ylabel="score / threshold", xlim=(0.0, played.end_t - played.start_t), ylim=(0.0, MOST * 1.02)
    )
    axes.set_title("\n".join(textwrap.wrap(events[0].say, 105)), fontsize=8.5, loc="left")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(names: Sequence[str]) -> int:
    """Draw these detectors, or all."""
    mpl.rcParams |= {
        "svg.hashsalt": "watchkeeper",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9.0,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names or REGISTRY:
        path = OUT / f"{name}.svg"
        draw(play(name)).savefig(path, metadata={"Date": None})
        print(f"{path.stat().st_size:8,d} {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
