"""The attack catalogue: every entry does what it says, to the window only, and the same again from the same seed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from scipy.spatial.transform import Rotation

from watchkeeper.evaluation.attacks.catalogue import EFFECTS, AttackError, Catalogue, catalogue, inject
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.reference import reference
from watchkeeper.evaluation.attacks.scene import FORCE, PLACE, RATE, RAW, VELOCITY
from watchkeeper.evaluation.protocol.noise_floor import floor
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

from where import DOCS

G, M = COLUMN[Kind.GPS], COLUMN[Kind.IMU]
ATTACKS = catalogue().attacks


def made_up(seconds: float = 300.0, flight_id: str = "quad-1") -> Flight:
    """A vehicle that circles at 5 m/s, with noise so that no two samples are alike, and all optional fields."""
    rng = np.random.default_rng(5)
    gps_t, imu_t = np.arange(0.0, seconds, 0.2), np.arange(0.0, seconds, 0.02)
    gps = rng.normal(0.0, 0.05, (len(FIELDS[Kind.GPS]), len(gps_t)))
    angle = 0.1 * gps_t
    gps[G["gps_x"]] += 50.0 * np.sin(angle)
    gps[G["gps_y"]] += 50.0 * np.cos(angle)
    gps[G["gps_vx"]] += 5.0 * np.cos(angle)
    gps[G["gps_vy"]] -= 5.0 * np.sin(angle)
    gps[G["sats"]], gps[G["hdop"]], gps[G["fix"]] = 12.0, 0.8, 3.0
    for name in ("lat", "lon", "alt_m", "eph", "epv"):
        gps[G[name]] = np.nan
    imu = rng.normal(0.0, 0.2, (len(FIELDS[Kind.IMU]), len(imu_t)))
    imu[M["imu_az"]] -= 9.8
    return Flight(flight_id, Stream(gps_t, gps), Stream(imu_t, imu))


FLIGHT = made_up()


def change(name: str, flight: Flight = FLIGHT, **options):
    """What an attack adds to the GPS and IMU fields in its window, and the injection."""
    made = inject(catalogue().find(name), flight, **options)
    return (
        made.gps.data - flight.gps.data[:, made.gps_rows],
        made.imu.data - flight.imu.data[:, made.imu_rows],
        made,
    )


def length(offset: np.ndarray) -> np.ndarray:
    return np.linalg.norm(offset, axis=0)


def test_the_catalogue_is_whole_and_holds_what_the_protocol_asks_for():
    names, families = [attack.name for attack in ATTACKS], catalogue().families
    assert len(set(names)) == len(names)
    assert set(families) == set(EFFECTS) == {attack.family for attack in ATTACKS}
    sizes = {f: {a.magnitude for a in ATTACKS if a.family == f} for f in families}
    assert {0.1, 0.5, 1, 2, 5, 10, 20, 50, 100} <= sizes["gps_bias"]
    assert {0.01, 0.05, 0.1, 0.2, 0.5, 1, 2} <= sizes["gps_drift"]
    assert 2 in sizes["coordinated"]
    assert 2 in sizes["coordinated_imu"]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_every_attack_changes_its_window_and_nothing_else_and_is_the_same_again(attack):
    made, again = inject(attack, FLIGHT), inject(attack, made_up())
    whole = made.attacked_flight()
    assert made.touched
    for kind, rows in ((Kind.GPS, made.gps_rows), (Kind.IMU, made.imu_rows)):
        clean, spoilt = FLIGHT.stream(kind), whole.stream(kind)
        assert np.array_equal(clean.data[:, : rows.start], spoilt.data[:, : rows.start], equal_nan=True)
        tail = len(clean) - rows.stop
        assert tail > 0
        if attack.family != "gps_clock":
            assert np.array_equal(clean.data[:, -tail:], spoilt.data[:, -tail:], equal_nan=True)
        assert (np.diff(spoilt.t) >= 0.0).all()
        same = again.attacked_flight().stream(kind)
        assert spoilt.t.tobytes() == same.t.tobytes()
        assert spoilt.data.tobytes() == same.data.tobytes()
    assert made.t_start + 0.2 >= 60.0
    assert made.t_end <= FLIGHT.end - 5.0
    stream = catalogue().families[attack.family].stream
    if stream == "gps":
        assert np.array_equal(made.imu.data, FLIGHT.imu.data[:, made.imu_rows])
    if stream == "imu":
        assert np.array_equal(made.gps.data, FLIGHT.gps.data[:, made.gps_rows], equal_nan=True)


def test_another_flight_seed_or_repeat_is_another_moment():
    attack = catalogue().find("gps_bias_10m")
    onsets = {
        inject(attack, FLIGHT).t_start,
        inject(attack, FLIGHT, repeat=1).t_start,
        inject(attack, replace(FLIGHT, id="quad-2")).t_start,
        inject(msgspec.structs.replace(attack, seed=99), FLIGHT).t_start,
    }
    assert len(onsets) == 4


def test_magnitudes_of_a_family_meet_the_same_moment_and_direction():
    small, _, a = change("gps_bias_1m")
    large, _, b = change("gps_bias_100m")
    assert a.t_start == b.t_start
    assert large[PLACE] == pytest.approx(100.0 * small[PLACE], abs=1e-9)


def test_a_bias_is_horizontal_and_as_large_as_it_says():
    gps, _, _ = change("gps_bias_10m")
    assert length(gps[PLACE]) == pytest.approx(10.0)
    assert not gps[G["gps_z"]].any()
    assert not gps[VELOCITY].any()


def test_a_drift_grows_from_nothing_and_the_velocity_keeps_quiet():
    gps, _, made = change("gps_drift_2mps")
    assert length(gps[PLACE]) == pytest.approx(2.0 * (made.gps.t - made.t_start))
    assert not gps[VELOCITY].any()


@pytest.mark.parametrize("name", ["coordinated_2mps", "coordinated_ramp_2mps", "coordinated_imu_2mps"])
def test_a_coordinated_spoof_is_consistent_with_itself(name):
    gps, _, made = change(name)
    # the added position is the integral of the added velocity (trapezoids are exact for a speed that rises linearly,
    # but for the interval in which the rise ends)
    steps = np.diff(made.gps.t) * (gps[VELOCITY][:, 1:] + gps[VELOCITY][:, :-1]) / 2.0
    assert np.diff(gps[PLACE], axis=1) == pytest.approx(steps, abs=2e-2)
    assert length(gps[VELOCITY])[-1] == pytest.approx(2.0)


def test_the_invented_acceleration_turns_with_the_body():
    level = made_up()
    for name, angle in (("roll", 0.0), ("pitch", 0.0), ("yaw", np.pi / 2)):
        level.imu.data[M[name]] = angle
    gps, imu, made = change("coordinated_imu_2mps", level)
    ahead = gps[VELOCITY][:, -1] / 2.0
    early = made.imu.t - made.t_start < 4.0
    # heading east: north is to the left (-right), east is ahead
    assert imu[FORCE][0, early] == pytest.approx(0.5 * ahead[1])
    assert imu[FORCE][1, early] == pytest.approx(-0.5 * ahead[0])
    assert imu[FORCE][:, ~early] == pytest.approx(0.0)


def test_the_invented_acceleration_agrees_with_a_rotation_library():
    flight = made_up()
    rng = np.random.default_rng(1)
    angles = {name: rng.uniform(-1.0, 1.0, len(flight.imu)) for name in ("roll", "pitch", "yaw")}
    for name, column in angles.items():
        flight.imu.data[M[name]] = column
    gps, imu, made = change("coordinated_imu_5mps", flight)
    side = gps[VELOCITY][:, -1] / 5.0
    early = np.flatnonzero(made.imu.t - made.t_start < 4.0)
    rows = early + made.imu_rows.start
    body_to_local = Rotation.from_euler("ZYX", np.array([angles[n][rows] for n in ("yaw", "pitch", "roll")]).T)
    assert imu[FORCE][:, early] == pytest.approx(body_to_local.inv().apply(side * 5.0 / 4.0).T)


def test_an_autopilot_that_follows_the_lie_leans_and_the_reported_path_stays_near():
    level = made_up()
    for name in ("roll", "pitch", "yaw"):
        level.imu.data[M[name]] = 0.0
    gps, imu, made = change("closed_loop_0.5mps2", level)
    # what is reported moves by a transient and comes back, and its velocity says so
    steps = np.diff(made.gps.t) * (gps[VELOCITY][:, 1:] + gps[VELOCITY][:, :-1]) / 2.0
    assert np.diff(gps[PLACE], axis=1) == pytest.approx(steps, abs=2e-2)
    assert 0.5 < length(gps[PLACE]).max() < 2.5
    assert length(gps[PLACE])[-1] == 0.0
    # the gyros turn the thrust by what the acceleration needs, and back
    dt = np.diff(made.imu.t)
    lean = np.cumsum(imu[RATE][:, 1:] * dt, axis=1)
    assert length(lean).max() == pytest.approx(0.5 / 9.81, rel=0.05)
    assert length(lean)[-1] == pytest.approx(0.0, abs=1e-3)
    assert imu[M["roll"]][1:] == pytest.approx(lean[0], abs=2e-3)
    assert imu[M["pitch"]][1:] == pytest.approx(lean[1], abs=2e-3)
    # so that the accelerometers feel hardly any side force, but that of this flight's noise about its thrust
    assert np.abs(imu[FORCE][:2]).max() < 0.06


def test_the_vehicle_really_goes_where_the_spoofer_wants_it():
    level = made_up()
    for name in ("roll", "pitch", "yaw"):
        level.imu.data[M[name]] = 0.0
    level.imu.data[FORCE] = np.array((0.0, 0.0, -9.80665))[:, None]
    made = inject(catalogue().find("closed_loop_0.1mps2"), level)
    t = made.imu.t - made.t_start
    angles = made.imu.data[[M["yaw"], M["pitch"], M["roll"]]].T
    accel = Rotation.from_euler("ZYX", angles).apply(made.imu.data[FORCE].T).T + np.array((0.0, 0.0, 9.80665))[:, None]
    speed = np.cumsum(accel * np.gradient(t), axis=1)
    pulled = np.cumsum(speed * np.gradient(t), axis=1)
    assert length(accel[:2]).max() == pytest.approx(0.1, rel=0.02)
    assert length(pulled[:2])[-1] == pytest.approx(2.5, rel=0.02)
    assert length(speed[:2])[-1] == pytest.approx(0.0, abs=0.01)


def test_noise_has_the_size_it_says():
    gps, _, _ = change("gps_noise_10m")
    assert gps[PLACE].std(axis=1) == pytest.approx([10.0, 10.0, 15.0], rel=0.2)
    gps, _, _ = change("gps_velocity_noise_2mps")
    assert gps[VELOCITY].std() == pytest.approx(2.0, rel=0.15)


def test_ar1_noise_begins_at_zero_and_is_correlated():
    flight = made_up(700.0)
    attack = msgspec.structs.replace(catalogue().find("gps_ar1_10m"), duration_s=600.0)
    made = inject(attack, flight)
    error = made.gps.data[PLACE] - flight.gps.data[PLACE, made.gps_rows]
    assert not error[:, 0].any()
    assert np.corrcoef(error[0, 1:], error[0, :-1])[0, 1] == pytest.approx(0.95, abs=0.03)
    assert error[:2].std() == pytest.approx(10.0, rel=0.3)


def test_an_intermittent_jump_is_on_for_two_seconds_in_five():
    gps, _, made = change("gps_intermittent_20m")
    on = length(gps[PLACE]) > 1.0
    assert on.mean() == pytest.approx(0.4, abs=0.02)
    assert on[made.gps.t - made.t_start < 2.0].all()


def test_a_replay_says_what_was_said_before():
    _, _, made = change("gps_replay_30s")
    assert np.array_equal(
        made.gps.data, FLIGHT.gps.data[:, made.gps_rows.start - 150 : made.gps_rows.stop - 150], equal_nan=True
    )
    gps, _, here = change("gps_replay_here_30s")
    assert gps[PLACE][:, 0] == pytest.approx(0.0, abs=1e-9)
    earlier = FLIGHT.gps.data[:, here.gps_rows.start - 150 : here.gps_rows.stop - 150]
    assert np.diff(here.gps.data[PLACE], axis=1) == pytest.approx(np.diff(earlier[PLACE], axis=1))


def test_freeze_and_stuck_repeat_the_last_good_sample():
    _, _, made = change("gps_freeze")
    assert (FLIGHT.gps.data[PLACE, made.gps_rows.start - 1] == made.gps.data[PLACE].T).all()
    _, _, made = change("imu_stuck")
    assert (FLIGHT.imu.data[RAW, made.imu_rows.start - 1] == made.imu.data[RAW].T).all()
    _, imu, made = change("imu_gyro_stuck")
    assert (FLIGHT.imu.data[RATE, made.imu_rows.start - 1] == made.imu.data[RATE].T).all()
    assert not imu[FORCE].any()


def test_jamming_worsens_what_is_reported_and_then_ends_it():
    _, _, made = change("gps_jamming_20m")
    s = made.gps.t - made.t_start
    assert np.array_equal(made.gps_lost, s >= 10.0)
    hdop, sats = made.gps.data[G["hdop"]], made.gps.data[G["sats"]]
    assert (np.diff(hdop[s < 10.0]) > 0.0).all()
    assert (np.diff(sats[s < 10.0]) < 0.0).all()
    assert np.isnan(made.gps.data[G["eph"]]).all(), "a field that the receiver does not send is not made up"
    late = FLIGHT.gps.data[PLACE, made.gps_rows] - made.gps.data[PLACE]
    assert length(late[:, s > 8.0]).mean() > length(late[:, s < 2.0]).mean()


def test_lost_samples_are_gone():
    for name, gps, imu in (("gps_dropout", 0, 1), ("imu_dropout", 1, 0), ("link_loss", 0, 0)):
        _, _, made = change(name)
        whole = made.attacked_flight()
        inside = [
            len(stream.t[(stream.t >= made.t_start) & (stream.t < made.t_end)]) for stream in (whole.gps, whole.imu)
        ]
        assert inside == [150 * gps, 1500 * imu]


def test_a_clock_attack_moves_the_stamps_alone():
    gps, _, made = change("gps_clock_0.5s")
    assert not np.nan_to_num(gps).any()
    assert made.gps.t - FLIGHT.gps.t[made.gps_rows] == pytest.approx(0.5)


def test_imu_biases_scales_and_limits():
    _, imu, _ = change("imu_accel_bias_1mps2")
    assert length(imu[FORCE]) == pytest.approx(1.0)
    assert not imu[RATE].any()
    _, imu, _ = change("imu_gyro_bias_0.1radps")
    assert length(imu[RATE]) == pytest.approx(0.1)
    _, _, made = change("imu_accel_scale_0.1")
    assert made.imu.data[FORCE] == pytest.approx(1.1 * FLIGHT.imu.data[FORCE, made.imu_rows])
    _, _, made = change("imu_accel_saturation_5mps2")
    assert made.imu.data[FORCE].min() == -5.0


def test_a_limit_that_is_never_reached_is_no_attack():
    still = Flight("quad-1", FLIGHT.gps, Stream(FLIGHT.imu.t, FLIGHT.imu.data * 0.0))
    assert not inject(catalogue().find("imu_gyro_saturation_0.2radps"), still).touched


def test_geodetic_positions_move_by_as_many_metres():
    flight = made_up()
    flight.gps.data[PLACE] = np.nan
    flight.gps.data[G["lat"]], flight.gps.data[G["lon"]], flight.gps.data[G["alt_m"]] = 60.0, 20.0, 100.0
    made = inject(catalogue().find("gps_bias_100m"), flight)
    lat, lon = made.gps.data[G["lat"], 0], made.gps.data[G["lon"], 0]
    assert Geodesic.WGS84.Inverse(60.0, 20.0, lat, lon)["s12"] == pytest.approx(100.0, rel=0.01)


def test_what_does_not_fit_is_refused_with_the_reason():
    with pytest.raises(AttackError, match="flight quad-1 is 80 s long; an attack needs 95"):
        inject(catalogue().find("gps_freeze"), made_up(80.2))
    with pytest.raises(AttackError, match="did you mean 'gps_freeze'"):
        catalogue().find("gps_freze")


def test_an_unknown_key_in_the_catalogue_is_an_error():
    with pytest.raises(msgspec.ValidationError, match="surprise"):
        msgspec.json.decode(b'{"version": 1, "surprise": 2}', type=Catalogue)


def test_the_reference_is_up_to_date():
    page = DOCS / "evaluation" / "attacks.md"
    assert page.read_text() == reference(catalogue()), "run `make docs`"


def test_the_noise_floor_by_hand():
    t = np.arange(0.0, 400.0, 0.2)
    data = np.zeros((len(FIELDS[Kind.GPS]), len(t)))
    # led away at 0.3 m/s with a velocity of 0.1: a drift of 0.2 m/s, 4 cm from fix to fix
    data[G["gps_x"]], data[G["gps_vx"]] = 0.3 * t, 0.1
    found = floor(Flight("quad-1", Stream(t, data), FLIGHT.imu))
    assert found.step_m == pytest.approx(0.04)
    assert found.drift_10s_mps == pytest.approx(0.2)
    assert found.drift_30s_mps == pytest.approx(0.2)
    data[VELOCITY] = np.nan
    assert floor(Flight("quad-1", Stream(t, data), FLIGHT.imu)).step_m is None
