"""Files that are whole or not there: written under another name in the same folder, and renamed at the end.

    with whole(path) as fresh:
        …write to `fresh`…

After an error, or Ctrl-C, what was there before is there still, and nothing else. A link is followed. What is no
ordinary file, such as /dev/stdout or a pipe, is written directly: there is nothing to rename.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watchkeeper.streams.logs.base import LogError

# What the file is called while it is written: hidden, another one for each process, and with its ending.
_MEANWHILE = ".part-{pid}-{name}"


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """The name to write to. Raises LogError when there is no such folder."""
    if path.exists() and not path.is_file():
        yield path
        return
    final = path.resolve() if path.is_symlink() else path
    fresh = final.with_name(_MEANWHILE.format(name=final.name, pid=os.getpid()))
    try:
        fresh.open("wb").close()
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    try:
        yield fresh
        if final.exists():
            fresh.chmod(final.stat().st_mode & 0o777)
        fresh.replace(final)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
