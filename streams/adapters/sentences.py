r"""Sentences of NMEA 0183, which satellite receivers and AIS speak: `$…*hh` and `!…*hh`, comma separated, checked.

A tag block `\s:station,c:1609459200*5B\` may stand before a sentence; its `c` is Unix time, in seconds or milliseconds.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import xor

# 82 by the standard; receivers with tag blocks and proprietary sentences send longer ones.
SENTENCE_MAX = 512
_SENTENCE = re.compile(rb"(?:\\([^\\]{0,200})\\)?([$!])([ -)+-~]{5,400})\*([0-9A-Fa-f]{2})\s*")
_TAG_TIME = re.compile(rb"(?:^|,)c:(\d{9,13})(?=[,*])")
_MILLISECONDS = 10**11


class Sentence:
    """One sentence: what it is (`RMC`, without the talker), its cells, and the Unix time of its tag block, or None."""

    __slots__ = ("cells", "t", "word")

    def __init__(self, word: str, cells: list[str], t: float | None) -> None:
        self.word, self.cells, self.t = word, cells, t


def sentence_of(line: bytes) -> Sentence | None:
    """A sentence whose checksum is right; None for every other line."""
    found = _SENTENCE.fullmatch(line)
    if found is None or reduce(xor, found[3]) != int(found[4], 16):
        return None
    head, *cells = found[3].decode("ascii").split(",")
    tag = _TAG_TIME.search(found[1] or b"")
    seconds = int(tag[1]) if tag else None
    if seconds is not None and seconds > _MILLISECONDS:
        return Sentence(head[-3:], cells, seconds / 1e3)
    return Sentence(head[-3:], cells, seconds)
