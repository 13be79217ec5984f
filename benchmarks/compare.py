"""Two daemons under the same load, in turns: what a change costs in CPU and in latency.

    watchkeeper bench live --compare-with ../before/src --rate 5000 --rounds 5
    watchkeeper bench live --compare-without-state --rate 5000

The other daemon is another checkout of this project (its `src` folder, its default transport), or this one without a
state directory: no journal, no snapshots and no input log. Each round runs both, in changing order, each behind a
broker of its own. A ratio is that of one round; the table has the median over the rounds and their range.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# The promise: CPU and latency of this daemon next to the other.
RATIO_LIMIT = 1.3


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run showed."""

    cpu_us: float
    p50_ms: float
    p99_ms: float
    whole: bool
    """Nothing was lost, and every alarm came."""


def cost_of(result: Any) -> Cost:
    """The figures of a live.Result."""
    p50, p99 = np.percentile(result.latencies_ms or [np.nan], (50, 99))
    cpu_us = 1e4 * result.cpu_percent * result.seconds / result.sent
    whole = result.accepted == result.sent and len(result.latencies_ms) == result.probes
    return Cost(cpu_us, float(p50), float(p99), whole)


def other(options: argparse.Namespace) -> argparse.Namespace:
    """The options of the daemon to compare with."""
    changed = {"transport": "", "src": options.compare_with} if options.compare_with else {"state": False}
    return argparse.Namespace(**{**vars(options), **changed})


async def measure(
    options: argparse.Namespace, run: Callable[[argparse.Namespace], Awaitable[Any]]
) -> list[tuple[Cost, Cost]]:
    """Both daemons, round by round: this one first."""
    rounds = []
    for number in range(options.rounds):
        pair: dict[bool, Cost] = {}
        for ours in (True, False) if number % 2 else (False, True):
            pair[ours] = cost_of(await run(options if ours else other(options)))
            print(f"round {number + 1}, {'this' if ours else 'other'}: {pair[ours]}", flush=True)
        rounds.append((pair[True], pair[False]))
    return rounds


def _spread(values: list[float], form: str) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def ratios(rounds: list[tuple[Cost, Cost]], name: str) -> list[float]:
    """The figure of this daemon over that of the other, for each round."""
    return [getattr(this, name) / getattr(that, name) for this, that in rounds]


def table(options: argparse.Namespace, rounds: list[tuple[Cost, Cost]]) -> str:
    """The rounds as a table."""
    against = options.compare_with or "without a state directory"
    lines = [f"{options.rate:,.0f} msg/s for {options.seconds:g} s, {len(rounds)} rounds, compared with {against}"]
    lines.append(f"{'':16} {'other':26} {'this':26} ratio")
    for name, title, form in (
        ("cpu_us", "CPU, us/message", ".1f"), ("p50_ms", "p50, ms", ".1f"), ("p99_ms", "p99, ms", ".1f")
    ):  # fmt: skip
        this, that = ([getattr(pair[i], name) for pair in rounds] for i in (0, 1))
        cells = _spread(that, form), _spread(this, form), _spread(ratios(rounds, name), ".2f")
        lines.append(f"{title:16} {cells[0]:26} {cells[1]:26} {cells[2]}")
    return "\n".join(lines)


def good(rounds: list[tuple[Cost, Cost]]) -> bool:
    """Whether nothing was lost here and no median ratio is over the limit."""
    medians = [statistics.median(ratios(rounds, name)) for name in ("cpu_us", "p50_ms", "p99_ms")]
    return all(this.whole for this, _ in rounds) and max(medians) <= RATIO_LIMIT
