"""silence: measured against each stream's own habit, never for streams that are not watched."""

import numpy as np

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.silence import Silence as SilenceConfig
from watchkeeper.config.schema import Config
from watchkeeper.detectors.silence.detector import Silence

IMU = {"imu_ax": 0.0, "imu_ay": 0.0, "imu_az": -9.8, "imu_wx": 0.0, "imu_wy": 0.0, "imu_wz": 0.0}


def gps(name, t):
    return {"id": name, "t": t, "gps_x": 0.0, "gps_y": 0.0, "gps_z": 0.0}


def speak(b, seconds, *, rate=5.0, start=0.0):
    for tick in range(int(start) + 1, int(start + seconds) + 1):
        evidence = b.tick(float(tick), gps=[gps("d", tick - 1 + (i + 1) / rate) for i in range(int(rate))])
    return evidence


def test_a_stream_that_stops_is_noticed_after_the_minimum_and_clears_at_once(bench):
    b = bench(Silence)
    (ev,) = speak(b, 10)
    assert ev.score[0] == 0.0
    (ev,) = b.tick(12.0)
    assert ev.score[0] < 1.0
    (ev,) = b.tick(13.0)
    assert ev.score[0] >= 1.0
    assert ev.numbers["silence_s"][0] == 3.0
    assert [c for i, c in enumerate(ev.causes) if int(ev.cause_bits[0]) >> i & 1] == ["gps"]
    (ev,) = b.tick(14.0, gps=[gps("d", 13.9)])
    assert ev.score[0] < 1.0


def test_a_slow_stream_is_given_its_own_time(bench):
    b = bench(Silence)
    for i in range(12):
        b.tick(5.0 * (i + 1), gps=[gps("d", 5.0 * (i + 1))])
    assert b.tick(60.0 + 40.0)[0].score[0] < 1.0
    assert b.tick(60.0 + 60.0)[0].score[0] >= 1.0


def test_a_stream_that_hardly_spoke_is_not_missed(bench):
    b = bench(Silence)
    b.tick(1.0, gps=[gps("d", 0.5), gps("d", 0.9)])
    assert b.tick(100.0) == []


def test_adsb_is_not_watched_unless_asked_for(bench):
    rows = [{"id": "a", "t": float(i), "lat": 1.0, "lon": 1.0} for i in range(10)]
    b = bench(Silence)
    b.tick(10.0, adsb=rows)
    assert b.tick(100.0) == []
    asked = Config(detectors=Detectors(silence=SilenceConfig(streams=("adsb",))))
    b = bench(Silence, asked)
    b.tick(10.0, adsb=rows)
    assert b.tick(100.0)[0].score[0] > 1.0


def test_one_outage_does_not_become_a_habit(bench):
    b = bench(Silence)
    speak(b, 20)
    speak(b, 3, start=60)
    (ev,) = b.tick(67.0)
    assert ev.score[0] >= 1.0


def test_after_a_restart_nobody_was_silent_while_we_were_away(bench):
    b = bench(Silence)
    speak(b, 10)
    copy = bench(Silence)
    copy.fleet.restore(b.fleet.snapshot())
    copy.detector.restore(b.detector.snapshot())
    copy.fleet.away = (10.0, 69.0)
    (ev,) = copy.tick(70.0)
    assert ev.numbers["silence_s"][0] == 1.0
    (ev,) = copy.tick(72.0)
    assert ev.score[0] >= 1.0
    np.testing.assert_array_equal(ev.a, [0])


def test_who_was_silent_before_we_were_away_still_is_after_it(bench):
    b = bench(Silence)
    speak(b, 10)
    b.fleet.away = (20.0, 69.0)
    (ev,) = b.tick(70.0)
    assert ev.numbers["silence_s"][0] == 11.0
    (ev,) = b.tick(71.0, gps=[gps("d", 70.5)])
    assert ev.numbers["silence_s"][0] == 0.5
