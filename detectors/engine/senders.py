"""The clock of every sender against that of the fleet: what one arriving sample says about both.

A sender is a vehicle; vehicles behind one gateway have one vote together, because a gateway may stamp their samples.
The fleet's time M (`Now.t`) is the newest time that two senders have shown, so no single one can move it. A sample
with time x is, after the sender's known offset is taken off, `lead = x - M` ahead of the fleet. Honest senders lead by
next to nothing. From this
- a sample on the line (no more than `Now.reach_s` ahead, its tick still open) is accepted and may move M;
- of the sender that has shown the newest time, the samples of others that follow say whether that time has come. If
  again and again they show an earlier one, its clock is ahead by the difference;
- any other is a stray. Strays that agree with each other while the rest of the fleet goes on are a clock that is off by
  a steady amount: it becomes the sender's offset, and from then on its samples are on the line. Strays that do not
  agree make the sender unsteady: all its samples are refused until they have been on the line for a while. Two are
  enough if one of them was ahead, because a delay can only make a sample late;
- once per tick the fleet's own time is reviewed: if all but a few senders lag behind M, these few have pulled it ahead
  together. M goes back to the majority, and those few are the ones that are off. If many lag (a backlog, a flood),
  ticks wait longer for them; one sender alone is not waited for.
With one or two senders nobody can be outvoted: M is the newest time, and the sender that was heard first is believed.

Everything depends on the samples' times and their order of arrival, one by one: any chunking gives the same answers.
Times are event time in seconds. Used by eventtime.py only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I4, U1
from watchkeeper.streams.kernels import njit

ACCEPT, LATE, HELD, REFUSED = 0, 1, 2, 3
# Why the kernel stopped: at the end of the batch, at a sample that may be of another time, at a review with news, or at
# the first sample on the line after held ones.
DONE, STRAY, REVIEW, RESUME = 0, 1, 2, 3

# A sender counts while its last sample is no older than this, or three of its own intervals.
ACTIVE_S = 10.0
# Weight of the newest sample in a sender's lead and interval: some ten samples to settle.
ALPHA = 0.1
# A lag is remembered for about this long, so that waiting for a backlog does not end between two of its bursts.
LAG_S = 30.0
# A sender is known after so many samples on the line; until then it cannot pull time ahead.
PROVEN = 8
# Strays that agree become an offset after so many, over this long by the fleet's time.
AGREE, AGREE_S = 4, 2.0
# Share of strays from which a sender is unsteady, and below which it is trusted again.
UNSTEADY, STEADY = 0.4, 0.1
# A sender of which nothing was taken for this long, though it sends, is named: it is not judged. Short enough for the
# second of two reports that are five seconds apart, while the fleet's time is a second and a half behind.
UNTAKEN_S = 3.5
# The newest time, which one sender has shown alone, is compared with the next samples of two others. How often that
# must be to say that the sender is ahead.
AHEAD_N = 2
# Samples of several senders are in order if none is older than the one before by more than this.
ORDERED_S = 1.0
# A sender that was heard alone for this many reports of the fleet, at least so many seconds, may be right about time:
# others that come back then have a backlog. So many further samples of its own are waited for that to show.
ALONE_REPORTS, ALONE_LEAST_S, DOUBT_N = 2.0, 2.0, 3
# What is left of a usual number of strays in a row after each sample on the line.
ROW_FADE = 0.999
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
# Senders looked at in a review: a sample of a large fleet has the same median.
REVIEWED = 1024
# A fleet that steps back does so by at least this much; less is a broker that delivers again what was not acknowledged.
DEEP_S = 5.0
# An interval between samples that is not known yet.
USUAL_S = 1.0


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
    resumed: bool
    """Whether those that the next sample on the line decides about have been decided."""


@njit(cache=True)
def closed_tick(t_max: float, tick_s: float, lateness_s: float) -> int:
    """The newest tick that ends before t_max - lateness_s; a very small number before the first sample."""
    if t_max == -np.inf:
        return -(2**62)
    return int(np.ceil((t_max - lateness_s) / tick_s)) - 1


@njit(cache=True)
def admit(
    arrived: Arrived, start: int, senders: NDArray[Any], high: int, now: Any, rules: Rules, judged: Judged
) -> tuple[int, int]:
    """Judge samples from `start`; where it stopped, and why."""
    t, who, via = arrived
    codes, own_t = judged
    for i in range(start, t.size):
        sender = senders[who[i]]
        x = t[i] - sender.offset_s
        own_t[i] = x
        lead = x - now.t
        if lead > reach_s(sender, now, rules):
            # a clock that is off does not end another's time alone
            if who[i] + 1 in (now.solo, now.doubt):
                heard(who[i] + 1, x, sender, now, rules)
            return i, STRAY
        if int(np.ceil(x / rules.tick_s)) <= now.closed:
            if lead < -DEEP_S or not (now.confirmed or now.line == who[i] + 1):
                return i, STRAY
            codes[i] = LATE
            if stray(sender, x - max(now.t, now.leader_t), now, rules):
                return i + 1, REVIEW
            continue
        if sender.unsteady:
            codes[i] = REFUSED
            _calm(sender)
            continue
        if outvotes(who[i] + 1, x, sender, now, rules):
            return i, STRAY
        if not now.resumed:
            heard(who[i] + 1, x, sender, now, rules)
        now.confirmed = now.confirmed or now.line not in (0, who[i] + 1)
        now.line = who[i] + 1
        if now.held > 0 and not now.resumed:
            if sender.line_run != now.run:
                sender.line_run = now.run
                now.line_senders += 1
            # what several show together is not given up for fewer
            if now.line_senders >= now.run_senders or not now.confirmed:
                return i, RESUME
        now.resumed = False
        now.row_usual = max(now.row, ROW_FADE * now.row_usual)
        now.row = 0
        fresh = x > sender.newest_t
        on_line(sender, x, lead, via[i], now)
        voter = -1 - via[i] if now.gateways_vote and via[i] >= 0 else who[i] + 1
        news = fresh and contradicts(x, voter, senders, now, rules)
        # someone not yet proven does not pull the time of those who are
        if lead > 0.0 and (lead <= rules.tolerance_s or sender.n > PROVEN or 2 * now.proven <= now.active):
            shown_t = shown(x, who[i] + 1, voter, now)
            if shown_t > now.t:
                news = move(shown_t, senders, high, now, rules) or news
        if news:
            return i + 1, REVIEW
    return t.size, DONE


@njit(cache=True)
def outvotes(number: int, x: float, sender: Any, now: Any, rules: Rules) -> bool:
    """Whether a sample is as far behind the only sender on the line as that of another, which is held: two to one."""
    if now.confirmed or now.line in (0, number) or now.held == 0 or now.run_senders == 0 or sender.run == now.run:
        return False
    both_behind = max(x, now.run_t) < now.t - rules.tolerance_s
    return bool(both_behind and -rules.lateness_s <= x - now.run_t <= DEEP_S)


@njit(cache=True)
def heard(number: int, x: float, sender: Any, now: Any, rules: Rules) -> None:
    """A sender speaks, with time x: note who has spoken alone, and whether that is over."""
    if now.doubt == number:
        now.doubt_n -= 1
    if now.doubt_n <= 0 or now.t >= now.doubt_t - rules.tolerance_s:
        now.doubt = now.doubt_n = 0
    if number == now.solo and 0.0 <= x - now.solo_last_t <= STEPS * sender.interval_s:
        now.solo_last_t = x
        return
    least_s = max(ALONE_LEAST_S, ALONE_REPORTS * now.every_s) + rules.lateness_s
    if number != now.solo and now.active > 2 and now.solo_last_t - now.solo_t >= least_s and now.doubt == 0:
        now.doubt, now.doubt_n, now.doubt_t = now.solo, DOUBT_N, now.solo_last_t
    now.solo, now.solo_t, now.solo_last_t = number, x, x


@njit(cache=True)
def shown(x: float, number: int, voter: int, now: Any) -> float:
    """A sender has shown the time x: the newest time that two have shown, or any if there are no three to vote."""
    before_t = now.leader_t
    again = voter == now.leader_voter
    if x > before_t or now.active <= 2:
        now.leader, now.leader_voter, now.leader_t = number, voter, x
        now.compared = 0
    if now.active <= 2:
        return x
    return float(now.t if again else min(x, before_t))


@njit(cache=True)
def contradicts(x: float, voter: int, senders: NDArray[Any], now: Any, rules: Rules) -> bool:
    """Compare a sample with the newest time; True when the sender of that turns out to be ahead of the others."""
    if now.active <= 2 or now.leader == 0 or voter == now.leader_voter or now.compared >= 2 or now.doubt:
        return False
    behind_s = now.leader_t - x
    if now.compared == 0 or voter == now.compared_voter:
        now.compared, now.compared_voter, now.compared_s = 1, voter, behind_s
        return False
    now.compared = 2
    leader = senders[now.leader - 1]
    # one of the two may itself be behind
    leader.ahead_n += 1
    leader.ahead_s += max(0.3, 1.0 / leader.ahead_n) * (min(behind_s, now.compared_s) - leader.ahead_s)
    # samples may come in bursts, in any order within lateness_s
    least_s = max(rules.tolerance_s, rules.lateness_s)
    ahead_s = min(behind_s, now.compared_s, now.leader_t - now.t)
    # clearly ahead: of both, of those that ticks wait for, and of a fleet whose time is behind by reports yet to come
    clearly = ahead_s > max(least_s, now.wait_s) and now.leader_t - now.t > least_s + 0.5 * stale_s(now)
    again = clearly and leader.odd_ahead and recently_odd(leader, now)
    news = clearly and leaps(leader, ahead_s, now, rules)
    if not news and leader.n > 0 and (again or (leader.ahead_n >= AHEAD_N and leader.ahead_s > least_s)):
        _shift(leader, ahead_s if again else leader.ahead_s, now)
        news = True
    if clearly or news:
        # what it sends next is compared again, whatever it has shown before
        now.leader, now.leader_voter, now.leader_t = 0, 0, -np.inf
    return news


@njit(cache=True)
def new_run(now: Any) -> None:
    """What strays from here on is no part of the strays before."""
    now.run += 1
    now.run_senders = now.line_senders = 0
    now.run_smooth = now.run_ordered = True
    now.run_t = -np.inf


@njit(cache=True)
def reach_s(sender: Any, now: Any, rules: Rules) -> float:
    """How far ahead of the fleet a sample may be: far if its sender is the fleet, little if there are others."""
    if now.t == -np.inf:
        return np.inf
    return rules.max_jump_s if now.active <= 1 and sender.n > 0 else now.reach_s


@njit(cache=True)
def move(x: float, senders: NDArray[Any], high: int, now: Any, rules: Rules) -> bool:
    """The fleet's time goes on to x; at each tick it is reviewed. Whether senders are off."""
    before = now.t
    now.t = x
    news = False
    if before == -np.inf or np.floor(x / rules.tick_s) > np.floor(before / rules.tick_s):
        review(senders, high, now, rules)
        news = now.off > 0
    now.closed = max(now.closed, closed_tick(now.t, rules.tick_s, now.wait_s))
    return news


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


