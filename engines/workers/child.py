"""One worker: a process that runs one Operator and answers one message with one, in order.

    T, head   -> answers to the turn (wire.py)          D -> the operator's dump
    L, dump   -> empty: the dump is taken over          F -> figures of the operator, MessagePack
    R, config -> empty: new thresholds                  V -> what there is to see (view.py)

A message that raises is answered by `!` and the words; after that the worker ends: half an operator is worse than none.
A message says where in shared memory (memory.py) its body is: kind, path and length of what was written, and the part
of it that is the body. The head of a turn points into what was written with it for all workers (whole.py).
Messages are so small that those of many turns wait in the pipe. Runs until it is told to end (`E`), or the pipe ends.
"""

from __future__ import annotations

import os
import resource
import signal
import traceback
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from time import process_time

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.part import Part
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.workers.figures import figures_of
from watchkeeper.engines.workers.memory import Place, Views
from watchkeeper.engines.workers.view import Watching
from watchkeeper.engines.workers.whole import own_steps
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.foreign.states import StateEncoder

OK, FAILED = b"+", b"!"
TURN, TAKE_OVER, RETUNE, DUMP, FIGURES, VIEW, END = "TLRDFVE"


class Ask(msgspec.Struct, array_like=True):
    """One message."""

    kind: str
    path: str = ""
    length: int = 0
    start: int = 0
    stop: int = 0


_ask = msgpack_decoder(Ask)


def serve(pipe: Connection, config: Config, part: Part) -> None:
    """Run one worker until the pipe ends. The first message, empty, says that it is ready."""
    # Ctrl-C reaches the whole group: the parent brings its workers down in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        warm_up(config)
        worker = _Worker(Operator(config, part))
        pipe.send_bytes(OK)
        views = Views()
        while (ask := _ask(pipe.recv_bytes())).kind != END:
            pipe.send_bytes(OK + worker.do(ask, views.of(Place(ask.path, ask.length))))
    except (BrokenPipeError, EOFError):
        pass  # the parent has gone, and so do we
    except BaseException:
        pipe.send_bytes(FAILED + traceback.format_exc().encode())
    # numeric libraries have threads that would be waited for
    os._exit(0)


class _Worker:
    """The operator, and what is asked about it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._began_s = process_time()
        self._watching: Watching | None = None
        self._encoder = StateEncoder()

    def do(self, ask: Ask, memory: memoryview) -> bytes | bytearray:
        """The answer to one message."""
        operator, kind, body = self._operator, ask.kind, memory[ask.start : ask.stop]
        if kind == TURN:
            return operator.answers(own_steps(body, memory))
        if kind == VIEW:
            # who is never asked need not keep anything for it
            self._watching = self._watching or Watching(operator.pipeline)
            return self._encoder.encode(self._watching.view())
        if kind == DUMP:
            return operator.dump()
        if kind == TAKE_OVER:
            operator.load(bytes(body))
            return b""
        if kind == RETUNE:
            operator.pipeline.retune(ForkingPickler.loads(body))
            return b""
        used = {
            "cpu_s": process_time() - self._began_s,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        return msgspec.msgpack.encode(msgspec.structs.replace(figures_of(operator.pipeline), **used))
