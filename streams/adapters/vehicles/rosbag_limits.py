"""Chunks of ROS recordings unpacked within limits. rosbags itself asks for none: a few bytes could fill the memory.

rosbags keeps its decompressors by name in a dictionary for each of its formats; while a bag is read, ours stand there.
A version that keeps them elsewhere reads bags as it always did.
"""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from watchkeeper.streams.foreign.files import UNPACK_FREE_BYTES, UNPACK_RATIO


@contextmanager
def bounded() -> Iterator[None]:
    """While this is open, no chunk becomes more than it may."""
    with ExitStack() as stack:
        stack.enter_context(_instead("rosbags.rosbag1.reader", "decompressors", {"bz2": _bz2, "lz4": _lz4}))
        stack.enter_context(_instead("rosbags.rosbag2.storage_mcap", "DECOMPRESSORS", {"lz4": _lz4, "zstd": _zstd}))
        yield


@contextmanager
def _instead(module: str, name: str, ours: dict[str, Callable[..., bytes]]) -> Iterator[None]:
    table: dict[str, Any] = getattr(import_module(module), name, {})
    before = {key: table[key] for key in ours if key in table}
    table.update({key: ours[key] for key in before})
    try:
        yield
    finally:
        table.update(before)


def _unpack(decompressor: Any, packed: bytes) -> bytes:
    limit = max(UNPACK_FREE_BYTES, UNPACK_RATIO * len(packed))
    content: bytes = decompressor.decompress(packed, max_length=limit)
    if not decompressor.eof:
        raise ValueError(f"a chunk that is cut off, or unpacks to more than {UNPACK_RATIO} times its size")
    return content


def _bz2(packed: bytes, _size: int = 0) -> bytes:
    return _unpack(bz2.BZ2Decompressor(), packed)


def _lz4(packed: bytes, _size: int = 0) -> bytes:
    from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415  comes with rosbags

    return _unpack(LZ4FrameDecompressor(), packed)


def _zstd(packed: bytes, _size: int = 0) -> bytes:
    # the one that rosbags uses: a module of Python itself, or its backport
    zstd = import_module("rosbags.rosbag2.storage_mcap").zstd
    return _unpack(zstd.ZstdDecompressor(), packed)
