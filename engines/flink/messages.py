"""What the functions of the job send each other, and how the state of all of them is one.

Front sends to each operator, in the order of turns:

    LOAD      after every start, before anything else: take over the saved state, or begin without one
    ASK       the steps of a turn for one operator (wire.py)
    SAVE      put the state as it is after this turn into Flink's state; Front has saved its own

Operators send Merge the answer to an ASK with the number of the turn and of the operator. That of the fleet also sends
on what Front has for Merge: SAVE, and the clocks of a turn.

A checkpoint of Flink may come between any two turns, and it holds: the state of every stage as of the last SAVE, the
input of Front since then (or where it is in a file), and the last turn whose events Merge has given out. After a
restart Front sends its input since the SAVE again, and Merge keeps back what was given out before. So a
checkpoint costs nothing but what changed, and the operators' input is never part of it.

State of vehicles is kept by bucket (streams/split.py), one key for each, so that Flink moves buckets when the number of
operators changes. `key_of` has for each bucket a key that falls into the key group with the bucket's bits in reverse
order: for every power of two, each subtask then has all buckets of one part and of no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from watchkeeper.config.schema import Config
from watchkeeper.streams.split import BUCKETS

LOAD, ASK, SAVE = 0, 1, 2
# The number of the operator of the fleet among answers, and that of the clocks.
FLEET, CLOCKS = -1, -2
# The key of a stage that there is one of.
ONLY = 0
_BITS = BUCKETS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The job as every function of it knows it."""

    config: Config
    shards: int
    keys: tuple[int, ...]
    """The key of each bucket."""

    def buckets(self, part: int) -> range:
        """The buckets of one part."""
        return range(part, BUCKETS, self.shards)


def key_of(group_of: Callable[[int], int]) -> tuple[int, ...]:
    """A key for each bucket. `group_of(key)` is the key group, of `BUCKETS`, that Flink puts a key into."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < BUCKETS:
        found.setdefault(group_of(key), key)
        key += 1
    return tuple(found[_reversed(bucket)] for bucket in range(BUCKETS))


def _reversed(bucket: int) -> int:
    return int(f"{bucket:0{_BITS}b}"[::-1], 2)
