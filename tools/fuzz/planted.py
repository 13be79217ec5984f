"""Planted bugs of each class: tests/tools/test_fuzz.py holds that the fuzzer finds them."""

from __future__ import annotations

import random

from tools.fuzz.run import Case


def loops() -> Case:
    """Never ends."""

    def case(draw: random.Random) -> str:
        while draw.random() < 2.0:
            pass
        return "read"

    return case


def raises() -> Case:
    """Breaks down now and then."""

    def case(draw: random.Random) -> str:
        if draw.random() < 0.2:
            raise IndexError("planted")
        return "read"

    return case


def hoards() -> Case:
    """Takes all memory."""

    def case(_: random.Random) -> str:
        hoard = b"x" * (900 << 20)
        return "read" if hoard else "part"

    return case
