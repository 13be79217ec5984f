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
Times are event time in seconds. Strays are looked at in strays.py, the majority is asked in majority.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.engine.senders.majority import review
from watchkeeper.detectors.engine.senders.records import (
    ALPHA,
    DEEP_S,
    PROVEN,
    Arrived,
    Judged,
    Rules,
    closed_tick,
    is_active,
)
from watchkeeper.detectors.engine.senders.strays import STEADY, STEPS, leaps, recently_odd, shift, stale_s, stray
from watchkeeper.streams.kernels import njit

ACCEPT, LATE, HELD, REFUSED = 0, 1, 2, 3
# Why the kernel stopped: at the end of the batch, at a sample that may be of another time, at a review with news, at
# the first sample on the line after held ones, or at one from which some of these are within reach.
DONE, STRAY, REVIEW, RESUME, NEARER = 0, 1, 2, 3, 4
# A lag is remembered for about this long, so that waiting for a backlog does not end between two of its bursts.
LAG_S = 30.0
# The newest time, which one sender has shown alone, is compared with the next samples of two others. How often that
# must be to say that the sender is ahead.
AHEAD_N = 2
# A sender that was heard alone for this many reports of the fleet, at least so many seconds, may be right about time:
# others that come back then have a backlog. So many further samples of its own are waited for that to show.
ALONE_REPORTS, ALONE_LEAST_S, DOUBT_N = 2.0, 2.0, 3
# What is left of a usual number of strays in a row after each sample on the line.
ROW_FADE = 0.999


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
            if now.held_t <= x + max(rules.tolerance_s, now.reach_s):
                return i, NEARER
        now.resumed = False
        now.row_usual = max(now.row, ROW_FADE * now.row_usual)
        now.row = 0
        fresh = x > sender.newest_t
        on_line(sender, x, lead, np.int64(via[i]), now)
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
        shift(leader, ahead_s if again else leader.ahead_s, now)
        news = True
    if clearly or news:
        # what it sends next is compared again, whatever it has shown before
        now.leader, now.leader_voter, now.leader_t = 0, 0, -np.inf
    return news


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
def on_line(sender: Any, x: float, lead: float, via: int | np.int64, now: Any) -> None:
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
