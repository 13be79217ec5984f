"""What the API speaks about: the live view, the history, the configuration, and, in a replay, the playback."""

from __future__ import annotations

import asyncio
import base64
import binascii
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.http.api.playback import Playback
from watchkeeper.daemon.http.api.table import Refusal
from watchkeeper.daemon.live.view import Live
from watchkeeper.streams.foreign.decode import ForeignError, from_json

T = TypeVar("T")
# An answer about now waits so long at most for what has just happened to be in the file.
SETTLE_S = 0.25
NO_HISTORY = "nothing is kept here: there is no state directory (sinks.state_dir), or history.enabled is false"


@dataclass(slots=True)
class Served:
    """All parts. `ask` runs a question to the history in a thread of its own."""

    live: Live
    config: Callable[[], Config]
    history: History | None = None
    playback: Playback | None = None

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """The history's answer. Raises Refusal without a history, NoHistoryError when it cannot be read."""
        if self.history is None:
            raise Refusal(503, "no_history", NO_HISTORY)
        return await asyncio.get_running_loop().run_in_executor(self.history.pool, self.history.reader.use, question)

    async def settle(self) -> None:
        """Wait a moment for what has just happened to be written."""
        if self.history is not None and self.history.waiting and not self.history.writer.trouble:
            try:
                async with asyncio.timeout(SETTLE_S):
                    await self.history.flush()
            except TimeoutError:
                return


def cursor(place: Any) -> str:
    """A place in a list as text that nobody need understand."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(text: str | None, shape: type[T]) -> T | None:
    """The reverse. Raises Refusal when it was not made here."""
    if text is None:
        return None
    try:
        return from_json(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)), shape)
    except (binascii.Error, ValueError, ForeignError) as error:
        raise Refusal(400, "bad_parameter", "cursor: not one of ours", "cursor") from error