@njit(cache=True)
def is_active(sender: Any, now: Any) -> bool:
    """Whether a sender counts."""
    return bool(sender.n > 0 and sender.heard_t >= now.t - max(ACTIVE_S, 3.0 * sender.interval_s))


@njit(cache=True)
def on_line(sender: Any, x: float, lead: float, via: int, now: Any) -> None:
    """Note a sample that agrees with the fleet's time."""
    if now.t == -np.inf:
        lead = 0.0
    if not is_active(sender, now):
        now.active += 1
    if sender.n == 0:
        sender.lead_s = lead
        if sender.since_n == 0:
            now.heard_n += 1
            sender.since_n = now.heard_n
    else:
        sender.lead_s += max(ALPHA, 1.0 / (sender.n + 1)) * (lead - sender.lead_s)
        step = x - sender.newest_t
        if step > 0.0:
            sender.interval_s += ALPHA * (step - sender.interval_s) if sender.n > 1 else step - sender.interval_s
    sender.last_lead_s = lead
    fade = np.exp(-max(0.0, max(x, now.t) - sender.heard_t) / LAG_S) if sender.n else 0.0
    sender.lag_s = max(-lead, sender.lag_s * fade)
    sender.newest_t = max(sender.newest_t, x)
    sender.last_t = x
    sender.refused_n = 0
    sender.heard_t = max(now.t, x) if now.t == -np.inf or lead > 0.0 else now.t
    sender.via = via + 1
    sender.n += 1
    sender.strays *= 1.0 - ALPHA
    sender.agreed_n = 0


