"""A hundred aircraft of BlueSky, streamed live: our conflicts at each tick are its own, except at limits."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from scipy.optimize import minimize_scalar

from watchkeeper.config.adapters.bluesky import BlueSky as Settings
from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.background import end
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.base import Feed
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.geo import FT_M, NM_M
from watchkeeper.streams.messages import COLUMN, Kind

pytest.importorskip("bluesky", reason="needs the extra `bluesky`")

N, SECONDS = 100, 150
HORIZON_S, RADIUS_NM, HALF_HEIGHT_FT = 300.0, 5.0, 1000.0
SPHERE_M = 6_371_000.0
# Metres, feet and seconds that are nothing but rounding.
TINY_M, TINY_FT, TINY_S = 1e-3, 1e-6, 1e-6


def hundred() -> str:
    """A hundred aircraft in a disc of 80 NM, a quarter of them told to turn and a quarter to climb or descend.

    Most levels are 700 ft apart, where nothing is exactly at a limit; a tenth fly on whole thousands.
    """
    rng = np.random.default_rng(11)
    # steps of a second, so that BlueSky looks for conflicts in exactly the state that it tells
    lines = ["00:00:00.00>DT 1", "00:00:00.00>CDMETHOD STATEBASED"]
    for i in range(N):
        away, turn = 80.0 * math.sqrt(rng.random()) / 60.0, rng.uniform(0.0, 2.0 * math.pi)
        lat, lon = 48.0 + away * math.cos(turn), 5.0 + away * math.sin(turn) / math.cos(math.radians(48.0))
        level = 310 if rng.random() < 0.05 else 320 if rng.random() < 0.05 else 217 + 7 * int(rng.integers(0, 15))
        lines.append(
            f"00:00:00.00>CRE AC{i:03d} A320 {lat:.5f} {lon:.5f} {rng.uniform(0, 360):.1f} FL{level} "
            f"{rng.integers(230, 300)}"
        )
        if i % 4 == 0:
            lines.append(f"00:00:{10 + i // 4}.00>HDG AC{i:03d} {rng.integers(0, 360)}")
        if i % 4 == 1:
            lines.append(f"00:00:{20 + i // 4}.00>ALT AC{i:03d} FL{220 + 10 * rng.integers(0, 10)}")
    lines += [f"00:{SECONDS // 60:02d}:{SECONDS % 60:02d}.00>QUIT"]
    return "\n".join(sorted(lines)) + "\n"


def straight(config: Config) -> Config:
    """Every pair that a straight line takes below the minima is named, as BlueSky does."""
    conflict = msgspec.structs.replace(
        config.detectors.conflict, horizon_s=HORIZON_S, separation_nm=RADIUS_NM, vertical_ft=HALF_HEIGHT_FT,
        altitude_step_ft=0.0, probability=0.05, turn_hold_s=0.0, level_off=0.0, act_s=1e6,
    )  # fmt: skip
    return msgspec.structs.replace(config, detectors=msgspec.structs.replace(config.detectors, conflict=conflict))


Pair = tuple[str, str]


class Watch:
    """One pipeline, fed as the daemon feeds it, and the pairs that it names at each tick."""

    def __init__(self, config: Config, change: Callable[[Batch], None] = lambda _: None) -> None:
        self.pairs: dict[float, set[Pair]] = {}
        self.pipeline = Pipeline(config, on_evidence=self._tick)
        self._decoder = Decoder(config.topics, config.limits, lambda *_: pytest.fail("a sample of our own was refused"))
        self._change = change

    def put(self, found: Batch) -> None:
        self._decoder.add_batch(found)
        batch = self._decoder.take()
        assert batch is not None
        self._change(batch)
        self.pipeline.feed(batch)

    def _tick(self, window: Window, evidence: list[Evidence]) -> None:
        ids = self.pipeline.fleet.ids
        for found in evidence:
            if found.kind == "conflict" and found.b is not None:
                # a time of loss is there if the straight line itself loses separation
                rows = np.flatnonzero(~np.isnan(found.numbers["t_los_s"]))
                pairs = zip(found.a[rows].tolist(), found.b[rows].tolist(), strict=True)
                self.pairs[window.t] = {(min(p), max(p)) for p in ((ids[a], ids[b]) for a, b in pairs)}


def forget_plans(batch: Batch) -> None:
    """BlueSky's detector does not know where a climb will end."""
    if Kind.ADSB in batch.kinds:
        batch.kinds[Kind.ADSB].data[COLUMN[Kind.ADSB]["sel_alt_ft"]] = np.nan


