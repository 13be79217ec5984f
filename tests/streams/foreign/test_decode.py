"""Whatever bytes come, the decoders raise one kind of error, with a reason of the closed set."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.streams.foreign.decode import (
    ForeignError,
    from_json,
    from_msgpack,
    from_python_json,
    from_toml,
    json_decoder,
    msgpack_decoder,
)
from watchkeeper.streams.messages import Drop


class Shape(msgspec.Struct):
    t: float
    name: str = ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"t": 1, "name": "\xff"}', Drop.SYNTAX),
        (b'{"t": 1', Drop.SYNTAX),
        (b'{"t": "x"}', Drop.TYPE),
        (b'{"name": "a"}', Drop.MISSING),
        (b'{"t": 1, "x": ' + b"[" * 100_000, Drop.DEPTH),
        (b'{"t": 1e999}', Drop.TYPE),
        (b'{"t": ' + b"9" * 5000 + b"}", Drop.TYPE),
    ],
)
def test_json_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ForeignError) as refused:
        json_decoder(Shape)(data)
    assert refused.value.reason == reason
    assert str(refused.value)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for read in (
        from_json, from_msgpack, from_python_json, json_decoder(Shape), msgpack_decoder(Shape),
        lambda raw: from_toml(raw, dict[str, int]),
    ):  # fmt: skip
        with suppress(ForeignError):
            read(data)


def test_what_is_whole_is_read() -> None:
    assert json_decoder(Shape)(b'{"t": 1, "name": "a"}') == Shape(1.0, "a")
    assert from_msgpack(msgspec.msgpack.encode({"t": 1}), Shape) == Shape(1.0)
