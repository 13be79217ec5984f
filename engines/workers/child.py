"""One worker: a process that runs one Operator and answers one message with one, in order.

    T, ask    -> answers to the turn (wire.py)          D -> the operator's dump
    L, dump   -> empty: the dump is taken over          F -> figures of the operator, MessagePack

A message that raises is answered by `!` and the words; after that the worker ends: half an operator is worse than none.
A message says where in shared memory (memory.py) its body is: kind, length as eight bytes, path.
Messages are read ahead by a thread, so that the next turn is here when one is done. Runs until it is told to
end (`E`), or the pipe ends.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import traceback
from multiprocessing.connection import Connection
from queue import Queue
from threading import Thread
from time import process_time

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.part import Part
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.workers.figures import figures_of
from watchkeeper.engines.workers.memory import View

# Turns that are read ahead.
AHEAD = 2
OK, FAILED = b"+", b"!"
# The message after which a worker ends.
END = b"E"


def serve(pipe: Connection, config: Config, part: Part) -> None:
    """Run one worker until the pipe ends. The first message, empty, says that it is ready."""
    # Ctrl-C reaches the whole group: the parent brings its workers down in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asks: Queue[bytes | None] = Queue(AHEAD)
    Thread(target=_read, args=(pipe, asks), daemon=True).start()
    try:
        warm_up(config)
        operator = Operator(config, part)
        began_s = process_time()
        _send(pipe, OK, b"")
        views: dict[bytes, View] = {}
        while (ask := asks.get()) is not None:
            (length,), path = struct.unpack("<Q", ask[1:9]), ask[9:]
            if path not in views:
                views[path] = View(path.decode())
            _send(pipe, OK, _do(operator, ask[:1], views[path].view(length), began_s))
    except (BrokenPipeError, EOFError):
        pass  # the parent has gone, and so do we
    except BaseException:
        _send(pipe, FAILED, traceback.format_exc().encode())
    # numeric libraries have threads that would be waited for
    os._exit(0)


def _do(operator: Operator, kind: bytes, body: memoryview, began_s: float) -> bytes | bytearray:
    if kind == b"T":
        return operator.answer(body)
    if kind == b"D":
        return operator.dump()
    if kind == b"L":
        operator.load(bytes(body))
        return b""
    cpu_s, peak_mb = process_time() - began_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return msgspec.msgpack.encode(msgspec.structs.replace(figures_of(operator.pipeline), cpu_s=cpu_s, peak_mb=peak_mb))


def _read(pipe: Connection, asks: Queue[bytes | None]) -> None:
    try:
        while (ask := pipe.recv_bytes()) != END:
            asks.put(ask)
    except (EOFError, OSError):
        pass
    asks.put(None)


def _send(pipe: Connection, head: bytes, body: bytes | bytearray) -> None:
    pipe.send_bytes(head)
    pipe.send_bytes(body)
