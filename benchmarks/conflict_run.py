"""One conflict detector, measured in a process of its own (`python -m watchkeeper.benchmarks.conflict_run OPTIONS`).

Called by conflicts.py, with the options as one JSON object; prints one JSON object. All detectors take the same
columns (latitude, longitude, track, ground speed, altitude, vertical rate) and end with a list of pairs. For ours that
includes what the daemon does at each tick before the search: every aircraft carried to the middle of the horizon.
`futures` is ours with what the daemon does after the search: pairs up to the margins, each judged on all futures of
both aircraft. Half of the aircraft turn, and every climb may end at any of the next levels: nothing says where it does.

Extra memory is the peak of the resident set over all rounds, above what the process held when libraries, compiled
code and traffic were loaded. Pages reserved but never touched do not count. Below some thousand aircraft it says more
about pages and allocators than about detectors.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchkeeper.benchmarks.traffic import Traffic, hot_spot
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.conflict.constants import MARGIN_FT, MARGIN_M
from watchkeeper.detectors.conflict.futures import Motion, futures
from watchkeeper.detectors.conflict.minima import Minima
from watchkeeper.detectors.conflict.probability import Asked, Outlook, judge
from watchkeeper.detectors.conflict.search import Scan
from watchkeeper.detectors.kernels.approach import state_of
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import FT_M, KT_MS, NM_M
from watchkeeper.streams.kernels import njit

Name = Literal["ours", "futures", "compiled", "numpy"]
Pair = tuple[int, int]
WARM_UP = 64
# A turn of 3 degrees a second.
STANDARD_RADS = math.radians(3.0)


class Options(msgspec.Struct, frozen=True):
    """What to measure. After `budget_s` no further round begins, once there are `least_rounds`."""

    detector: Name
    n: int
    rounds: int
    least_rounds: int
    budget_s: float
    seed: int
    density_per_10000_km2: float
    horizon_s: float
    separation_nm: float
    vertical_ft: float
    max_pairs: int


class Measured(msgspec.Struct, frozen=True):
    """Elapsed and processor time of each round. `missing`: why this detector is not there."""

    ms: list[float] = []
    cpu_ms: list[float] = []
    pairs: int = 0
    extra_bytes: int = 0
    missing: str = ""


class Candidate(Protocol):
    """A detector under test. Constructed with its input; `start` makes whatever it keeps from round to round."""

    def start(self) -> None:
        """Called once."""

    def scan(self) -> Any:
        """One round; only this is timed."""

    def pairs(self, found: Any) -> set[Pair]:
        """What a round found."""


class Ours:
    """detectors/conflict/search.py alone."""

    def __init__(self, traffic: Traffic, options: Options) -> None:
        self._traffic, self._options = traffic, options

    def start(self) -> None:
        """Work arrays of the scan."""
        o = self._options
        self._minima = Minima(o.horizon_s, o.separation_nm * NM_M, o.vertical_ft)
        self.work = Scan(len(self._traffic), o.max_pairs)

    def scan(self) -> int:
        """States, then the search."""
        t, scan, half_s = self._traffic, self.work, 0.5 * self._minima.horizon_s
        _fill(Reports(t.lat_deg, t.lon_deg, t.trk_deg, t.gs_kt, t.alt_ft, t.vs_fpm), half_s, scan.slot, scan.state)
        return scan.run(len(t), self._minima)

    def pairs(self, found: int) -> set[Pair]:
        """The smaller number first."""
        if self.work.overflow:
            raise RuntimeError(f"{self.work.overflow} pairs found no room")
        both = np.sort(np.stack((self.work.pairs["a"][:found], self.work.pairs["b"][:found])), axis=0)
        return set(zip(*both.tolist(), strict=True))


class Futures(Ours):
    """The search with its margins, and detectors/conflict/probability.py on every pair that it finds."""

    def start(self) -> None:
        """Work arrays of both; the aircraft with odd numbers turn at the standard rate, one to each side."""
        super().start()
        c, n = DEFAULT.detectors.conflict, len(self._traffic)
        self._minima = self._minima._replace(margin_m=MARGIN_M, margin_ft=MARGIN_FT)
        self._outlook = Outlook(self._minima.horizon_s, c.turn_hold_s, c.level_off)
        self._asked = Asked(c.probability, c.high_ratio, c.probability_far, c.act_s, c.act_high_s)
        self._row_of: I4 = np.arange(n, dtype=np.int32)
        self._motion: NDArray[Any] = blank(Motion, n)
        number = np.arange(n)
        self._motion["turn_rads"] = np.where(number % 2, np.where(number % 4 == 1, 1.0, -1.0) * STANDARD_RADS, 0.0)
        self._motion["free"] = self._traffic.vs_fpm != 0.0
        self._room = futures()

    def scan(self) -> int:
        """States, the search, and the probability of each pair."""
        found = super().scan()
        pairs, state = self.work.pairs[:found], self.work.state
        judge(pairs, self._row_of, state, self._motion, self._outlook, self._asked, self._room)
        return found


class Reports(NamedTuple):
    """The columns of the traffic that a state is made of."""

    lat_deg: F8
    lon_deg: F8
    trk_deg: F8
    gs_kt: F8
    alt_ft: F8
    vs_fpm: F8


@njit(cache=True)
def _fill(of: Reports, half_s: float, slot: I4, state: NDArray[Any]) -> None:
    for i in range(slot.size):
        state_of(of.lat_deg[i], of.lon_deg[i], of.trk_deg[i], of.gs_kt[i] * KT_MS, half_s, state[i])
        state[i].alt_ft, state[i].climb_fts, slot[i] = of.alt_ft[i], of.vs_fpm[i] / 60.0, i


class BlueSky:
    """BlueSky's state-based detector, as the simulator calls it: all traffic against itself, in SI units."""

    def __init__(self, traffic: Traffic, options: Options) -> None:
        self._options, n = options, len(traffic)
        with contextlib.redirect_stdout(io.StringIO()):  # it talks while it is imported
            if options.detector == "compiled":
                from bluesky.traffic.asas.cstatebased import detect  # noqa: PLC0415

                self._detect = detect
            else:
                from bluesky.traffic.asas.statebased import StateBased  # noqa: PLC0415

                self._detect = lambda *a: StateBased.detect(None, *a)  # it does not use its instance
        self._traffic = SimpleNamespace(
            ntraf=n,
            id=[f"{i:06X}" for i in range(n)],
            lat=traffic.lat_deg,
            lon=traffic.lon_deg,
            trk=traffic.trk_deg,
            gs=traffic.gs_kt * KT_MS,
            alt=traffic.alt_ft * FT_M,
            vs=traffic.vs_fpm * FT_M / 60.0,
        )

    def start(self) -> None:
        """Radius, half height and look-ahead time are one per aircraft."""
        o, n = self._options, self._traffic.ntraf
        self._limits = [np.full(n, x) for x in (o.separation_nm * NM_M, o.vertical_ft * FT_M, o.horizon_s)]

    def scan(self) -> Any:
        """A tuple of nine, the first of which is the pairs."""
        return self._detect(self._traffic, self._traffic, *self._limits)

    def pairs(self, found: Any) -> set[Pair]:
        """It reports most pairs from both sides; here the smaller number comes first."""
        both = ((int(a, 16), int(b, 16)) for a, b in found[0])
        return {(min(pair), max(pair)) for pair in both}


