"""Simulated aircraft: trajectories and truth against geographiclib, and reports with the steps of real ADS-B."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import Simulation, simulate
from watchkeeper.streams.simulate.adsb import cpr_grid, longitude_zones

WGS84 = Geodesic.WGS84
PAIRS = ["head-on", "crossing", "overtaking", "vertical", "formation"]
KT, NM = 1852.0 / 3600.0, 1852.0

NOT_SENT = {"sel_hdg_deg", "squawk", "tcas_ra", "emergency", "category", "operator_m"}


def tracks(sim: Simulation) -> dict[str, dict[str, np.ndarray]]:
    """Every aircraft's reports by field, in order of time."""
    number: dict[str, int] = {}
    pieces = []
    for batch in sim.batches():
        columns = batch.kinds[Kind.ADSB]
        ids = np.array([number.setdefault(name, len(number)) for name in batch.ids])
        pieces.append(np.vstack((ids[columns.vid], columns.t, columns.data)))
    table = np.hstack(pieces)
    table = table[:, np.lexsort((table[1], table[0]))]
    edges = np.searchsorted(table[0], np.arange(len(number) + 1))
    result = {}
    for name, i in number.items():
        part = table[1:, edges[i] : edges[i + 1]]
        if part.size:
            result[name] = {"t": part[0]} | {f: part[1 + c] for f, c in COLUMN[Kind.ADSB].items()}
    return result


def at(track: dict[str, np.ndarray], dt: float) -> tuple[float, float]:
    """Where geographiclib puts an aircraft dt seconds after its first report, straight on."""
    line = WGS84.Direct(track["lat"][0], track["lon"][0], track["trk_deg"][0], track["gs_kt"][0] * KT * dt)
    return line["lat2"], line["lon2"]


def distance(p: tuple[float, float], q: tuple[float, float]) -> float:
    return float(WGS84.Inverse(*p, *q)["s12"])


@pytest.mark.parametrize("scenario", ["head-on", "crossing", "overtaking"])
@pytest.mark.parametrize("seed", [0, 1])
def test_closest_approach_of_the_truth_is_that_of_the_geodesics(scenario, seed):
    sim = simulate(scenario, seed=seed)
    (pair,) = sim.truth()["pairs"]
    flown = tracks(sim)
    a, b = flown[pair["a"]], flown[pair["b"]]
    # golden-section search for the least distance, on positions that only geographiclib computed
    lo, hi = 0.0, sim.seconds
    while hi - lo > 1e-4:
        x, y = hi - (hi - lo) * 0.618034, lo + (hi - lo) * 0.618034
        if distance(at(a, x), at(b, x)) < distance(at(a, y), at(b, y)):
            hi = y
        else:
            lo = x
    assert pair["tcpa_t"] - sim.t0 == pytest.approx(lo, abs=0.05)
    assert pair["min_sep_nm"] * NM == pytest.approx(distance(at(a, lo), at(b, lo)), abs=0.05)
    for key in ("t_los_in", "t_los_out"):
        dt = pair[key] - sim.t0
        assert distance(at(a, dt), at(b, dt)) == pytest.approx(5.0 * NM, abs=1.0)


@pytest.mark.parametrize("scenario", PAIRS)
def test_a_clean_aircraft_stays_on_its_geodesic_to_a_millimetre(scenario):
    flown = tracks(simulate(scenario, seed=4, seconds=100.0))
    for track in flown.values():
        turned = np.abs((np.diff(track["trk_deg"]) + 180.0) % 360.0 - 180.0) > 0.05
        straight = int(np.argmax(turned)) if turned.any() else len(track["t"]) - 1
        dt = track["t"][straight] - track["t"][0]
        end = (track["lat"][straight], track["lon"][straight])
        assert distance(at(track, dt), end) < 1e-3


