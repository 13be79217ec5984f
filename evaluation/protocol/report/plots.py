"""Plots of the protocol's result as PNG bytes. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from watchkeeper.evaluation.attacks.catalogue import catalogue
from watchkeeper.evaluation.protocol.figures import AttackFigures, GroupFigures
from watchkeeper.evaluation.protocol.splits import MIXED
from watchkeeper.evaluation.protocol.study import Result

OURS, PEER, BAD, GREY = "#0072b2", "#999999", "#d55e00", "#cccccc"


def recall_by_attack(ours: GroupFigures, peer: GroupFigures) -> bytes:
    """Recall at 1 % of every attack, worst first, with intervals, compared with the innovation test."""
    rows = sorted(ours.attacks, key=lambda row: (row.epoch.recall_1 or 0.0, row.epoch.auroc or 0.0), reverse=True)
    peers = {row.attack: row for row in peer.attacks}
    figure = Figure(figsize=(8.0, 1.2 + 0.17 * len(rows)), layout="constrained")
    axes = figure.subplots()
    y = range(len(rows))
    recall = [100.0 * (row.epoch.recall_1 or 0.0) for row in rows]
    axes.barh(y, recall, height=0.6, color=[BAD if r < 50.0 else OURS for r in recall], label="epochs found")
    for at, row in enumerate(rows):
        if row.epoch.recall_1_95:
            axes.plot([100.0 * x for x in row.epoch.recall_1_95], [at, at], color="black", lw=0.7)
    alarmed = [100.0 * (row.event.alarm_recall or 0.0) for row in rows]
    axes.plot(alarmed, y, "D", color="black", ms=2.5, label="cases with an alarm")
    theirs = [100.0 * (peers[row.attack].epoch.recall_1 or 0.0) for row in rows]
    axes.plot(theirs, y, "|", color=PEER, ms=7.0, mew=2.0, label="innovation test, epochs found")
    axes.axvline(50.0, color="black", lw=0.6, ls=":")
    axes.set_yticks(y, [row.attack for row in rows], fontsize="x-small")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(0.0, 101.0)
    axes.set_xlabel("recall at a nominal false-positive rate of 1 % [%]")
    axes.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return _png(figure, axes)


def false_positives(ours: GroupFigures, peer: GroupFigures) -> bytes:
    """Realised false-positive rate of each held-out flight at a nominal 1 %."""
    figure = Figure(figsize=(7.0, 1.4 + 0.3 * len(ours.flights)), layout="constrained")
    axes = figure.subplots()
    floor = 0.02
    axes.axvspan(0.5, 2.0, color="#e8f1f7", zorder=0)
    axes.axvline(1.0, color="black", lw=0.6, ls=":")
    for found, colour, marker, label in ((peer, PEER, "s", "innovation test"), (ours, OURS, "o", "watchkeeper")):
        rates = [max(100.0 * (f.fpr_1 or 0.0), floor) for f in found.flights]
        axes.plot(rates, range(len(rates)), marker, color=colour, label=label)
    axes.set_yticks(range(len(ours.flights)), [f.flight for f in ours.flights])
    axes.set_ylim(-0.6, len(ours.flights) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(floor * 0.8, 100.0)
    ticks = [floor, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0]
    axes.set_xticks(ticks, [f"≤{floor:g}", *(f"{x:g}" for x in ticks[1:])])
    axes.minorticks_off()
    axes.set_xlabel("realised false-positive rate at a nominal 1 % [%]; the band is 0.5 to 2 %")
    axes.legend(fontsize="small", frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return _png(figure, axes)


def by_magnitude(result: Result) -> bytes:
    """Alarm recall over magnitude, a panel per family with three sizes or more; the smallest detectable one marked."""
    families: dict[str, list[AttackFigures]] = {}
    for row in result.groups[MIXED].attacks:
        families.setdefault(row.family, []).append(row)
    shown = {name: sorted(rows, key=lambda r: r.magnitude) for name, rows in families.items() if len(rows) >= 3}
    limits = {d.family: d.magnitude for d in result.minimum_detectable}
    columns = 4
    height = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(10.0, 1.9 * height + 0.4), layout="constrained")
    panels = figure.subplots(height, columns, squeeze=False, sharey=True).ravel()
    for axes, (name, rows) in zip(panels, shown.items(), strict=False):
        sizes = [row.magnitude for row in rows]
        axes.plot(sizes, [100.0 * (r.event.alarm_recall or 0.0) for r in rows], "D-", color="black", ms=3.0, lw=1.0)
        axes.plot(sizes, [100.0 * (r.epoch.recall_1 or 0.0) for r in rows], "o-", color=OURS, ms=3.0, lw=1.0)
        if limits.get(name):
            axes.axvline(limits[name], color=BAD, lw=1.0, ls="--")
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(-4.0, 104.0)
        axes.set_title(f"{name} [{catalogue().families[name].unit}]", fontsize="small")
        axes.tick_params(labelsize="x-small")
        _plain(axes)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    figure.supylabel("found [%]", fontsize="small")
    handles = panels[0].get_lines()[:2]
    figure.legend(
        handles, ["cases with an alarm", "epochs at 1 %"], loc="outside upper center", ncols=2, fontsize="small",
        frameon=False,
    )  # fmt: skip
    return _png(figure)


def latency(figures: GroupFigures) -> bytes:
    """Median latency of the alarms, over the attacks of which at least half were found."""
    rows = [row for row in figures.attacks if (row.event.alarm_recall or 0.0) >= 0.5 and row.event.alarm_latency_ms]
    rows.sort(key=lambda row: row.event.alarm_latency_ms or 0.0, reverse=True)
    figure = Figure(figsize=(8.0, 1.0 + 0.17 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(rows)), [(row.event.alarm_latency_ms or 0.0) / 1000.0 for row in rows], color=OURS, height=0.6)
    axes.set_yticks(range(len(rows)), [row.attack for row in rows], fontsize="x-small")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("median time from onset to alarm [s]")
    return _png(figure, axes)


def pictures(result: Result) -> Sequence[tuple[str, bytes]]:
    """All plots with their captions."""
    mixed, peer = result.groups[MIXED], result.baseline[MIXED]
    return (
        ("Recall of every attack, the worst on top", recall_by_attack(mixed, peer)),
        ("False positives on flights that calibrated nothing", false_positives(mixed, peer)),
        ("What is found at which magnitude; dashed: minimum detectable", by_magnitude(result)),
        ("How long it takes", latency(mixed)),
    )


def _plain(axes: Any) -> None:
    axes.grid(visible=True, axis="x", lw=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _png(figure: Figure, axes: Any = None) -> bytes:
    if axes is not None:
        _plain(axes)
    out = BytesIO()
    # without the version of matplotlib in it, so that the same figures are the same bytes
    figure.savefig(out, dpi=110, format="png", metadata={"Software": None})
    return out.getvalue()