def measure(options: Options) -> Measured:
    """Run the rounds and look at the memory."""
    own = {"ours": Ours, "futures": Futures}
    make: type[Ours | BlueSky] = own.get(options.detector, BlueSky)
    try:
        _warm_up(make(hot_spot(WARM_UP, options.seed), options))
        candidate: Candidate = make(hot_spot(options.n, options.seed, options.density_per_10000_km2), options)
    except ImportError as error:
        return Measured(missing=str(error))
    before_bytes = settle()
    candidate.start()
    found = candidate.scan()
    ms: list[float] = []
    cpu_ms: list[float] = []
    began_s = time.perf_counter()
    while len(ms) < options.least_rounds or (
        len(ms) < options.rounds and time.perf_counter() - began_s < options.budget_s
    ):
        del found  # or two results would be held at once
        t0, cpu0 = time.perf_counter_ns(), time.process_time_ns()
        found = candidate.scan()
        ms.append((time.perf_counter_ns() - t0) / 1e6)
        cpu_ms.append((time.process_time_ns() - cpu0) / 1e6)
    extra_bytes = status_bytes("VmHWM") - before_bytes
    return Measured(ms, cpu_ms, len(candidate.pairs(found)), extra_bytes)


def _warm_up(candidate: Candidate) -> None:
    candidate.start()
    candidate.pairs(candidate.scan())


def settle() -> int:
    """Give freed memory back to the system, so that nobody lives in it uncounted; resident bytes afterwards."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):  # then the peak may be that of an import, and extra memory looks smaller
        Path("/proc/self/clear_refs").write_text("5")
    return status_bytes("VmRSS")


def status_bytes(field: str, pid: int | str = "self") -> int:
    """A size from the kernel's status of a process: VmRSS, of it RssAnon, or its peak VmHWM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/{pid}/status")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measure(msgspec.json.decode(sys.argv[1].encode(), type=Options))))
