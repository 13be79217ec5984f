"""Senders and the fleet's time: the records and rules that the kernels here work on.

Times are event time in seconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from watchkeeper.streams.batch import F8, I4, U1
from watchkeeper.streams.kernels import njit

# A sender counts while its last sample is no older than this, or three of its own intervals.
ACTIVE_S = 10.0
# Weight of the newest sample in a sender's lead and interval: some ten samples to settle.
ALPHA = 0.1
# A sender is known after so many samples on the line; until then it cannot pull time ahead.
PROVEN = 8
# A fleet that steps back does so by at least this much; less is a broker that delivers again what was not acknowledged.
DEEP_S = 5.0


class Rules(NamedTuple):
    """The configuration as the kernel takes it; see config/schema.py for reasons."""

    tick_s: float
    lateness_s: float
    max_jump_s: float
    tolerance_s: float


class Arrived(NamedTuple):
    """Samples in order of arrival: times, numbers of their senders, numbers of their gateways (-1: none)."""

    t: F8
    who: I4
    via: I4


class Judged(NamedTuple):
    """What becomes of them: a code each, and the times with offsets taken off."""

    codes: U1
    t: F8


class Sender:
    """One sender (detectors/kernels/records.py); all zero is one that was never heard."""

    n: int
    """Samples on the line since its offset last changed."""
    heard_t: float
    """The fleet's time when it was last heard."""
    newest_t: float
    """Its own newest time, offset taken off."""
    last_t: float
    """The time of its last sample."""
    since_n: int
    """How many had been heard when it was, with itself: of two senders the older one is believed."""
    interval_s: float
    lead_s: float
    """How far it is ahead of the fleet when its samples arrive, averaged."""
    last_lead_s: float
    """The same of its last sample."""
    lag_s: float
    """How far it was behind at most, fading."""
    offset_s: float
    """Taken off its times."""
    ahead_s: float
    """By how much others contradicted the newest times that it showed alone, averaged."""
    ahead_n: int
    strays: float
    """Share of strays among its samples lately; the fleet's time at the last that counted."""
    stray_t: float
    # samples since the last that was taken: how many, and the fleet's time at the first and at the last
    refused_n: int
    refused_t: float
    sent_t: float
    # the lead that its strays agree on: how many, since when
    agreed_s: float
    agreed_n: int
    agreed_t: float
    # its last sample that was off: whether there is one, whether it was ahead as sent, by how much, the fleet's time
    odd: bool
    odd_ahead: bool
    odd_s: float
    odd_t: float
    changes: int
    changed_t: float
    via: int
    """Number of its gateway, counted from 1; 0 is none."""
    run: int
    """The run of strays that it was last part of; see Now.run."""
    held_t: float
    """The time of its newest stray in that run, and how many there are."""
    run_n: int
    line_run: int
    """The run of strays during which it was last on the line."""
    unsteady: bool
    named: bool
    """Whether its clock was said to be off."""
    named_t: float
    """The fleet's time when its clock was last off."""


class Now:
    """The fleet's time."""

    t: float = -np.inf
    closed: int = -(2**62)
    """The newest closed tick."""
    wait_s: float
    """How long ticks wait for stragglers: lateness_s, longer while many senders lag."""
    reach_s: float
    """A sample may be this far ahead of the fleet."""
    usual_s: float
    """The same, were no other late; strays agree that are half of this apart."""
    heard_n: int
    """Senders heard so far."""
    active: int
    proven: int
    lead_s: float
    """The median of the senders' leads."""
    off: int
    """Senders that are named as off, or were until lately."""
    # the sender that has shown the newest time: its number from 1, that of its voter, the time
    leader: int
    leader_voter: int
    leader_t: float = -np.inf
    # voters that it was compared with: how many, the first, and by how much that one was behind
    compared: int
    compared_voter: int
    compared_s: float
    line: int
    """Number, counted from 1, of the last sender on the line."""
    # the sender that was heard last, from 1, and its times since nobody else was heard: the first and the last
    solo: int
    solo_t: float
    solo_last_t: float
    # the sender that was heard alone until another came back, how many more of its samples others may be behind, and
    # its time
    doubt: int
    doubt_n: int
    doubt_t: float
    confirmed: bool
    """Whether a second sender agrees with this time."""
    gateways_vote: bool
    """Whether vehicles behind one gateway have one vote together."""
    every_s: float
    """The median of the senders' intervals."""
    # strays that are held: number of this run, senders in it, senders on the line since it began; whether each of its
    # senders goes on at its own pace
    run: int = 1
    run_senders: int
    line_senders: int
    run_smooth: bool = True
    # the time of the last of them, and whether each was later than the one before
    run_t: float = -np.inf
    run_ordered: bool = True
    # strays since the last sample on the line, and how many that usually are at most
    row: int
    row_usual: float
    held: int
    """Samples held at present."""
    held_t: float = np.inf
    """The oldest of those that are ahead of the fleet."""
    resumed: bool
    """Whether those that the next sample on the line decides about have been decided."""


@njit(cache=True)
def closed_tick(t_max: float, tick_s: float, lateness_s: float) -> int:
    """The newest tick that ends before t_max - lateness_s; a very small number before the first sample."""
    if t_max == -np.inf:
        return -(2**62)
    return int(np.ceil((t_max - lateness_s) / tick_s)) - 1


@njit(cache=True)
def is_active(sender: Any, now: Any) -> bool:
    """Whether a sender counts."""
    return bool(sender.n > 0 and sender.heard_t >= now.t - max(ACTIVE_S, 3.0 * sender.interval_s))