@njit(cache=True)
def _calm(sender: Any) -> None:
    """A sample on the line of a sender that is unsteady."""
    sender.strays *= 1.0 - ALPHA
    if sender.strays < STEADY:
        sender.unsteady = False
        sender.n = 0


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
            _shift(sender, sender.agreed_s - 0.5 * max(0.0, now.lead_s), now)
            return True
    else:
        sender.agreed_s, sender.agreed_n, sender.agreed_t = lead, 1, now.t
    if far and sender.strays >= UNSTEADY and not sender.unsteady:
        sender.unsteady = True
        name(sender, now)
        return True
    if untaken(sender) and not sender.named and not now.doubt:
        name(sender, now)
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
        name(sender, now)
        return True
    if not sender.odd or now.t != sender.odd_t:
        sender.odd, sender.odd_ahead, sender.odd_s, sender.odd_t = True, ahead, lead, now.t
    return False


@njit(cache=True)
def untaken(sender: Any) -> bool:
    """Whether it has sent for a while, and nothing of that was taken."""
    return bool(sender.refused_n > 0 and sender.sent_t - sender.refused_t > UNTAKEN_S)


@njit(cache=True)
def _shift(sender: Any, by_s: float, now: Any) -> None:
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
    name(sender, now)


@njit(cache=True)
def name(sender: Any, now: Any) -> None:
    """Its clock is off now, and that is said at the next review."""
    if not sender.named:
        sender.named = True
        now.off += 1
    sender.named_t = now.t


