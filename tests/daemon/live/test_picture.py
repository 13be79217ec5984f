"""The live page's picture: what is decoded is the fleet, whatever is in it; names are told when they change."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import FleetLimits
from watchkeeper.daemon.live import picture as live_picture
from watchkeeper.daemon.live.roster import Roster
from watchkeeper.daemon.live.scores import NO_KIND, Scores, vehicle_kinds
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import columns_of
from watchkeeper.streams.messages import Kind

CAPACITY = 40
T = 1_700_000_000.0


def decode(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """As the page does it (daemon/live/page/wire.js), from the description of the layout alone."""
    assert message[:4] == b"WKP1"
    (length,) = struct.unpack_from("<I", message, 4)
    header = msgspec.json.decode(message[8 : 8 + length])
    at, columns = 8 + length, {}
    for name, kind, rows in header["columns"]:
        assert at % 8 == 0
        columns[name] = np.frombuffer(message, "<" + kind, rows, at)
        at += -(-columns[name].nbytes // 8) * 8
    assert at == len(message)
    return header, columns


def ingest(fleet: Fleet, kind: Kind, rows: dict[str, dict[str, float]], t: float) -> None:
    slot = np.array([fleet.slot_for(name) for name in rows], np.int32)
    order = np.argsort(slot)
    names = {field for row in rows.values() for field in row}
    values = {n: np.array([row.get(n, np.nan) for row in rows.values()])[order] for n in names}
    cols = columns_of(kind, slot[order], np.full(len(rows), t), values)
    fleet.ingest(Samples(kind, cols.vid, cols.t, cols.data, cols.via))


def picture(fleet: Fleet, scores: Scores | None = None, t: float = T, *, enu: bool = False) -> dict[str, np.ndarray]:
    scores = scores or Scores(fleet.capacity)
    columns = live_picture.vehicles(fleet, scores, t, enu=enu) | live_picture.pairs(scores)
    return decode(live_picture.encode({"t": t}, columns))[1]


aircraft = st.fixed_dictionaries(
    {"lat": st.floats(-90, 90), "lon": st.floats(-180, 179.999)},
    optional={
        "alt_ft": st.floats(-5000, 200_000), "gs_kt": st.floats(0, 5000), "trk_deg": st.floats(0, 359.9),
        "vs_fpm": st.floats(-60_000, 60_000), "on_ground": st.sampled_from([0.0, 1.0]),
    },
)  # fmt: skip
local = st.fixed_dictionaries(
    {"gps_x": st.floats(-1e7, 1e7), "gps_y": st.floats(-1e7, 1e7)},
    optional={"gps_z": st.floats(-1e7, 1e7), "gps_vx": st.floats(-99, 99), "gps_vy": st.floats(-99, 99)},
)
names = st.lists(st.text("abcdef0123456789", min_size=1, max_size=6), unique=True, max_size=CAPACITY)


@settings(max_examples=60, deadline=None)
@given(names, st.data())
def test_what_is_decoded_is_the_fleet(ids: list[str], data: st.DataObject) -> None:
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    told: dict[str, tuple[Kind, dict[str, float]]] = {}
    for name in ids:
        kind = data.draw(st.sampled_from([Kind.ADSB, Kind.GPS]))
        told[name] = kind, data.draw(aircraft if kind is Kind.ADSB else local)
    for kind in (Kind.ADSB, Kind.GPS):
        rows = {name: row for name, (k, row) in told.items() if k is kind}
        if rows:
            ingest(fleet, kind, rows, T - 2.0)
    found = picture(fleet)
    assert [fleet.ids[slot] for slot in found["slot"]] == sorted(told, key=fleet.slot_of.__getitem__)
    for i, slot in enumerate(found["slot"]):
        kind, row = told[fleet.ids[slot]]
        nan = float("nan")
        assert found["age_s"][i] == 2.0
        if kind is Kind.ADSB:
            assert found["frame"][i] == live_picture.ADSB
            assert found["y"][i] / 1e7 == pytest.approx(row["lat"], abs=5.1e-8)
            assert found["x"][i] / 1e7 == pytest.approx(row["lon"], abs=5.1e-8)
            assert found["alt_m"][i] == pytest.approx(row.get("alt_ft", nan) * 0.3048, rel=1e-6, nan_ok=True)
            assert found["speed_mps"][i] == pytest.approx(row.get("gs_kt", nan) * 1852 / 3600, rel=1e-6, nan_ok=True)
            assert found["track_deg"][i] == pytest.approx(row.get("trk_deg", nan), rel=1e-6, nan_ok=True)
            assert found["climb_mps"][i] == pytest.approx(row.get("vs_fpm", nan) * 0.00508, rel=1e-6, nan_ok=True)
            assert found["ground"][i] == (row.get("on_ground") == 1.0)
        else:
            assert found["frame"][i] == live_picture.LOCAL
            assert found["y"][i] / 100 == pytest.approx(row["gps_x"], abs=0.0051)
            assert found["x"][i] / 100 == pytest.approx(row["gps_y"], abs=0.0051)
            assert found["alt_m"][i] == pytest.approx(-row.get("gps_z", nan), rel=1e-6, nan_ok=True)


def test_axes_of_a_local_frame_are_those_of_the_configuration() -> None:
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    ingest(fleet, Kind.GPS, {"d": {"gps_x": 3, "gps_y": 4, "gps_z": 5, "gps_vx": 0, "gps_vy": 2, "gps_vz": 1}}, T)
    ned, enu = picture(fleet), picture(fleet, enu=True)
    assert (ned["y"][0], ned["x"][0], ned["alt_m"][0], ned["climb_mps"][0]) == (300, 400, -5, -1)
    assert (enu["y"][0], enu["x"][0], enu["alt_m"][0], enu["climb_mps"][0]) == (400, 300, 5, 1)
    assert (ned["track_deg"][0], enu["track_deg"][0]) == (90, 0)


def test_of_two_places_the_newer_one_is_shown_and_who_has_none_is_not() -> None:
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    ingest(fleet, Kind.GPS, {"both": {"lat": 1.0, "lon": 2.0}}, T - 3)
    ingest(fleet, Kind.ADSB, {"both": {"lat": 5.0, "lon": 6.0}}, T - 1)
    zero = dict.fromkeys(("imu_ax", "imu_ay", "imu_az", "imu_wx", "imu_wy", "imu_wz"), 0.0)
    ingest(fleet, Kind.IMU, {"blind": zero}, T)
    found = picture(fleet)
    assert len(found["slot"]) == 1
    assert (found["frame"][0], found["y"][0], found["age_s"][0]) == (live_picture.ADSB, 50_000_000, 1.0)


def evidence(kind: str, a: list[int], score: list[float], **more: Any) -> Evidence:
    n = len(a)
    return Evidence(
        kind, np.array(a, np.int32), t=np.full(n, T), epoch=np.full(n, T), score=np.array(score, float),
        threshold=np.full(n, 2.0), severity=np.ones(n, np.uint8), **more,
    )  # fmt: skip


def test_the_worst_score_is_shown_until_it_is_old() -> None:
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    ingest(fleet, Kind.ADSB, {n: {"lat": 0.0, "lon": 0.0} for n in "abc"}, T)
    scores = Scores(CAPACITY)
    said = [evidence("kinematics", [0, 1], [1.0, 3.0]), evidence("gps_imu", [0, 0], [9.0, 4.0])]
    scores.take(Window(T, {}), said)
    found = picture(fleet, scores)
    # of two rows about one vehicle the later one counts
    assert found["score"][:2].tolist() == [2.0, 1.5]
    assert [vehicle_kinds()[k] for k in found["worst"][:2]] == ["gps_imu", "kinematics"]
    assert np.isnan(found["score"][2])
    assert found["worst"][2] == NO_KIND
    assert np.isnan(picture(fleet, scores, T + 60)["score"]).all()


def test_pairs_come_with_the_most_probable_first_and_without_the_improbable() -> None:
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    scores = Scores(CAPACITY)
    numbers = {name: np.array([1.0, 2.0, 3.0]) for name in ("tcpa_s", "dcpa_nm", "vsep_ft", "sep_nm", "los")}
    b = np.array([3, 4, 5], np.int32)
    scores.take(Window(T, {}), [evidence("conflict", [0, 1, 2], [0.2, 1.0, 2.0], b=b, numbers=numbers)])
    found = picture(fleet, scores)
    assert found["pair_a"].tolist() == [2, 1]
    assert found["pair_b"].tolist() == [5, 4]
    assert found["pair_tcpa_s"].tolist() == [3.0, 2.0]


def test_a_sky_full_of_conflicts_is_cut() -> None:
    scores = Scores(CAPACITY)
    n = live_picture.MAX_PAIRS + 50
    numbers = {name: np.ones(n) for name in ("tcpa_s", "dcpa_nm", "vsep_ft", "sep_nm", "los")}
    found = evidence("conflict", [0] * n, [2.0] * n, b=np.ones(n, np.int32), numbers=numbers)
    scores.take(Window(T, {}), [found])
    assert len(live_picture.pairs(scores)["pair_a"]) == live_picture.MAX_PAIRS


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "X1", "Y2"])), max_size=6)))
def test_whoever_applies_the_changes_knows_all_names(steps: list[list[tuple[str, str]]]) -> None:
    """A page that skips some versions ends with the same names as one that saw them all."""
    fleet = Fleet(FleetLimits(max_vehicles=CAPACITY))
    roster, every, some = Roster(), {}, {}
    known = {"every": 0, "some": 0}

    def apply(names: dict[int, tuple[str, str]], since: str) -> None:
        told = roster.since(known[since])
        names.update(zip(told["slots"], zip(told["ids"], told["callsigns"], strict=True), strict=True))
        known[since] = roster.version

    for i, step in enumerate(steps):
        for name, callsign in step:
            fleet.slot_for(name)
            fleet.callsigns[name] = callsign
        if i % 3 == 2:
            fleet.forget(np.array([fleet.slot_of[name] for name, _ in step[:1]], np.int32), T)
        roster.update(fleet)
        apply(every, "every")
        if i % 4 == 0:
            apply(some, "some")
    apply(some, "some")
    assert every == some
    assert {name: slot for slot, (name, _) in every.items() if name} == fleet.slot_of
    assert all(fleet.callsigns.get(name, "") == callsign for name, callsign in every.values())
    version = roster.version
    roster.update(fleet)
    assert roster.version == version
