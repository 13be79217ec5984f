"""Messages that come a second time: a broker delivers again what it does not know to be acknowledged.

After a broken connection, a restart of ours, or a broker's return with an older state, messages that were judged long
ago arrive once more, as if all vehicles had gone back in time. So the newest SIZE messages are remembered by a hash of
topic and payload (a sample has its time in it: equal bytes are the same sample). Noting one takes a fraction of a
microsecond. Looking takes longer, and happens only after a connection was lost or before the first one, until UNKNOWN
messages in a row were new.
"""

from __future__ import annotations

from array import array

import numpy as np

from watchkeeper.streams.batch import I8

# 4 MB: half a minute at 20,000 messages a second, half an hour of a small fleet.
SIZE = 1 << 19
UNKNOWN = 2000


class Recent:
    """A ring of hashes. `looking` says whether messages have to be asked about."""

    def __init__(self, size: int = SIZE) -> None:
        self._ring = array("q", bytes(8 * size))
        self._size = size
        self._at = 0
        self._known: I8 | None = None
        self._unknown = 0
        # whether a message may have come before
        self.looking = False

    def note(self, topic: str, payload: bytes) -> None:
        """Remember a message that was taken in."""
        at = self._at
        self._ring[at] = hash((topic, payload))
        self._at = at + 1 if at + 1 < self._size else 0

    def look(self) -> None:
        """A connection was lost, or is about to be made: what comes next may have come before."""
        self._known = np.sort(np.frombuffer(self._ring, np.int64))
        self._unknown = 0
        self.looking = True

    def is_repeat(self, topic: str, payload: bytes) -> bool:
        """Whether this message was taken in before `look`."""
        if self._known is None:
            return False
        mark = hash((topic, payload))
        found = int(np.searchsorted(self._known, mark))
        if found < len(self._known) and self._known[found] == mark:
            self._unknown = 0
            return True
        self._unknown += 1
        if self._unknown >= UNKNOWN:
            self._known, self.looking = None, False
        return False
