"""Which writer makes which file: the targets of all adapters (streams/adapters/catalog.py). Readers: source.py.

    target_of(path, to) -> Target          by `--to`, otherwise by the ending of the name
    write_log(path, batches) -> Writer     the whole of a log, in one step: see whole.py

`convert`, `simulate` and `inject` write through here, so that a name always means what it says. `record` writes a log
that grows under its name, and asks `target_of` whether it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import targets
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import ALARMS, COLUMNS, ORIGIN, POINTS, LogError, Origin, Target, TargetError, Writer
from watchkeeper.streams.logs.flat import columns_in_use
from watchkeeper.streams.logs.whole import whole

# Gives the samples of a log from its beginning; the word says what is being done, for a progress bar.
Batches = Callable[[str], Iterable[Batch]]


def target_of(path: Path, to: str = "", *, only: str = "") -> Target:
    """What to write under this name: `to`, otherwise what its ending says. Raises TargetError.

    `only` names the one target that will do.
    """
    known = [target for target in targets() if target.name == only or not only]
    if to:
        if found := next((target for target in known if target.name == to), None):
            return found
        raise TargetError(path, f"cannot be written as {to!r}; known are {', '.join(t.name for t in known)}")
    name = path.name.lower()
    if found := next((target for target in known if name.endswith(target.suffixes)), None):
        return found
    endings = ", ".join(suffix for target in known for suffix in target.suffixes)
    raise TargetError(path, f"its ending does not say what to write; known endings are {endings}")


def check(
    path: Path, *, to: str = "", alarms: Path | None = None, points: bool = False, origin: Origin | None = None
) -> tuple[Target, dict[str, Any]]:
    """The target of a file, and the options that it takes: to be asked before long work begins.

    Raises TargetError for an ending or an option that cannot be, LogError when a library is missing.
    """
    target = target_of(path, to)
    given = {ALARMS: alarms, POINTS: points, ORIGIN: origin}
    for option, value in given.items():
        if value and option not in target.takes:
            able = ", ".join(other.name for other in targets() if option in other.takes)
            raise TargetError(path, f"--{option}: {target.name} has no use for it; these have: {able}")
    for module, package in target.needs.items():
        if find_spec(module) is None:
            raise LogError(path, f'a file of type {target.name} needs {package}: pip install "{target.extra}"')
    return target, {option: value for option, value in given.items() if option in target.takes}


def write_log(path: Path, batches: Batches, **asked: Any) -> Writer:
    """Write a log; the closed writer. The file is there when it is whole, and not before. Raises LogError.

    `asked` is what `check` takes.
    """
    target, options = check(path, **asked)
    make: Callable[..., Writer] = resolve(target.writer)
    if COLUMNS in target.takes:
        options[COLUMNS] = columns_in_use(batches("looking"))
    with whole(path) as fresh:
        with _naming(path, fresh):
            writer = make(fresh, **options)
        for batch in batches("writing"):
            with _naming(path, fresh):
                writer.write(batch)
        with _naming(path, fresh):
            writer.close()
    return writer


@contextmanager
def _naming(path: Path, fresh: Path) -> Iterator[None]:
    """Errors of a writer name the file that was asked for, not the one that it is written to meanwhile."""
    try:
        yield
    except LogError as error:
        if error.path != fresh:
            raise
        raise type(error)(path, error.problem) from error
    except OSError as error:
        if error.filename not in (None, str(fresh)):
            raise
        raise LogError(path, error.strerror or str(error)) from error