@pytest.mark.parametrize("scenario", PAIRS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_only_the_pair_loses_separation_however_many_others_fly(scenario, seed):
    truth = simulate(scenario, seed=seed, vehicles=60).truth()
    pair = {k for k, v in truth["vehicles"].items() if v["role"] == "pair"}
    assert [{p["a"], p["b"]} for p in truth["pairs"]] == [pair]
    assert truth["pairs"][0]["a"] < truth["pairs"][0]["b"]


def test_vertical_passes_through_the_level_and_formation_never_separates():
    (vertical,) = simulate("vertical").truth()["pairs"]
    assert vertical["min_vsep_ft"] < 1e-6
    assert vertical["t_los_out"] - vertical["t_los_in"] < 100.0
    sim = simulate("formation")
    (formation,) = sim.truth()["pairs"]
    assert (formation["t_los_in"], formation["t_los_out"]) == (sim.t0, sim.t0 + sim.seconds)


def test_losses_of_random_traffic_are_those_that_brute_force_finds():
    sim = simulate("random", vehicles=300, seconds=120.0, noise=False, seed=2)
    truth = sim.truth()
    flown = tracks(sim)
    second = defaultdict(list)
    for name, track in flown.items():
        for i, t in enumerate(track["t"]):
            second[round(t - sim.t0)].append((name, track["lat"][i], track["lon"][i], track["alt_ft"][i]))
    expected: set[tuple[str, str, int]] = set()
    for s in range(0, 120, 10):
        present = second[s]
        for i, (a, lat_a, lon_a, alt_a) in enumerate(present):
            for b, lat_b, lon_b, alt_b in present[i + 1 :]:
                near = abs(alt_a - alt_b) < 1000.0 and abs(lat_a - lat_b) < 0.1
                if near and distance((lat_a, lon_a), (lat_b, lon_b)) < 5.0 * NM:
                    expected.add((min(a, b), max(a, b), s))
    found = {
        (p["a"], p["b"], s)
        for p in truth["pairs"]
        for s in range(0, 120, 10)
        if p["t_los_in"] - sim.t0 <= s < p["t_los_out"] - sim.t0
    }
    assert len(expected) > 10
    assert found == expected


def test_demo_pair_is_in_conflict_at_first_and_parts_without_losing_separation():
    sim = simulate("demo", seed=3)
    truth = sim.truth()
    assert truth["pairs"] == []
    a, b = (t for n, t in tracks(sim).items() if truth["vehicles"][n]["role"] == "pair")
    predicted = [distance(at(a, dt), at(b, dt)) for dt in range(60, 140)]
    assert min(predicted) < 3.0 * NM

    def straight_on(i: int) -> float:
        """Least distance ahead if both fly on as in report i."""
        fa = {k: v[i:] for k, v in a.items()}
        fb = {k: v[i:] for k, v in b.items()}
        return min(distance(at(fa, dt), at(fb, dt)) for dt in range(120))

    assert straight_on(36) > 8.0 * NM


def test_reports_come_in_the_steps_of_real_ads_b():
    flown = tracks(simulate("random", vehicles=100, seconds=60.0))
    alt, gs, vs, trk = (
        np.concatenate([t[f] for t in flown.values()]) for f in ("alt_ft", "gs_kt", "vs_fpm", "trk_deg")
    )
    alt, vs, gs_known = alt[~np.isnan(alt)], vs[~np.isnan(vs)], gs[~np.isnan(gs)]
    assert np.all(alt % 25.0 == 0.0)
    assert np.all(vs % 64.0 == 0.0)
    assert np.any(vs != 0.0)
    assert np.all(gs_known % 1.0 == 0.0)
    assert np.nanmin(trk) >= 0.0
    assert np.nanmax(trk) < 360.0
    # velocity components are whole knots before gs is rounded, so the track comes in steps too
    steps = np.concatenate([np.abs(np.diff(np.unique(t["trk_deg"][~np.isnan(t["trk_deg"])]))) for t in flown.values()])
    assert 0.02 < np.median(steps) < 0.7


def test_random_traffic_loses_some_reports_and_some_values_and_geometric_traffic_none():
    sim = simulate("random", vehicles=300, seconds=60.0)
    flown = tracks(sim)
    reports = sum(len(t["t"]) for t in flown.values())
    assert 0.94 * 300 * 60 < reports < 0.99 * 300 * 60
    missing = np.concatenate([np.isnan(t["gs_kt"]) for t in flown.values()])
    assert 0.005 < missing.mean() < 0.02
    clean = simulate("crossing", noise=True, seconds=60.0)
    for track in tracks(clean).values():
        assert len(track["t"]) in (60, 61)
        # the simulator sends neither codes nor advisories, nor what an aircraft is
        assert not any(np.isnan(values).any() for name, values in track.items() if name not in NOT_SENT)


def test_noise_moves_positions_by_metres_and_keeps_the_trajectory():
    exact = tracks(simulate("crossing", seconds=60.0))
    noisy = tracks(simulate("crossing", seconds=60.0, noise=True))
    for name, track in exact.items():
        errors = [
            distance(at(track, t - track["t"][0]), (lat, lon))
            for t, lat, lon in zip(noisy[name]["t"], noisy[name]["lat"], noisy[name]["lon"], strict=True)
        ]
        assert 0.3 < np.mean(errors) < 60.0
        assert np.std(np.diff(noisy[name]["t"])) > 0.005


def test_rate_is_the_number_of_reports_per_second():
    for rate_hz in (0.2, 1.0, 2.5):
        for noise in (False, True):
            sim = simulate("crossing", seconds=60.0, rate_hz=rate_hz, noise=noise)
            assert all(abs(len(t["t"]) - 60.0 * rate_hz) <= 1.0 for t in tracks(sim).values())


def test_aircraft_come_and_go_and_no_address_is_used_twice():
    sim = simulate("random", vehicles=200, seconds=600.0)
    truth = sim.truth()
    assert 220 < len(truth["vehicles"]) < 500
    flown = tracks(sim)
    for name, vehicle in truth["vehicles"].items():
        if name in flown:
            assert flown[name]["t"][0] >= vehicle["t_first"]
            assert flown[name]["t"][-1] < vehicle["t_last"] + 0.2
            # longest pause: losses of 3 % never join up to ten in a row here
            assert np.diff(flown[name]["t"]).max(initial=0.0) < 8.0


def test_random_traffic_flies_within_what_airliners_do():
    flown = tracks(simulate("random", vehicles=200, seconds=300.0, noise=False))
    for track in flown.values():
        assert track["gs_kt"].min() > 200.0
        assert track["gs_kt"].max() < 600.0
        assert track["alt_ft"].min() > 9_000.0
        assert track["alt_ft"].max() <= 42_000.0
        assert np.abs(track["vs_fpm"]).max() < 3_500.0
        rate = np.abs((np.diff(track["trk_deg"]) + 180.0) % 360.0 - 180.0)
        assert rate.max(initial=0.0) < 3.0
        # the reported vertical rate is the slope of the reported altitude
        assert np.allclose(np.diff(track["alt_ft"]), track["vs_fpm"][:-1] / 60.0, atol=1e-6)


@pytest.mark.parametrize(("lat", "zones"), [(0.0, 59), (10.5, 58), (52.0, 36), (-52.0, 36), (86.9, 2), (87.5, 1)])
def test_longitude_zones_follow_the_table_of_the_standard(lat, zones):
    assert longitude_zones(np.array([lat]))[0] == zones


def test_position_grid_is_five_metres_or_finer():
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(-85, 85, 2000), rng.uniform(-180, 180, 2000)
    grid_lat, grid_lon = cpr_grid(lat, lon, rng.random(2000) < 0.5)
    assert np.abs(grid_lat - lat).max() * 111_200.0 < 2.7
    assert (np.abs(grid_lon - lon) * 111_320.0 * np.cos(np.radians(lat))).max() < 5.2
    assert len(np.unique(grid_lat)) > 1900
