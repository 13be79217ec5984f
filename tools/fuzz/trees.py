"""Mutations of documents that are trees (JSON, MessagePack, TOML): whole as text, and wrong in what they say.

    edited(random, document) -> document     one to five changes anywhere in a copy
    edited_json(random, data) -> bytes       the same for a document as bytes
    edited_msgpack(random, data) -> bytes

Bytes that are flipped in a document make most often no document. Here keys go, come and change their names, and values
take another type, length or size.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import msgspec

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 0.0, -0.5, 1e308, 5e-324, float("nan"), float("inf"), "", "x",
    "\u00e9\u0000", "mqtt://", "tcp://[::1", "http://user:secret@host:99999/", "a" * 5000, [], [[]], [1, "a"], {},
    {"a": 1}, [{}], [{"type": "sbs"}], [{"url": "tcp://h:1"}], [{"type": 3, "url": []}],
)  # fmt: skip

# What is repeated grows to so many characters at most: the time of a case is for its reader, not for writing it.
GROWN_MOST = 1_000_000


def edited(draw: random.Random, document: Any, names: Sequence[str] = ()) -> Any:
    """A copy with one to five changes; `names` are keys that may come."""
    document = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 2, 5))):
        _edit(draw, document, names)
    return document


def edited_json(draw: random.Random, data: bytes) -> bytes:
    """A JSON document, as Python writes it: NaN and Infinity are in it as such."""
    return json.dumps(edited(draw, json.loads(data))).encode()


def edited_msgpack(draw: random.Random, data: bytes) -> bytes:
    """A MessagePack document; numbers beyond 64 bits become what fits."""
    try:
        return msgspec.msgpack.encode(edited(draw, msgspec.msgpack.decode(data)))
    except (OverflowError, TypeError):
        return data


def _edit(draw: random.Random, document: Any, names: Sequence[str]) -> None:
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        if not keys:
            return
        key = draw.choice(keys)
        below = at[key]
        if isinstance(below, dict | list) and below and draw.random() < 0.7:
            at = below
            continue
        break
    what = draw.randrange(5)
    value = copy.deepcopy(draw.choice(VALUES))
    if what == 0:
        del at[key]
    elif what == 1 and isinstance(at, dict):
        at[draw.choice(("", "x", *names, str(key) + "s", "\u00e4 b"))] = value
    elif what == 2 and isinstance(at, list):
        times = draw.choice((1, 3, 1000))
        times = min(times, max(GROWN_MOST // len(repr(at[key])), 1))
        # each by itself: a later change of one must not be a change of all
        at[key:key] = [copy.deepcopy(at[key]) for _ in range(times)]
    else:
        at[key] = value
