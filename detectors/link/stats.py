"""What the telemetry says about the link that it came over, per vehicle and stream: rate, gaps, loss, latency.

Everything is held against the stream's own past, which is learned while all is well. Arrays are [stream, slot]; times
are event time in seconds. Latency comes from samples of the stream `link` (streams/linkmeter.py): the clock's constant
offset goes with the past. Used by the `link` detector, and by the diagnosis to answer its tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from watchkeeper.config.detectors.link import Link
from watchkeeper.detectors.base import Window
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.tables import zeros
from watchkeeper.detectors.link.constants import ALPHA, BIN_S, ON_TIME, RECENT_BINS, SEAM_HZ, SILENT_INTERVALS
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import KIND_OF_WORD, LINK, Kind
from watchkeeper.streams.periods import periods_over, periods_until


class LinkStats:
    """The state of all links."""

    # by stream and vehicle; by stream, bin of the window and vehicle; by vehicle
    _STREAMS = ("interval_s", "previous_t", "usual_rate", "heard_s", "known_s", "_odd", "_silent")
    _RINGS = ("_count", "_on_time", "_gap")
    _VEHICLES = ("via", "usual_latency_s", "latency_s", "jitter_s", "latency_t", "latency_n", "reordered")
    # the same as keys of a snapshot
    TURNS = tuple(name.strip("_") for name in _RINGS)
    COLUMNS = (*(name.strip("_") for name in (*_STREAMS, *_VEHICLES)), *TURNS)

    def __init__(self, config: Link, tick_s: float, fleet: Fleet) -> None:
        self._fleet = fleet
        self._bin_s = tick_s * max(1, round(BIN_S / tick_s))
        self._make(config)

    def _make(self, config: Link) -> None:
        """Empty tables for these streams and this window."""
        self.kinds = [KIND_OF_WORD[word] for word in config.streams]
        n, k = self._fleet.capacity, len(self.kinds)
        self.depth = self._depth(config)
        self.interval_s: F8 = np.full((k, n), np.nan)
        self.previous_t: F8 = np.full((k, n), np.nan)
        self.usual_rate: F8 = np.full((k, n), np.nan)
        # how long each stream has been heard, since its last silence and in all
        self.heard_s: F8 = np.zeros((k, n))
        self.known_s: F8 = np.zeros((k, n))
        self.via: I4 = np.full(n, -1, np.int32)
        # per bin of the window: samples, those on time, and the longest gap
        self._count: F8 = zeros((k, self.depth, n))
        self._on_time: F8 = zeros((k, self.depth, n))
        self._gap: F8 = zeros((k, self.depth, n))
        self.usual_latency_s: F8 = np.full(n, np.nan)
        self.latency_s: F8 = np.full(n, np.nan)
        self.jitter_s: F8 = np.full(n, np.nan)
        self.latency_t: F8 = np.full(n, -np.inf)
        self.latency_n: F8 = np.zeros(n)
        self.reordered: F8 = np.zeros(n)
        self._silent: Bool = np.ones((k, n), bool)
        # which links were odd when they were last judged: those do not teach
        self._odd: Bool = np.zeros((k, n), bool)
        self._bins = 0
        self._open = -1

    def _depth(self, config: Link) -> int:
        return max(2, round(config.window_s / self._bin_s))

    def retune(self, config: Link) -> None:
        """Watch other streams, or over another window: what was learned stays, and the window fills again."""
        if self._depth(config) != self.depth or [KIND_OF_WORD[word] for word in config.streams] != self.kinds:
            state = self.snapshot()
            self._make(config)
            self.restore(state)

    def take(self, window: Window) -> bool:
        """Count one tick's samples; True when this ends a bin, and the links are to be judged."""
        n = self._fleet.high
        number = periods_until(window.t, self._bin_s)
        if number != self._open:
            self._open = number
            self._bins += 1
            for ring in (self._count, self._on_time, self._gap):
                ring[:, (self._bins - 1) % self.depth, :n] = 0.0
        at = (self._bins - 1) % self.depth
        for k, kind in enumerate(self.kinds):
            samples = window.samples.get(kind)
            if samples is None:
                continue
            # by the rate of the past, which is slow to learn: the newest intervals must not be their own measure
            short_s = ON_TIME / self.usual_rate[k]
            _count(
                samples.slot, samples.t, short_s, self.previous_t[k], self._count[k, at],
                self._on_time[k, at], self._gap[k, at],
            )  # fmt: skip
            named = samples.via >= 0
            self.via[samples.slot[named]] = samples.via[named]
        self._take_latency(window)
        if periods_over(window.t, self._bin_s) < number:
            return False
        # after a silence the window begins again: what was not sent was not lost on the way
        self._silent[:, :n] = self._unheard(window.t, n)
        self.heard_s[:, :n] = np.where(self.silent, 0.0, self.heard_s[:, :n] + self._bin_s)
        self.known_s[:, :n] += np.where(self.silent, 0.0, self._bin_s)
        if self.silent.any():
            for ring in (self._count, self._on_time, self._gap):
                ring[:, :, :n] = np.where(self.silent[:, None, :], 0.0, ring[:, :, :n])
        return True

    @property
    def counting(self) -> bool:
        """Whether samples were counted in a bin that has not ended yet."""
        return bool(self._count[:, (self._bins - 1) % self.depth, : self._fleet.high].any())

    @property
    def silent(self) -> Bool:
        """Which streams were silent at the end of the last bin; one that came since then still counts as silent."""
        return self._silent[:, : self._fleet.high]

    def _unheard(self, t: float, n: int) -> Bool:
        interval_s = self.interval_s[:, :n]
        # an empty window has nothing to be judged by, and a stream that is slower than the window never has
        longest_s = np.where(interval_s > self.window_s, 2.0 * self._bin_s, self.window_s)
        limit = np.minimum(np.maximum(SILENT_INTERVALS * interval_s, 2.0 * self._bin_s), longest_s)
        silent: Bool = ~(t - self._fleet.last_t[self.kinds, :n] <= limit)
        return silent

    def _take_latency(self, window: Window) -> None:
        samples = window.samples.get(Kind.LINK)
        if samples is None:
            return
        rows = np.flatnonzero(np.isfinite(samples.data[LINK.latency_s]))
        slot = samples.slot[rows]
        self.latency_s[slot] = samples.data[LINK.latency_s, rows]
        self.jitter_s[slot] = samples.data[LINK.jitter_s, rows]
        self.latency_t[slot] = samples.t[rows]
        self.latency_n[slot] += 1.0
        np.add.at(self.reordered, slot, np.nan_to_num(samples.data[LINK.reordered, rows]))

    def home(self, gateways: Mapping[str, int]) -> I4:
        """The number of each vehicle's gateway: the one it was heard through, else the declared one; -1 for none."""
        n = self._fleet.high
        if not self._fleet.declared.any:
            return self.via[:n]
        found: I4 = np.where(self.via[:n] >= 0, self.via[:n], self._fleet.declared.numbers(gateways)[:n])
        return found

    # -- against the past -----------------------------------------------------------------------------------

    def span_s(self) -> F8:
        """How much of each stream's window is filled."""
        return np.minimum(self.heard_s[:, : self._fleet.high], self.depth * self._bin_s)

    def rate_ratio(self) -> F8:
        """Samples per second in the window over the usual rate; NaN without a past or while silent.

        One gap is neither a loss nor a slow stream: the larger counts of the mean and of the median over the bins.
        """
        n = self._fleet.high
        span_s = self.span_s()
        with np.errstate(invalid="ignore", divide="ignore"):
            rate: F8 = self._count[:, :, :n].sum(axis=1) / span_s
            whole = span_s >= self.depth * self._bin_s
            rate = np.where(whole, np.maximum(rate, np.median(self._count[:, :, :n], axis=1) / self._bin_s), rate)
            ratio: F8 = np.where(self.silent, np.nan, rate / self.usual_rate[:, :n])
        return ratio

    def on_time(self) -> F8:
        """Share of the newest intervals that are no longer than usual."""
        n = self._fleet.high
        rows = (self._bins - 1 - np.arange(min(RECENT_BINS, self.depth))) % self.depth
        share: F8 = self._on_time[:, rows, :n].sum(axis=1) / np.maximum(self._count[:, rows, :n].sum(axis=1), 1.0)
        return share

    @property
    def window_s(self) -> float:
        """How much time the window holds."""
        return self.depth * self._bin_s

    def seam_s(self, slot: int) -> float:
        """Time that a vehicle's time stamps leave out of the window, or, negative, tell twice.

        A clock that is set does that; a link that gets slow does not. By its fastest stream: NaN if that is too slow to
        tell, or has not been heard for a whole window.
        """
        return float(self.seams_s(np.array([slot], np.int32))[0])

    def seams_s(self, slots: I4) -> F8:
        """`seam_s` of these slots."""
        rate_hz = self.usual_rate[:, slots]
        whole = (self.span_s()[:, slots] >= self.window_s) & ~np.isnan(rate_hz)
        known = np.where(whole, rate_hz, -np.inf)
        k, every = known.argmax(axis=0), np.arange(len(slots))
        tells = known[k, every] >= SEAM_HZ
        found: F8 = np.full(len(slots), np.nan)
        k, chosen = k[tells], slots[tells]
        found[tells] = self.window_s - self._count[k, :, chosen].sum(axis=1) / self.usual_rate[k, chosen]
        return found

    def gap_s(self) -> F8:
        """The longest interval in the window."""
        longest: F8 = self._gap[:, :, : self._fleet.high].max(axis=1)
        return longest

    def latency_excess_s(self) -> F8:
        """Latency over the usual one; NaN without a past."""
        n = self._fleet.high
        excess: F8 = self.latency_s[:n] - self.usual_latency_s[:n]
        return excess

    def follow(self, window: Window) -> None:
        """Take this tick's intervals into the past of those links that were not odd when last judged."""
        for k, kind in enumerate(self.kinds):
            samples = window.samples.get(kind)
            if samples is not None:
                _learn(samples.slot, samples.t, self.interval_s[k], self.previous_t[k], self._odd[k])

    def learn(self, config: Link, odd_stream: Bool, odd_latency: Bool, t: float) -> None:
        """Take what is not called anomalous into the past, at the end of a bin."""
        n = self._fleet.high
        span_s = self.span_s()
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self._count[:, :, :n].sum(axis=1) / span_s
        ready = ~odd_stream & (span_s >= self.depth * self._bin_s) & ~self.silent & (rate > 0.0)
        usual = self.usual_rate[:, :n]
        step = self._bin_s / config.past_s
        self._odd[:, :n] = odd_stream
        fresh = np.where(np.isnan(usual), rate, usual + step * (rate - usual))
        self.usual_rate[:, :n] = np.where(ready, fresh, usual)
        new = ~odd_latency & (self.latency_t[:n] > t - self._bin_s) & np.isfinite(self.latency_s[:n])
        usual_s = self.usual_latency_s[:n]
        # the first few reports settle it quickly, then it follows slowly
        weight = np.maximum(step, 1.0 / np.maximum(self.latency_n[:n], 1.0))
        fresh_s = np.where(np.isnan(usual_s), self.latency_s[:n], usual_s + weight * (self.latency_s[:n] - usual_s))
        self.usual_latency_s[:n] = np.where(new, fresh_s, usual_s)

    # -- life -----------------------------------------------------------------------------------------------

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        for name in ("interval_s", "previous_t", "usual_rate"):
            getattr(self, name)[:, slots] = np.nan
        self.heard_s[:, slots] = self.known_s[:, slots] = 0.0
        self.via[slots] = -1
        self._odd[:, slots], self._silent[:, slots] = False, True
        for ring in (self._count, self._on_time, self._gap):
            ring[:, :, slots] = 0.0
        for name in ("usual_latency_s", "latency_s", "jitter_s"):
            getattr(self, name)[slots] = np.nan
        self.latency_t[slots] = -np.inf
        self.latency_n[slots] = self.reordered[slots] = 0.0

    def forget_gateways(self, numbers: I4) -> None:
        """These numbers may soon be those of other gateways."""
        self.via[np.isin(self.via, numbers)] = -1

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        n = self._fleet.high
        arrays = (*self._STREAMS, *self._RINGS, *self._VEHICLES)
        return {
            "bins": self._bins,
            "open": self._open,
            "streams": [kind.word for kind in self.kinds],
            **{name.strip("_"): getattr(self, name)[..., :n] for name in arrays},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. Of one with other streams those that are still watched; another window fills again."""
        self._bins, self._open = state["bins"], state["open"]
        same_window = state["count"].shape[1] == self.depth
        words = [kind.word for kind in self.kinds]
        for row, word in enumerate(state["streams"]):
            if word not in words:
                continue
            k = words.index(word)
            for name in (*self._STREAMS, *(self._RINGS if same_window else ())):
                saved = state[name.strip("_")][row]
                getattr(self, name)[k, ..., : saved.shape[-1]] = saved
            if not same_window:
                self.heard_s[k] = 0.0
        for name in self._VEHICLES:
            saved = state[name]
            getattr(self, name)[: len(saved)] = saved


@njit(cache=True)
def _count(slot: I4, t: F8, short_s: F8, previous_t: F8, count: F8, on_time: F8, gap: F8) -> None:
    last = np.int64(-1)
    before = 0.0
    for i in range(slot.size):
        s = slot[i]
        if s != last:
            last, before = s, previous_t[s]
        dt = 0.0 if np.isnan(before) else t[i] - before
        count[s] += 1.0
        if dt <= short_s[s]:
            on_time[s] += 1.0
        gap[s] = max(gap[s], dt)
        before = t[i]


@njit(cache=True)
def _learn(slot: I4, t: F8, interval_s: F8, previous_t: F8, odd: Bool) -> None:
    for i in range(slot.size):
        s = slot[i]
        if not np.isnan(previous_t[s]):
            dt = t[i] - previous_t[s]
            if np.isnan(interval_s[s]):
                interval_s[s] = dt
            elif not odd[s]:
                # an outage is not a habit: one interval counts for at most two usual ones
                interval_s[s] += ALPHA * (min(dt, 2.0 * interval_s[s]) - interval_s[s])
        previous_t[s] = t[i]
