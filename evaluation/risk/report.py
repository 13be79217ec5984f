"""The figures of `evaluate risk` as tables for a terminal, and as a plot (matplotlib, extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from watchkeeper.evaluation.risk.api import Rate, Risk

# Rows of a table of areas; the others are in the JSON.
AREAS = 12


def table(result: Risk) -> str:
    """Everything, for a terminal."""
    lines = [
        f"flight hours   {result.flight_hours:10,.1f}   {result.aircraft} aircraft",
        f"encounters     {result.encounters:10,d}   within twice the minima; {result.cut} cut off by the edge of view",
        "",
        "   times the minima   came closer            95 %   per flight hour",
        *(
            f"   {p.scaled:16.1f}   {100 * p.closer:9.2f} %   "
            f"{100 * p.closer_95[0]:5.2f} to {100 * p.closer_95[1]:6.2f}   {p.per_flight_hour:15.4f}"
            for p in result.curve
            if round(10 * p.scaled) % 2 == 0
        ),
    ]
    for title, rates in (
        ("losses of separation", [result.all]),
        ("by altitude", result.by_altitude),
        (f"by area (south, west){_most(result.by_area)}", _worst(result.by_area)),
        ("by hour of the day, UTC", result.by_hour),
    ):
        lines += ["", f"{title:28} flight hours   losses   per flight hour              95 %"]
        lines += [_line(rate) for rate in rates]
    return "\n".join(lines)


def _line(rate: Rate) -> str:
    low, high = rate.per_hour_95
    return (
        f"{rate.where:28} {rate.flight_hours:12,.2f}   {rate.losses:6,d}   {rate.per_hour:15.3f}   "
        f"{low:6.3f} to {high:6.3f}"
    )


def _worst(areas: Sequence[Rate]) -> list[Rate]:
    return sorted(areas, key=lambda rate: (-rate.losses, -rate.flight_hours, rate.where))[:AREAS]


def _most(areas: Sequence[Rate]) -> str:
    return f", {AREAS} of {len(areas)}" if len(areas) > AREAS else ""


def plot(result: Risk, path: Path) -> None:
    """The curve with its band, and the rates by hour of the day with their intervals."""
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra

    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    near, hours = figure.subplots(1, 2)
    x = [p.scaled for p in result.curve]
    near.fill_between(
        x, [p.closer_95[0] for p in result.curve], [p.closer_95[1] for p in result.curve], step=None, alpha=0.25,
        color="#0072b2", label="95 % band",
    )  # fmt: skip
    near.plot(x, [p.closer for p in result.curve], color="#0072b2", marker="o", ms=3.0, label="closer than that")
    near.axvline(1.0, color="black", lw=0.8, ls="--", label="the minima")
    near.set_yscale("log")
    near.set_xlabel("least separation, in units of the minima")
    near.set_ylabel("share of encounters")
    near.legend(fontsize="small")
    at = [int(rate.where) for rate in result.by_hour]
    middle = [rate.per_hour for rate in result.by_hour]
    low, high = ([rate.per_hour_95[end] for rate in result.by_hour] for end in (0, 1))
    ends = [[m - a for m, a in zip(middle, low, strict=True)], [b - m for m, b in zip(middle, high, strict=True)]]
    hours.errorbar(at, middle, yerr=ends, fmt="s", color="#d55e00", ms=4.0, lw=1.0, capsize=2.0)
    hours.set_xlabel("hour of the day, UTC")
    hours.set_ylabel("losses per flight hour")
    for axes in (near, hours):
        axes.grid(visible=True, lw=0.4, alpha=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
