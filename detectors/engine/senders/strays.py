"""Samples off the line: whether they agree on an offset, leap about, or are too late; and whose clock is off then."""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.detectors.engine.senders.records import ALPHA, DEEP_S, PROVEN, Rules
from watchkeeper.streams.kernels import njit

# Strays that agree become an offset after so many, over this long by the fleet's time.
AGREE, AGREE_S = 4, 2.0
# Share of strays from which a sender is unsteady, and below which it is trusted again.
UNSTEADY, STEADY = 0.4, 0.1
# A sender of which nothing was taken for this long, though it sends, is named: it is not judged. Short enough for the
# second of two reports that are five seconds apart, while the fleet's time is a second and a half behind.
UNTAKEN_S = 3.5
# Samples of several senders are in order if none is older than the one before by more than this.
ORDERED_S = 1.0
# Two samples that no delay explains, no further apart than this or than so many of the sender's reports, tell more than
# one: a clock that leaps between them is unsteady.
ODD_S, ODD_REPORTS = 10.0, 4.0
# Samples of the fleet by which its time may be behind when one arrives; while nobody's interval is known, reports may
# be as rare as this.
STALE, RARE_S = 4.0, 5.0
# Steps of a sender that are no longer than this many of its intervals go on from each other.
STEPS = 3.0
# Offsets that change more often than this within a minute are not steady either.
CHANGES, CHANGES_S = 3, 60.0


@njit(cache=True)
def stray(sender: Any, lead: float, now: Any, rules: Rules) -> bool:
    """Note a sample off the line; True when it changes what is known of the sender's clock."""
    # a backlog is behind as well, but in order; and while the fleet stands still nobody can tell who is wrong
    if sender.refused_n == 0:
        sender.refused_t = now.t
    sender.refused_n += 1
    sender.sent_t = now.t
    if leaps(sender, lead, now, rules):
        return True
    back = now.t + lead < sender.last_t - DEEP_S
    far = (lead > 0.0 or lead < -rules.max_jump_s or back) and now.t > sender.stray_t
    sender.last_t = now.t + lead
    if far:
        sender.stray_t = now.t
        sender.strays += ALPHA * (1.0 - sender.strays)
    if sender.agreed_n > 0 and abs(lead - sender.agreed_s) <= 0.5 * now.usual_s:
        sender.agreed_n += 1
        sender.agreed_s += (lead - sender.agreed_s) / sender.agreed_n
        known = sender.agreed_n >= AGREE and now.t - sender.agreed_t >= AGREE_S and now.active > 0
        if known and abs(sender.agreed_s) > rules.tolerance_s:
            shift(sender, sender.agreed_s - 0.5 * max(0.0, now.lead_s), now)
            return True
    else:
        sender.agreed_s, sender.agreed_n, sender.agreed_t = lead, 1, now.t
    if far and sender.strays >= UNSTEADY and not sender.unsteady:
        sender.unsteady = True
        blame(sender, now)
        return True
    if untaken(sender) and not sender.named and not now.doubt:
        blame(sender, now)
        return True
    return False


@njit(cache=True)
def stale_s(now: Any) -> float:
    """How far the fleet's time may be behind: some of its reports, which are rare in a small fleet."""
    return float(STALE * (now.every_s if now.every_s > 0.0 else RARE_S) / max(1, now.active))


@njit(cache=True)
def recently_odd(sender: Any, now: Any) -> bool:
    """Whether it has sent something odd lately, and the fleet has gone on since."""
    apart_s = now.t - sender.odd_t
    return bool(sender.odd and 0.0 < apart_s <= max(ODD_S, ODD_REPORTS * sender.interval_s))


@njit(cache=True)
def leaps(sender: Any, lead: float, now: Any, rules: Rules) -> bool:
    """A sample was this far from the fleet; True when that and the one before say that the sender's clock is off.

    One of the two was ahead of the fleet, which no delay explains. The fleet must have gone on in between, and while it
    may be the fleet that comes back with a backlog nothing is said.
    """
    if now.active <= 2 or now.doubt or sender.unsteady:
        sender.odd = False
        return False
    differ = abs(lead - sender.odd_s) > rules.lateness_s + stale_s(now)
    # its own time has gone on, the fleet's by more: the fleet may be catching up
    apart_s = now.t - sender.odd_t
    differ = differ and not -apart_s < lead - sender.odd_s < 0.0
    # one that is behind by its delay may seem ahead once it comes quicker
    ahead = min(lead, lead + sender.offset_s) > 0.0
    if recently_odd(sender, now) and differ and (ahead or sender.odd_ahead):
        sender.unsteady = True
        sender.strays = 1.0
        blame(sender, now)
        return True
    if not sender.odd or now.t != sender.odd_t:
        sender.odd, sender.odd_ahead, sender.odd_s, sender.odd_t = True, ahead, lead, now.t
    return False


@njit(cache=True)
def untaken(sender: Any) -> bool:
    """Whether it has sent for a while, and nothing of that was taken."""
    return bool(sender.refused_n > 0 and sender.sent_t - sender.refused_t > UNTAKEN_S)


@njit(cache=True)
def shift(sender: Any, by_s: float, now: Any) -> None:
    """A sender's clock is off by this much more than was known."""
    if now.t - sender.changed_t > CHANGES_S:
        sender.changes = 0
    sender.changes += 1
    sender.changed_t = now.t
    sender.offset_s += by_s
    sender.newest_t = sender.last_t = now.t
    sender.lead_s = now.lead_s
    sender.lag_s = 0.0
    sender.n = 0
    sender.agreed_n = 0
    sender.ahead_s = 0.0
    sender.ahead_n = 0
    sender.odd = False
    sender.strays = 0.0
    if sender.changes > CHANGES:
        sender.unsteady = True
        sender.strays = 1.0
    blame(sender, now)


@njit(cache=True)
def blame(sender: Any, now: Any) -> None:
    """Its clock is off now, and that is said at the next review."""
    if not sender.named:
        sender.named = True
        now.off += 1
    sender.named_t = now.t


@njit(cache=True)
def new_run(now: Any) -> None:
    """What strays from here on is no part of the strays before."""
    now.run += 1
    now.run_senders = now.line_senders = 0
    now.run_smooth = now.run_ordered = True
    now.run_t = -np.inf


@njit(cache=True)
def join_run(sender: Any, x: float, now: Any) -> None:
    """A stray of this sender, with time x, is part of the present run."""
    now.row += 1
    if x < now.run_t - ORDERED_S:
        now.run_ordered = False
    now.run_t = x
    sender.run_n = sender.run_n + 1 if sender.run == now.run else 1
    if sender.run != now.run:
        sender.run = now.run
        now.run_senders += 1
    elif sender.n <= PROVEN or x - sender.held_t > STEPS * sender.interval_s:
        now.run_smooth = False
    sender.held_t = x
