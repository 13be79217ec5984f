"""The evaluation of the diagnosis in words: the agents compared, fault types, look-alikes. Text and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from watchkeeper.detectors.incidents.faults import Form
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics
from watchkeeper.evaluation.diagnosis.streamed import StreamedFigures
from watchkeeper.evaluation.shared.html import Picture, Table, Text, svg_of, write_page

NONE = "–"
# Name in the summary, name for people.
ROWS: tuple[tuple[str, str], ...] = (
    ("episodes", "episodes"),
    ("diagnosis_success_rate", "diagnosis success"),
    ("fault_type_macro_f1", "macro-F1"),
    ("fault_type_macro_f1_base", "macro-F1, base types"),
    ("location_accuracy", "location accuracy"),
    ("avg_steps", "steps"),
    ("avg_steps_per_device", "steps per device"),
    ("normalized_steps", "normalised steps"),
    ("cost_efficiency", "cost efficiency"),
    ("tool_cost_index", "tool cost index"),
    ("tool_error_rate", "tool error rate"),
    ("topology_coverage", "topology coverage"),
    ("evidence_sufficiency", "evidence sufficiency"),
    ("redundancy_rate", "redundancy"),
    ("composite_episode_score", "composite score"),
    ("avg_wall_time_seconds", "wall time [s]"),
)
# Faults that look alike until the right tool is asked, each as (name, form, the fault type it is mistaken for).
LOOK_ALIKES: tuple[tuple[str, Form, str], ...] = (
    ("dead device, taken for a cut link", Form.DEAD, "link_failure"),
    ("cut link, taken for a dead device", Form.CUT, "device_failure"),
    ("slow link, taken for a wrong clock", Form.LATENCY, "misconfiguration"),
    ("wrong clock, taken for a slow link", Form.CLOCK, "performance_degradation"),
    ("spoofing, taken for a wrong frame", Form.SPOOF, "misconfiguration"),
    ("wrong frame, taken for spoofing", Form.FRAME, "gps_spoofing"),
)


class Episode(Protocol):
    """One episode, simulated or streamed; streamed ones without a fault have no metrics."""

    @property
    def form(self) -> str:
        """The form of its fault."""
        ...

    @property
    def metrics(self) -> EpisodeMetrics | None:
        """How it went."""
        ...


class LookAlike(msgspec.Struct, frozen=True):
    """How often one fault is taken for the one that it looks like."""

    name: str
    episodes: int
    confused: int


def look_alikes(played: Sequence[Episode]) -> list[LookAlike]:
    """The confusions of faults that look alike."""
    found = []
    for name, form, mistaken in LOOK_ALIKES:
        own = [p.metrics for p in played if p.form == form.word and p.metrics is not None]
        found.append(LookAlike(name, len(own), sum(m.predicted_type == mistaken for m in own)))
    return found


def agents_table(summaries: Mapping[str, Mapping[str, Any]]) -> Table:
    """A metric a line, an agent a column."""
    rows = [[label, *(figure(s[name]) for s in summaries.values())] for name, label in ROWS]
    return Table("averages weighted by network size", ["", *summaries], rows)


def types_table(summary: Mapping[str, Any]) -> Table:
    """A fault type a line."""
    rows = [
        [name, *(figure(row[key]) for key in ("episodes", "success_rate", "location_accuracy", "avg_steps"))]
        for name, row in summary["per_fault_type"].items()
    ]
    return Table("by fault type, unweighted", ["", "episodes", "success", "location", "steps"], rows)


def confusion_table(summary: Mapping[str, Any]) -> Table:
    """Truth a line, diagnosis a column."""
    matrix = summary["confusion_matrix"]
    columns = list(next(iter(matrix.values()), {}))
    return Table(
        "truth, and what it was taken for", ["", *columns], [[t, *map(str, row.values())] for t, row in matrix.items()]
    )


def look_alike_table(found: Sequence[LookAlike]) -> Table:
    """A direction of confusion a line."""
    rows = [
        [x.name, str(x.episodes), str(x.confused), figure(x.confused / x.episodes if x.episodes else None)]
        for x in found
    ]
    return Table("faults that look alike", ["", "episodes", "confused", "share"], rows)


def streamed_table(f: StreamedFigures) -> Table:
    """What only streamed episodes have: times and incidents."""
    rows = [
        ["fault to incident, median [s]", figure(f.alarmed_median_s)],
        ["fault to right diagnosis, median [s]", figure(f.found_median_s)],
        ["fault to right diagnosis, 95th percentile [s]", figure(f.found_p95_s)],
        ["truth among the diagnosis and its alternatives", figure(f.named_share)],
        ["faults without an incident", figure(f.no_incident)],
        ["faults with more than one incident", figure(f.more_than_one_incident)],
        ["episodes without a fault", figure(f.clean_episodes)],
        ["incidents in those", figure(f.clean_incidents)],
    ]
    return Table("times and incidents", ["", ""], rows)


def as_text(table: Table) -> str:
    """A table in columns."""
    cells = [list(table.head), *map(list, table.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.head))]
    lines = [
        "".join(
            cell.ljust(w) if i == 0 else cell.rjust(w + 3) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join((f"{table.caption}:", *(line.rstrip() for line in lines)))


def write_report(path: Path, title: str, tables: Sequence[Table], summary: Mapping[str, Any]) -> None:
    """The page: all tables and the confusion matrix as a picture (extra `plots`)."""
    from watchkeeper.evaluation.diagnosis.plots import confusion_figure  # noqa: PLC0415 - needs the extra

    picture = svg_of(confusion_figure(summary["confusion_matrix"], title), title)
    note = Text(
        "Steps are the valid actions, the diagnosis included. docs/evaluation/diagnosis.md defines every figure."
    )
    write_page(path, title, [note, *tables, Picture("Truth (lines) and diagnosis (columns)", picture)])


def figure(value: float | None) -> str:
    """A number for people: counts whole, shares to three digits."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
