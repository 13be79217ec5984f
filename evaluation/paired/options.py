"""Arguments of every command that makes paired tests and bootstrap intervals."""

from __future__ import annotations

import argparse

from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED
from watchkeeper.evaluation.shared.arguments import number, whole


def add_tests(parser: argparse.ArgumentParser) -> None:
    """`--alpha`, and seed and number of the resamples."""
    parser.add_argument(
        "--alpha", type=number("a level", 0.0, 0.5, open_at_lo=True), default=ALPHA,
        help=f"level of the tests, and 1 minus that of the interval (default {ALPHA:g})",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole(0), default=SEED, help=f"of the bootstrap (default {SEED})")
    parser.add_argument("--resamples", type=whole(100), default=RESAMPLES, help=f"(default {RESAMPLES})")
