"""The pairs we find are the pairs BlueSky finds, and where they are not, geographiclib says who errs and why.

BlueSky's state-based detectors (NumPy and compiled) answer the same question as the scan: is there a time from now to
the look-ahead at which two aircraft are within a cylinder of radius `rpz` and half height `hpz`? They differ in how.

- Their Earth is flat: a plane around each pair, scaled by a sphere of 6,371 km and the cosine of the mean latitude, in
  which north is the same direction for both. Distances are wrong by some tenths of a percent, and tracks that converge
  on the globe do not in the plane. Pairs that pass 5 NM by less than that error may be judged differently.
- Their time of closest approach is that of the endless straight line, before now and after the look-ahead too; entry
  and exit times are cut to the horizon afterwards (`tinconf`, `toutconf`). Ours is within the horizon. For the set of
  pairs that makes no difference, since both ask whether the time inside meets the horizon. `swhorconf`, the closest
  approach being within `rpz` at any time, is only the first half of that question.
- A limit that is touched and not crossed: we say separated. The NumPy detector treats level pairs as closing at
  1e-6 m/s, so one of the two aircraft is always about to come nearer than exactly 1,000 ft. The compiled one does not,
  but it compares metres, and for many pairs of flight levels 304.8 m less rounding is under 304.8 m.
- The compiled detector divides by the relative speed; a formation at exactly one velocity gives NaN, and no conflict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.benchmarks.conflict_run import BlueSky, Options, Ours
from watchkeeper.benchmarks.traffic import Traffic, hot_spot
from watchkeeper.streams.geo import KT_MS, NM_M

pytest.importorskip("bluesky.traffic.asas.statebased", reason="needs the extra `bluesky`", exc_type=ImportError)

# its NumPy detector works with np.matrix
pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

WGS84 = Geodesic.WGS84
SPHERE_M = 6_371_000.0
RADIUS_M, HALF_HEIGHT_FT = 5 * NM_M, 1000.0
SCENES = 40
# Metres and feet that are nothing but rounding.
TINY_M, TINY_FT = 1e-3, 1e-6

Pair = tuple[int, int]


def options(detector: str, horizon_s: float) -> Options:
    return Options(
        detector=detector, n=0, rounds=1, least_rounds=1, budget_s=0.0, seed=0, density_per_10000_km2=0.0,
        horizon_s=horizon_s, separation_nm=RADIUS_M / NM_M, vertical_ft=HALF_HEIGHT_FT, max_pairs=20_000,
    )  # fmt: skip


def ours(traffic: Traffic, horizon_s: float) -> set[Pair]:
    candidate = Ours(traffic, options("ours", horizon_s))
    candidate.start()
    return candidate.pairs(candidate.scan())


@pytest.fixture(params=["numpy", "compiled"])
def theirs(request: pytest.FixtureRequest) -> Callable[[Traffic, float], set[Pair]]:
    if request.param == "compiled":
        pytest.importorskip(
            "bluesky.traffic.asas.cstatebased", reason="BlueSky without its compiled part", exc_type=ImportError
        )

    def detect(traffic: Traffic, horizon_s: float) -> set[Pair]:
        candidate = BlueSky(traffic, options(request.param, horizon_s))
        candidate.start()
        return candidate.pairs(candidate.scan())

    detect.name = request.param
    return detect


def scene(seed: int) -> tuple[Traffic, float]:
    """Ninety aircraft, four times as dense as a hot spot, anywhere between 20 and 60 degrees, and a horizon."""
    rng = np.random.default_rng(seed)
    paris = hot_spot(90, seed, 80.0)
    lat0 = rng.uniform(20.0, 60.0) * rng.choice([-1, 1])
    lat_deg = paris.lat_deg - 48.86 + lat0
    # degrees of longitude grow towards the poles, so that the disc stays one; somewhere around the globe
    lon_deg = rng.uniform(-180.0, 180.0) + (paris.lon_deg - 2.35) * math.cos(math.radians(48.86)) / math.cos(
        math.radians(lat0)
    )
    lon_deg = (lon_deg + 180.0) % 360.0 - 180.0
    # few levels: pairs exactly 1,000 ft apart abound
    alt_ft = np.where(paris.vs_fpm == 0.0, 30_000.0 + (paris.alt_ft - 28_000.0) % 4000.0, paris.alt_ft / 4 + 24_000.0)
    moved = Traffic(lat_deg, lon_deg, paris.trk_deg, paris.gs_kt, alt_ft, paris.vs_fpm)
    return moved, float(rng.choice([120.0, 300.0]))


class Encounter:
    """Two aircraft, exactly and as BlueSky sees them. Times in seconds from now."""

    def __init__(self, traffic: Traffic, pair: Pair, horizon_s: float) -> None:
        self._a, self._b = (
            [float(c[i]) for c in (traffic.lat_deg, traffic.lon_deg, traffic.trk_deg, traffic.gs_kt * KT_MS)]
            for i in pair
        )
        i, j = pair
        self.dz_ft = float(traffic.alt_ft[j] - traffic.alt_ft[i])
        self.climb_fts = float(traffic.vs_fpm[j] - traffic.vs_fpm[i]) / 60.0
        self.horizon_s = horizon_s
        lat_a, lon_a, trk_a, gs_a = self._a
        lat_b, lon_b, trk_b, gs_b = self._b
        east_deg = ((lon_b - lon_a + 180.0) % 360.0 - 180.0) * math.cos(math.radians(0.5 * (lat_a + lat_b)))
        self._x, self._y = SPHERE_M * math.radians(east_deg), SPHERE_M * math.radians(lat_b - lat_a)
        ta, tb = math.radians(trk_a), math.radians(trk_b)
        self._u = gs_b * math.sin(tb) - gs_a * math.sin(ta)
        self._v = gs_b * math.cos(tb) - gs_a * math.cos(ta)

    def exact_m(self, t: float) -> float:
        ends = [WGS84.Direct(lat, lon, trk, gs_ms * t) for lat, lon, trk, gs_ms in (self._a, self._b)]
        return float(WGS84.Inverse(ends[0]["lat2"], ends[0]["lon2"], ends[1]["lat2"], ends[1]["lon2"])["s12"])

    def flat_m(self, t: float) -> float:
        return math.hypot(self._x + self._u * t, self._y + self._v * t)

    def least_vertical_ft(self) -> float:
        """The smallest altitude difference within the horizon."""
        end_ft = self.dz_ft + self.climb_fts * self.horizon_s
        return 0.0 if self.dz_ft * end_ft <= 0.0 else min(abs(self.dz_ft), abs(end_ft))

    def window_s(self) -> tuple[float, float]:
        """From when to when within the horizon the two are vertically too close."""
        if self.climb_fts == 0.0:
            return 0.0, self.horizon_s
        ends = sorted(((side * HALF_HEIGHT_FT - self.dz_ft) / self.climb_fts) for side in (-1.0, 1.0))
        return max(0.0, ends[0]), min(self.horizon_s, ends[1])

    def flat_error_m(self) -> float:
        """How wrong the plane can be within the horizon, from geometry alone.

        No radius of curvature is more than 0.6 % from that of the sphere. Relative to the meridian between the two
        each track is turned by half the convergence of their meridians, tan(latitude) / radius for each metre east or
        west, and it turns by as much again on its way.
        """
        now_m, (a_m, b_m) = self.exact_m(0.0), (gs_ms * self.horizon_s for *_, gs_ms in (self._a, self._b))
        lat_deg = max(abs(self._a[0]), abs(self._b[0])) + math.degrees(max(a_m, b_m) / SPHERE_M)
        turn = math.tan(math.radians(lat_deg)) / SPHERE_M
        return 0.006 * now_m + 0.5 * turn * (now_m * (a_m + b_m) + a_m**2 + b_m**2)


def nearest(distance_m: Callable[[float], float], t0: float, t1: float) -> float:
    """The least distance in [t0, t1]. Near and straight as these tracks are, it has one minimum: golden section."""
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    lo, hi = t0, t1
    while hi - lo > 1e-6:
        p, q = hi - golden * (hi - lo), lo + golden * (hi - lo)
        lo, hi = (lo, q) if distance_m(p) < distance_m(q) else (p, hi)
    return min(distance_m(t) for t in (t0, 0.5 * (lo + hi), t1))


def explain(encounter: Encounter, *, we_found_it: bool) -> str:
    """Why BlueSky and we differ over this pair; empty if there is no good reason."""
    vertical_ft = encounter.least_vertical_ft()
    if abs(vertical_ft - HALF_HEIGHT_FT) <= TINY_FT:
        # touched, never crossed: only BlueSky may call that a conflict
        return "" if we_found_it else "exactly 1,000 ft"
    t0, t1 = encounter.window_s()
    if not t0 < t1:
        return ""
    exact_m, flat_m = nearest(encounter.exact_m, t0, t1), nearest(encounter.flat_m, t0, t1)
    if abs(exact_m - RADIUS_M) <= TINY_M:
        return "" if we_found_it else "exactly 5 NM"
    # we say what the ellipsoid says, they say what the plane says, and the two are no further apart than they can be
    if we_found_it != (exact_m < RADIUS_M):
        return ""
    if abs(flat_m - RADIUS_M) > TINY_M and we_found_it == (flat_m < RADIUS_M):
        return ""
    return "flat Earth" if abs(exact_m - flat_m) <= encounter.flat_error_m() else ""


def test_every_difference_in_random_scenes_is_explained(theirs):
    reasons: Counter[str] = Counter()
    agreed = 0
    for seed in range(SCENES):
        traffic, horizon_s = scene(seed)
        we, they = ours(traffic, horizon_s), theirs(traffic, horizon_s)
        agreed += len(we & they)
        for pair in sorted(we ^ they):
            encounter = Encounter(traffic, pair, horizon_s)
            reason = explain(encounter, we_found_it=pair in we)
            assert reason, f"scene {seed}, pair {pair}, found by {'us' if pair in we else 'BlueSky'} alone"
            reasons[reason] += 1
    print(f"\n{theirs.name}: {agreed} pairs in common, differences: {dict(reasons)}")
    assert agreed > 20 * SCENES, "the scenes are too empty to prove anything"
    assert reasons["exactly 1,000 ft"] > 0
    assert 0 < reasons["flat Earth"] < 0.02 * agreed, "such pairs exist but are rare"


def test_closest_approach_differs_by_no_more_than_a_flat_earth_can():
    """Wherever theirs lies within the horizon too. Ours is what geographiclib measures at that time."""
    compared, worst_m = 0, 0.0
    for seed in range(8):
        traffic, horizon_s = scene(seed)
        we, they = (make(traffic, options("numpy", horizon_s)) for make in (Ours, BlueSky))
        we.start()
        they.start()
        found = we.scan()
        pairs = zip(we.work.pair_a[:found].tolist(), we.work.pair_b[:found].tolist(), strict=True)
        mine = dict(zip(pairs, we.work.pairs[["tcpa_s", "dcpa_m"]][:found].tolist(), strict=True))
        names, _, _, _, _, _, dcpa_m, tcpa_s, _ = they.scan()  # each pair from both sides
        for (a, b), flat_m, flat_s in zip(names, dcpa_m.tolist(), tcpa_s.tolist(), strict=True):
            pair = int(a, 16), int(b, 16)
            if pair not in mine or not 0.0 <= flat_s <= horizon_s:
                continue
            exact_s, exact_m = mine[pair]
            encounter = Encounter(traffic, pair, horizon_s)
            assert abs(encounter.exact_m(exact_s) - exact_m) < TINY_M
            assert abs(encounter.flat_m(flat_s) - flat_m) < TINY_M
            assert abs(exact_m - flat_m) <= encounter.flat_error_m()
            # nobody found a moment at which the pair is nearer
            assert encounter.exact_m(flat_s) >= exact_m - TINY_M
            assert encounter.flat_m(exact_s) >= flat_m - TINY_M
            compared += 1
            worst_m = max(worst_m, abs(exact_m - flat_m))
    print(f"\n{compared} pairs, DCPA apart by up to {worst_m:.0f} m")
    assert compared > 100
    assert worst_m > 1.0, "no difference at all would mean that this compares a thing with itself"


def head_on(*alt_ft: float) -> Traffic:
    """Pairs on collision course, one after the other, each with these two altitudes; far from the other pairs."""
    n = len(alt_ft)
    k = np.arange(n)
    return Traffic(
        lat_deg=30.0 + 2.0 * (k // 2 % 12),
        lon_deg=4.0 * (k // 24) + 0.3 * (k % 2),
        trk_deg=np.where(k % 2 == 0, 90.0, 270.0),
        gs_kt=np.full(n, 450.0),
        alt_ft=np.array(alt_ft),
        vs_fpm=np.zeros(n),
    )


LEVELS_FT = np.arange(3000.0, 41_000.0, 1000.0)


@pytest.mark.parametrize(("apart_ft", "lost"), [(975.0, True), (1000.0, False), (1025.0, False)])
def test_only_bluesky_flags_level_pairs_exactly_1000_ft_apart(theirs, apart_ft, lost):
    traffic = head_on(*(alt for level in LEVELS_FT for alt in (level, level + apart_ft)))
    every = {(2 * k, 2 * k + 1) for k in range(len(LEVELS_FT))}
    assert ours(traffic, 120.0) == (every if lost else set())
    they = theirs(traffic, 120.0)
    if apart_ft != HALF_HEIGHT_FT:
        assert they == (every if lost else set())
    elif theirs.name == "numpy":
        assert they == every
    else:  # those whose difference in metres is rounded down
        rounded = {
            (2 * k, 2 * k + 1)
            for k, level in enumerate(LEVELS_FT)
            if (level + 1000.0) * 0.3048 - level * 0.3048 < 304.8
        }
        assert they == rounded
        assert 0 < len(they) < len(every)


def passing(lat_deg: float, line_deg: float, apart_m: float) -> Traffic:
    """Two in opposite directions, apart_m at closest approach in 60 s, where the line between them has this azimuth."""
    gs_kt, back_m = 450.0, -450.0 * KT_MS * 60.0
    line = WGS84.Direct(lat_deg, 10.0, line_deg, apart_m)
    first = WGS84.Direct(lat_deg, 10.0, line_deg + 90.0, back_m)
    second = WGS84.Direct(line["lat2"], line["lon2"], line["azi2"] - 90.0, back_m)
    columns = [np.array([first[key], second[key]]) for key in ("lat2", "lon2", "azi2")]
    return Traffic(*columns, np.full(2, gs_kt), np.full(2, 30_000.0), np.zeros(2))


@pytest.mark.parametrize("line_deg", [0.0, 45.0, 90.0, 200.0])
@pytest.mark.parametrize("lat_deg", [-50.0, 25.0, 45.0])
def test_exactly_5_nm_is_separated_whatever_a_flat_earth_says(theirs, lat_deg, line_deg):
    exactly = passing(lat_deg, line_deg, RADIUS_M)
    assert ours(exactly, 120.0) == set()
    assert ours(passing(lat_deg, line_deg, RADIUS_M - 0.01), 120.0) == {(0, 1)}
    assert ours(passing(lat_deg, line_deg, RADIUS_M + 0.01), 120.0) == set()
    if theirs(exactly, 120.0):
        assert explain(Encounter(exactly, (0, 1), 120.0), we_found_it=False) == "exactly 5 NM"


def test_bluesky_errs_on_exactly_5_nm_in_both_directions(theirs):
    """East and west of each other its plane is too small, north and south too large (at 45 degrees)."""
    assert theirs(passing(45.0, 90.0, RADIUS_M), 120.0) == {(0, 1)}
    nearer = passing(45.0, 0.0, RADIUS_M - 3.0)
    assert ours(nearer, 120.0) == {(0, 1)}
    assert theirs(nearer, 120.0) == set()
    assert explain(Encounter(nearer, (0, 1), 120.0), we_found_it=True) == "flat Earth"


def test_a_formation_is_lost_separation_but_not_to_the_compiled_detector(theirs):
    formation = Traffic(
        np.array([45.0, 45.0]), np.array([10.0, 10.05]), np.zeros(2), np.full(2, 400.0), np.full(2, 3e4), np.zeros(2)
    )
    assert ours(formation, 120.0) == {(0, 1)}
    assert theirs(formation, 120.0) == (set() if theirs.name == "compiled" else {(0, 1)})
