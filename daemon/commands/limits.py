"""`watchkeeper limits LOG…`: limits of signals from flights that went well, as tables for the configuration.

They are judged from the first value of a vehicle on, when nothing is known of its own past yet; and being part of the
configuration, they are the same on every machine that judges a part of the fleet.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.signal.presets import PRESETS
from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.exits import exits, fail
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import open_log, read_logs
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.signals import matcher, names_in

HELP = """\
Learn limits of signals from logs of flights that went well: [[detectors.signal.limits]] for a configuration. Signals
that a preset has limits for are left out, and so are states, which have few values."""
EXAMPLES = """\
examples:
  watchkeeper limits good/*.ulg -c fleet.toml >> fleet.toml
"""
# Fewer values, or fewer different ones, say nothing about what else a number may be.
VALUES_MIN, DIFFERENT_MIN = 200, 20
# So much of the span of what was seen is added on either side: another flight goes farther than those that were seen.
MARGIN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("logs", metavar="LOG", type=Path, nargs="+", help="logs of flights that went well")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--margin", type=float, default=MARGIN, metavar="SHARE",
                        help=f"of the span that was seen, added on either side (default {MARGIN})")  # fmt: skip


@exits
def main(args: argparse.Namespace) -> int:
    """Learn and print; the exit code."""
    config = load(args.config)
    sources = [open_log(path, config.recordings) for path in args.logs]
    values: dict[str, list[F8]] = {}
    for batch in shown(read_logs(sources), sources, "reading"):
        if (cols := batch.kinds.get(Kind.SIGNAL)) is None:
            continue
        names = np.array(names_in(cols.data[SIGNAL.name_0 :]), object)
        for name in sorted(set(names.tolist())):
            values.setdefault(name, []).append(cols.data[SIGNAL.value, names == name])
    found = {name: np.concatenate(parts) for name, parts in sorted(values.items()) if _of_interest(name, config)}
    tables = [_table(name, x, args.margin, armed="armed" in values) for name, x in found.items() if _tells(x)]
    if not tables:
        return fail("no signal in it that a limit could be learned of")
    print(f"# learned by `watchkeeper limits` from {', '.join(path.name for path in args.logs)}")
    sys.stdout.write("\n".join(tables))
    return 0


def _of_interest(name: str, config: Config) -> bool:
    cfg = config.detectors.signal
    known = [pattern for word in cfg.presets for limit in PRESETS[word] for pattern in limit.names]
    known += [pattern for limit in cfg.limits for pattern in limit.names] + list(cfg.limits_only)
    return name not in ("armed", "mode") and not matcher(known).fullmatch(name)


def _tells(x: F8) -> bool:
    return len(x) >= VALUES_MIN and len(np.unique(x)) >= DIFFERENT_MIN


def _table(name: str, x: F8, margin: float, *, armed: bool) -> str:
    low, high = float(x.min()), float(x.max())
    more = margin * (high - low)
    lines = [f'[[detectors.signal.limits]]\nnames = ["{name}"]']
    # what never was below zero is a size, and stays one
    lines.append(f"low = {_number(max(low - more, 0.0) if low >= 0.0 else low - more)}\nhigh = {_number(high + more)}")
    return "\n".join([*lines, *(["armed = true"] if armed else []), ""])


def _number(x: float) -> str:
    """A number as TOML has it, which wants a digit behind the point."""
    text = f"{x:.6g}"
    return text if set(text) & set(".e") else f"{text}.0"
