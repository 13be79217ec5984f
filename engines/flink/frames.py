"""Frames of `.wklog` files, one after the other, from any place: what Front reads when the source is files.

    frames = Frames(paths)          these logs, in this order; or one folder: its logs by name, also those that come
    frames.next() -> Batch | None   the next frame; None: there is none (yet)
    frames.place                    where the next one is; set it to read again from there
    frame_of(frame(batch))          a frame as a message of its own, for Kafka

Every worker that may run Front must see the files under the same path.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.logs.wkframe import (
    DATA,
    DamageError,
    decode_data,
    encode_data,
    pack_frame,
    read_head,
    read_payload,
)
from watchkeeper.streams.logs.wklog import LogReader
from watchkeeper.streams.messages import FIELDS, Kind

log = logging.getLogger(__name__)
# Writer and reader are of the same version.
OUR_COLUMNS = {kind.word: list(range(len(FIELDS[kind]))) for kind in Kind}
Place = tuple[str, int]
"""A log, and a byte in it; 0 is its first frame."""
START: Place = ("", 0)
SUFFIX = ".wklog"


def frame_of(raw: bytes) -> Batch:
    """A whole data frame, as `frame` writes it. DamageError: it is none."""
    file = BytesIO(raw)
    head = read_head(file)
    if head.tag != DATA:
        raise DamageError("not a data frame")
    return decode_data(read_payload(file, head), OUR_COLUMNS)


def frame(batch: Batch) -> bytes:
    """A batch as one message of a topic."""
    return pack_frame(DATA, encode_data(numbered(batch), packed=True), len(batch), batch.t_min, batch.t_max)


class Frames:
    """See the module's docstring."""

    def __init__(self, paths: Sequence[str]) -> None:
        folder = Path(paths[0]) if len(paths) == 1 else None
        self._folder = folder if folder is not None and folder.is_dir() else None
        self._paths = [] if self._folder else list(paths)
        self._reader: LogReader | None = None
        self._damaged: set[str] = set()
        self.place = START

    @property
    def endless(self) -> bool:
        """Whether more may come."""
        return self._folder is not None

    def __len__(self) -> int:
        """How many frames there are now."""
        return sum(len(LogReader(path)) for path in self._logs())

    def next(self) -> Batch | None:
        """The frame at `place`, which then is the one after it."""
        while True:
            name, offset = self.place
            logs = self._logs()
            if not name:
                if not logs:
                    return None
                name = logs[0]
            found = self._frame(name, offset)
            if found is not None:
                batch, stop = found
                self.place = name, stop
                return batch
            later = logs[logs.index(name) + 1 :] if name in logs else []
            if not later:
                return None
            self.place = later[0], 0

    def _frame(self, name: str, offset: int) -> tuple[Batch, int] | None:
        try:
            if self._reader is None or str(self._reader.path) != name:
                self._reader = LogReader(name)
            return self._reader.frame(offset)
        except LogError as error:
            # as in a replay: what is behind the damage is lost, and it is said
            if name not in self._damaged:
                self._damaged.add(name)
                log.error("%s", error)
            return None

    def _logs(self) -> list[str]:
        if self._folder is None:
            return self._paths
        return sorted(str(path) for path in self._folder.glob(f"*{SUFFIX}"))
