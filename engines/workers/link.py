"""The parent's end of one worker: messages go out, and answers come in by a thread, a bounded number at a time.

What is asked is in shared memory, and the pipe says where, in so few bytes that to send them never waits; answers come
through the pipe.

A worker that ends, or whose answer is an error, fails everything: WorkerError, in words. Nothing goes on half blind.
"""

from __future__ import annotations

from contextlib import suppress
from multiprocessing import get_context
from queue import Empty, Queue
from threading import Thread

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.part import Part
from watchkeeper.engines.workers.child import END, FAILED, Ask, serve
from watchkeeper.engines.workers.memory import NOWHERE, Place

# How long a worker has to end by itself when it is asked to, in seconds.
LEAVES_S = 5.0
_encode = msgspec.msgpack.Encoder().encode


class WorkerError(RuntimeError):
    """A worker has failed or ended."""


class Link:
    """One worker. `ask` does not wait unless `most` messages are unanswered; `answer` gives the answers in order."""

    def __init__(self, config: Config, part: Part, most: int) -> None:
        self.name = part.name
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, config, part), name=f"watchkeeper {part.name}", daemon=True
        )
        self.failed = False
        # the first answer, that it is ready, comes unasked
        self._most, self._unanswered = most, 1
        self._process.start()
        theirs.close()
        self._answers: Queue[bytes | WorkerError] = Queue()
        self._thread = Thread(target=self._read, daemon=True, name=f"from {part.name}")
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid or 0

    @property
    def answered(self) -> bool:
        """Whether there is an answer now."""
        return not self._answers.empty()

    def ask(self, kind: str, place: Place = NOWHERE, start: int = 0, stop: int = 0) -> None:
        """One more message; its body is this part of what was written there."""
        if self._unanswered >= self._most:
            raise RuntimeError(f"{self._unanswered} messages to worker {self.name} are not answered yet")
        self._unanswered += 1
        self._send(Ask(kind, *place, start, stop))

    def _send(self, ask: Ask) -> None:
        # what is asked of a worker that has gone is not waited for: `answer` says what happened
        with suppress(OSError):
            self._pipe.send_bytes(_encode(ask))

    def check(self) -> None:
        """WorkerError: there will be no more answers."""
        if self.failed:
            # the answers that came before it are for those who asked
            while not isinstance(found := self._answers.get(), WorkerError):
                pass
            self._answers.put(found)
            raise found

    def answer(self, timeout_s: float | None = None) -> bytes:
        """The next answer. WorkerError: there will be none."""
        try:
            found = self._answers.get(timeout=timeout_s)
        except Empty:
            raise WorkerError(f"worker {self.name}: no answer within {timeout_s:g} s") from None
        if isinstance(found, WorkerError):
            # whoever asks again hears the same
            self._answers.put(found)
            raise found
        self._unanswered -= 1
        return found

    def _read(self) -> None:
        try:
            while True:
                answer = self._pipe.recv_bytes()
                if answer.startswith(FAILED):
                    self.failed = True
                    self._answers.put(WorkerError(f"worker {self.name} failed:\n{answer[1:].decode()}"))
                    return
                self._answers.put(answer[1:])
        except (EOFError, OSError):
            self.failed = True
            self._process.join(LEAVES_S)
            self._answers.put(WorkerError(f"worker {self.name} ended (exit code {self._process.exitcode})"))

    def close(self) -> None:
        """The worker ends: by itself when it is told to, or else at once."""
        self._send(Ask(END))
        self._process.join(LEAVES_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        # it has ended, so the thread has, or will: nobody uses what is given back here
        self._thread.join(LEAVES_S)
        self._pipe.close()
