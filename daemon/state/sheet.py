"""A small file of the state directory that is replaced as a whole: what people have done, and what must outlive us.

    sheet = Sheet(folder, "shelves.json")
    found = sheet.read(list[Shelf])       None: there is none, or it is damaged, which /readyz says
    sheet.put({...})                      this is what it says from now on; from the event loop
    await sheet.written()                 a crash from here on does not undo it

It is written in a thread, the newest value only, however many came meanwhile. While the disk refuses, it is tried again
whenever the folder is looked at. Without a folder it is kept in memory only.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, TypeVar

import msgspec

from watchkeeper.daemon.background import in_background
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.checked import replace_file, seal, unseal
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.streams.foreign.decode import ForeignError, from_json

log = logging.getLogger(__name__)

T = TypeVar("T")


class Sheet:
    """One file. `what` says for people what is lost with it."""

    def __init__(self, folder: StateFolder | None, name: str, what: str) -> None:
        self._folder = folder
        self._name, self._what = name, what
        self._path = folder.path / name if folder is not None else None
        self._body = b""
        # how often it was changed, and the change that is on disk
        self._wanted = self._done = 0
        # whether there is a file that cannot be read: the next value replaces it
        self.spoilt = False
        self._mutex, self._writing = threading.Lock(), threading.Lock()
        if folder is not None:
            folder.on_return.append(self._renew)
            folder.on_check.append(self._write)

    def read(self, shape: type[T]) -> T | None:
        """What the run before left."""
        if self._path is None or self._folder is None:
            return None
        problem = "damaged"
        try:
            body = unseal(self._path.read_bytes())
            if body is not None:
                found = from_json(body, shape)
                self._body, self._wanted, self._done = body, 1, 1
                return found
        except FileNotFoundError:
            return None
        except ForeignError:
            problem = "damaged, or of another version"
        except OSError as error:
            problem = f"not read ({error.strerror})"
        self.spoilt = True
        log.warning("state file not used", extra=kv(file=self._name, problem=problem))
        self._folder.notes.append(f"{self._name} is {problem}: {self._what}")
        return None

    def put(self, value: Any) -> None:
        """Say this from now on: a value that is an object in JSON, and not an empty one."""
        body = msgspec.json.encode(value)
        with self._mutex:
            self._body, self.spoilt = body, False
            self._wanted += 1

    async def written(self) -> None:
        """Return when the last value was written, or refused, which the folder says."""
        if self._path is not None and self._done < self._wanted:
            await in_background(self._name, self._write)

    def _renew(self) -> None:
        """Write it again: it may be gone."""
        self._done = -1
        self._write()

    def _write(self) -> None:
        assert self._path is not None
        assert self._folder is not None
        with self._writing:
            with self._mutex:
                body, number = self._body, self._wanted
            if not number or self._done >= number:
                return
            problem = ""
            try:
                replace_file(self._path, [seal(body)])
                self._done = number
            except OSError as error:
                problem = error.strerror or str(error)
            self._folder.fault(f"{self._name} not written", problem)