@njit(cache=True)
def review(senders: NDArray[Any], high: int, now: Any, rules: Rules) -> None:
    """Ask the majority: who has pulled time ahead, how long ticks wait, how far ahead a sample may be."""
    lead = np.empty(min(high, 2 * REVIEWED))
    lag = np.empty(lead.size)
    interval = np.empty(lead.size)
    whose = np.empty(lead.size, np.int64)
    step = 1 + high // REVIEWED
    n, active, proven, trailing = 0, 0, 0, 0
    for s in range(high):
        sender = senders[s]
        if is_active(sender, now) and not sender.unsteady:
            active += 1
            proven += sender.n > PROVEN
            if s % step == 0 and n < lead.size:
                lead[n], lag[n], interval[n] = sender.lead_s, sender.lag_s, sender.interval_s
                whose[n] = s
                trailing += sender.last_lead_s < -rules.tolerance_s
                n += 1
    now.active, now.proven = active, proven
    now.confirmed = active > 1
    now.wait_s = rules.lateness_s
    now.lead_s = 0.0
    if n > 0:
        now.lead_s = _vote(lead[:n], whose[:n], senders, now)
    every_s = now.every_s = np.median(interval[:n]) if n > 0 else 0.0
    now.reach_s = rules.tolerance_s + (every_s if every_s > 0.0 else USUAL_S) + 2.0 * max(0.0, now.lead_s)
    # where reports are rare, the next one is far ahead
    now.reach_s = min(max(rules.max_jump_s, 2.0 * every_s), max(now.reach_s, 3.0 * rules.tolerance_s))
    now.usual_s = now.reach_s
    if active > 2:
        # the second of the others may report as rarely, and come as late as it may
        now.reach_s += every_s + rules.lateness_s
    if n < 2:
        return
    # one sender alone is not waited for: the largest lag does not count, nor the largest tenth of many
    lags = np.sort(lag[:n])
    behind = lags[min(n - 2, int(0.9 * n))]
    if behind > 0.5 * rules.lateness_s:
        now.wait_s = min(rules.max_jump_s, max(rules.lateness_s, behind + 0.5 * rules.lateness_s))
    ahead = np.count_nonzero(lead[:n] > now.lead_s + rules.tolerance_s)
    # one late sample is not a habit: most must be known for a while, and not only have been behind at some time
    behind_now = now.lead_s < -rules.tolerance_s and 2 * trailing > n
    if behind_now and ahead <= max(1, n // 4) and 2 * proven > active:
        _go_back(senders, high, now, rules)


@njit(cache=True)
def _go_back(senders: NDArray[Any], high: int, now: Any, rules: Rules) -> None:
    """A few have pulled time ahead of the majority: back to it, and take the excess off those few."""
    back_s = now.lead_s
    now.t += back_s
    now.leader, now.leader_voter, now.leader_t = 0, 0, -np.inf
    now.lead_s = 0.0
    for s in range(high):
        sender = senders[s]
        sender.heard_t = min(sender.heard_t, now.t)
        sender.odd = False
        sender.lead_s -= back_s
        sender.last_lead_s -= back_s
        sender.lag_s = max(0.0, sender.lag_s + back_s)
        if sender.lead_s > rules.tolerance_s and is_active(sender, now):
            _shift(sender, sender.lead_s, now)


@njit(cache=True)
def _vote(lead: F8, whose: NDArray[np.int64], senders: NDArray[Any], now: Any) -> float:
    """The median lead, one vote per gateway or vehicle of its own; of two voters the one known for longer decides."""
    n = lead.size
    size = np.zeros(n)
    voters = 0
    for i in range(n):
        via = senders[whose[i]].via
        if via == 0:
            size[i] = 1.0
            voters += 1
        elif size[i] == 0.0:
            count = 0
            for j in range(i, n):
                count += senders[whose[j]].via == via
            for j in range(i, n):
                if senders[whose[j]].via == via:
                    size[j] = count
            voters += 1
    now.gateways_vote = voters >= 3
    if voters < 3:
        # too few gateways to outvote one: every vehicle counts
        size[:] = 1.0
    if n == 2:
        first = 0 if senders[whose[0]].since_n < senders[whose[1]].since_n else 1
        return float(lead[first])
    order = np.argsort(lead)
    half = 0.5 * np.sum(1.0 / size)
    total = 0.0
    for i in order:
        total += 1.0 / size[i]
        if total > half:
            return float(lead[i])
    return float(lead[order[n - 1]])
