"""`watchkeeper inject ATTACK LOG OUT`: an attack of the catalogue into a log.

evaluation/attacks/command.py does the work. It is loaded by name, because the daemon and
the evaluation do not depend on each other.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from watchkeeper.streams.logs.exits import exits

HELP = "Put an attack or a fault into a log. The same seed gives the same bytes; OUT.truth.json says what and when."
EXAMPLES = """\
examples:
  watchkeeper inject list                                              all attacks, with magnitude and meaning
  watchkeeper inject gps_drift_2mps flight.wklog spoofed.wklog
  watchkeeper inject gps_bias_20m fleet.wklog out.wklog --id quad-01 --onset 120 --duration 60
  watchkeeper replay spoofed.wklog                                     see it found

docs/evaluation/attacks.md describes every family.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    import_module("watchkeeper.evaluation.attacks.command").add_arguments(parser)


@exits
def main(args: argparse.Namespace) -> int:
    """Inject; the exit code."""
    return int(import_module("watchkeeper.evaluation.attacks.command").main(args))