class Tapped(LiveSource):
    """A live source that also keeps what BlueSky itself says."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.moments: dict[float, dict[str, Any]] = {}
        self._rest = b""

    def _take_in(self, feed: Feed, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for told in map(json.loads, whole):
            if "conflicts" in told:
                self.moments.setdefault(told["t"], told)
        super()._take_in(feed, data)


class Two:
    """A pair at one moment, in SI units: as it is on the ellipsoid and as it is on BlueSky's plane."""

    def __init__(self, moment: dict[str, Any], pair: Pair) -> None:
        rows = [moment["id"].index(name) for name in pair]
        self._ends = [[float(moment[key][i]) for key in ("lat", "lon", "trk_deg", "gs_ms")] for i in rows]
        self.alt_m, self.vs_ms, self.sel_alt_m = (
            [float(moment[key][i]) for i in rows] for key in ("alt_m", "vs_ms", "sel_alt_m")
        )

    def exact_m(self, t: float) -> float:
        (a, b) = (Geodesic.WGS84.Direct(lat, lon, trk, gs_ms * t) for lat, lon, trk, gs_ms in self._ends)
        return float(Geodesic.WGS84.Inverse(a["lat2"], a["lon2"], b["lat2"], b["lon2"])["s12"])

    def flat_m(self, t: float) -> float:
        (lat1, lon1, trk1, gs1), (lat2, lon2, trk2, gs2) = self._ends
        east = math.radians(lon2 - lon1) * math.cos(math.radians(0.5 * (lat1 + lat2))) * SPHERE_M
        north = math.radians(lat2 - lat1) * SPHERE_M
        east += t * (gs2 * math.sin(math.radians(trk2)) - gs1 * math.sin(math.radians(trk1)))
        north += t * (gs2 * math.cos(math.radians(trk2)) - gs1 * math.cos(math.radians(trk1)))
        return math.hypot(east, north)

    def window_s(self) -> tuple[float, float]:
        """From when to when within the horizon they are vertically too close, if they keep climbing as they do."""
        dz, climb, half_m = self.alt_m[1] - self.alt_m[0], self.vs_ms[1] - self.vs_ms[0], HALF_HEIGHT_FT * FT_M
        if climb == 0.0:
            return (0.0, HORIZON_S) if abs(dz) < half_m else (0.0, 0.0)
        low, high = sorted(((half_m - dz) / climb, (-half_m - dz) / climb))
        return max(low, 0.0), min(high, HORIZON_S)


def nearest(distance_m: Callable[[float], float], t0: float, t1: float) -> float:
    found = minimize_scalar(distance_m, bounds=(t0, t1), method="bounded", options={"xatol": 1e-4})
    return min(distance_m(t0), distance_m(t1), float(found.fun))


def explain(two: Two, *, ours: bool) -> str:
    """Why we and BlueSky differ over a pair; empty if there is no good reason."""
    gap_ft = abs(two.alt_m[1] - two.alt_m[0]) / FT_M
    t0, t1 = two.window_s()
    if abs(gap_ft - HALF_HEIGHT_FT) < TINY_FT and (two.vs_ms[0] == two.vs_ms[1] or t1 - t0 < TINY_S):
        return "" if ours else "exactly 1,000 ft"  # touched, never crossed: only BlueSky calls that a conflict
    if any(vs != 0.0 and alt == sel for vs, alt, sel in zip(two.vs_ms, two.alt_m, two.sel_alt_m, strict=True)):
        return "levelled off"  # it is where it was going, its climb not yet 0: BlueSky lets it climb on
    if not t0 < t1:
        return ""
    exact_m, flat_m = nearest(two.exact_m, t0, t1), nearest(two.flat_m, t0, t1)
    # we say what the ellipsoid says, BlueSky what its plane says
    agrees = ours == (exact_m < RADIUS_NM * NM_M + TINY_M) and ours != (flat_m < RADIUS_NM * NM_M - TINY_M)
    return "flat Earth" if agrees else ""


def climbs(moment: dict[str, Any], pair: Pair) -> bool:
    return any(moment["vs_ms"][moment["id"].index(name)] != 0.0 for name in pair)


def test_a_hundred_aircraft_live_have_the_conflicts_that_bluesky_lists_tick_by_tick(tmp_path: Path) -> None:
    path = tmp_path / "hundred.scn"
    path.write_text(hundred())
    config = straight(DEFAULT)
    plain, informed = Watch(config, forget_plans), Watch(config)

    def put(topic: str, payload: bytes) -> None:
        plain.put(topic, payload)
        informed.put(topic, payload)

    async def scenario() -> Tapped:
        url = path.as_uri().replace("file:", "bluesky:")
        source = Settings(url=url, times="message", speed=1000.0)
        live = Tapped(source, config, put)
        task = asyncio.create_task(live.run())
        try:
            async with asyncio.timeout(120):
                while len(live.moments) < SECONDS:
                    await asyncio.sleep(0.05)
        finally:
            await end(task)
        return live

    live = asyncio.run(scenario())
    plain.pipeline.finish()
    informed.pipeline.finish()
    # two reports make a track: ours begins with the second moment
    times = sorted(live.moments)[1:SECONDS]
    counts: Counter[str] = Counter()
    for t in times:
        moment = live.moments[t]
        theirs = {(min(pair), max(pair)) for pair in moment["conflicts"]}
        counts["agreed"] += len(theirs & plain.pairs[t])
        for pair in theirs ^ plain.pairs[t]:
            whose = "ours" if pair in plain.pairs[t] else "theirs"
            reason = explain(Two(moment, pair), ours=whose == "ours")
            assert reason, f"{t} {pair} {whose} alone"
            counts[f"{whose}, {reason}"] += 1
        # and with the altitudes that crews have selected, only who climbs or descends is judged differently
        for pair in plain.pairs[t] ^ informed.pairs[t]:
            assert climbs(moment, pair), f"{t} {pair}"
            counts["planned"] += 1
    print(f"\n{len(times)} ticks, {dict(counts)}")
    assert counts["agreed"] > 5 * len(times), "too empty to prove anything"
    assert 0 < counts["ours, flat Earth"] + counts["theirs, flat Earth"] < 0.03 * counts["agreed"]
    assert counts["planned"] > 0
