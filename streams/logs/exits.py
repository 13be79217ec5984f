"""Exit codes of the commands that work on logs: what went wrong becomes one line on standard error and a code."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence

from watchkeeper.config.loader import ConfigError
from watchkeeper.config.masking import masked
from watchkeeper.streams.logs.base import LogError, Source, TargetError

FAILED, USAGE, INTERRUPTED = 1, 2, 130
Main = Callable[[argparse.Namespace], int]


def exits(main: Main) -> Main:
    """Decorates a command's main: a bad log or file is 1, a wrong name 2, a bad configuration 78, Ctrl-C 130."""

    @functools.wraps(main)
    def guarded(args: argparse.Namespace) -> int:
        try:
            return main(args)
        except ConfigError as error:
            print(error, file=sys.stderr)
            return os.EX_CONFIG
        except TargetError as error:
            return fail(str(error), USAGE)
        except LogError as error:
            return fail(str(error))
        except BrokenPipeError:
            raise  # a reader that went away is the command line's business
        except OSError as error:
            return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except KeyboardInterrupt:
            return INTERRUPTED

    return guarded


def fail(problem: str, code: int = FAILED) -> int:
    """Say what went wrong; the exit code to return."""
    print(f"watchkeeper: {masked(problem)}", file=sys.stderr)
    return code


def warn(sources: Sequence[Source]) -> None:
    """Say on standard error what was wrong with the logs that were read."""
    for info in (source.info() for source in sources):
        for problem in info.problems:
            print(f"watchkeeper: {info.path}: {problem}", file=sys.stderr)
