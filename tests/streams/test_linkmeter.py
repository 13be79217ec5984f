"""The link meter: latencies measured once, at the edge, as samples that any log can carry."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.linkmeter import LinkMeter
from watchkeeper.streams.messages import COLUMN, Kind

L = COLUMN[Kind.LINK]


def second(t0: float, n: int = 5, name: str = "a") -> Batch:
    t = t0 + np.arange(n) / n
    return Batch([name], {Kind.GPS: columns_of(Kind.GPS, np.zeros(n, np.int32), t, {"gps_x": t, "gps_y": t})})


def reports(meter: LinkMeter, seconds: int, latency_s: float, *, speed: float = 1.0, from_t: int = 1000) -> list[Batch]:
    found = []
    for s in range(seconds):
        batch = second(from_t + s)
        arrived = (batch.kinds[Kind.GPS].t - from_t) / speed + from_t + latency_s
        found.append(meter.add(batch, arrived))
    return [b for b in found if Kind.LINK in b.kinds]


def test_one_report_a_second_with_the_mean_latency() -> None:
    found = reports(LinkMeter(), 12, 0.25)
    assert len(found) >= 6
    for batch in found:
        cols = batch.kinds[Kind.LINK]
        assert len(cols) == 1
        assert cols.data[L["latency_s"], 0] == pytest.approx(0.25)
        assert cols.data[L["jitter_s"], 0] == pytest.approx(0.0, abs=1e-6)
        assert cols.data[L["reordered"], 0] == 0
        # after all samples of the batch, at the time of the newest
        assert cols.seq[0] == len(batch.kinds[Kind.GPS])
        assert cols.t[0] == batch.kinds[Kind.GPS].t[-1]
    assert found[-1].kinds[Kind.LINK].data[L["samples"], 0] == 5


def test_clocks_that_are_years_apart_keep_their_milliseconds() -> None:
    meter = LinkMeter()
    rng = np.random.default_rng(1)
    last = None
    for s in range(30):
        batch = second(1000.0 + s, 50)
        arrived = batch.kinds[Kind.GPS].t + 1.7e9 + rng.normal(0.0, 0.01, 50)
        last = meter.add(batch, arrived).kinds.get(Kind.LINK, last)
    assert last is not None
    assert last.data[L["latency_s"], 0] == pytest.approx(1.7e9, abs=0.01)
    assert last.data[L["jitter_s"], 0] == pytest.approx(0.01, rel=0.5)


def test_what_waited_for_us_says_nothing_about_the_link() -> None:
    meter = LinkMeter()
    reports(meter, 10, 0.25)
    # nothing arrives for seven seconds, then all of it at once, then as before
    waited = [second(1010.0 + s) for s in range(7)]
    found = [meter.add(batch, np.full(5, 1017.1)) for batch in waited]
    found += reports(meter, 20, 0.25, from_t=1017)
    measured = [b.kinds[Kind.LINK].data[L["latency_s"], 0] for b in found if Kind.LINK in b.kinds]
    assert len(measured) >= 10
    assert measured == pytest.approx([0.25] * len(measured))


def test_a_short_wait_that_is_known_of_says_nothing_either() -> None:
    meter = LinkMeter()
    reports(meter, 10, 0.25)
    meter.resume()
    batch = second(1010.0)
    assert Kind.LINK not in meter.add(batch, np.full(5, 1012.5)).kinds
    found = reports(meter, 10, 0.25, from_t=1012)
    measured = [b.kinds[Kind.LINK].data[L["latency_s"], 0] for b in found]
    assert measured
    assert measured == pytest.approx([0.25] * len(measured))


@pytest.mark.parametrize("speed", [50.0, 0.2])
def test_a_log_at_another_speed_has_no_latencies(speed: float) -> None:
    assert reports(LinkMeter(), 60, 0.1, speed=speed) == []


def test_samples_that_overtake_each_other_are_counted() -> None:
    meter = LinkMeter()
    for s in range(8):
        batch = second(1000.0 + s)
        cols = batch.kinds[Kind.GPS]
        if s == 6:
            cols.t[[2, 3]] = cols.t[[3, 2]]
        arrived = 1000.0 + s + np.arange(5) / 5 + 0.1
        found = meter.add(batch, arrived).kinds.get(Kind.LINK)
        if s == 6:
            assert found is not None
            assert found.data[L["reordered"], 0] == 1


def test_the_answer_to_a_ping_becomes_a_round_trip() -> None:
    t = np.array([1000.0, 1000.0])
    echo = {"echo_t": np.array([999.96, 1200.0])}
    batch = Batch(["gw-1", "gw-2"], {Kind.LINK: columns_of(Kind.LINK, np.arange(2, dtype=np.int32), t, echo)})
    rtt_s = LinkMeter().add(batch, np.array([1000.0, 1000.0])).kinds[Kind.LINK].data[L["rtt_s"]]
    assert rtt_s[0] == pytest.approx(0.04)
    assert np.isnan(rtt_s[1])  # from the future: not our ping


def test_aircraft_are_not_metered() -> None:
    n = 5
    meter = LinkMeter()
    for s in range(12):
        t = 1000.0 + s + np.arange(n) / n
        cols = columns_of(Kind.ADSB, np.zeros(n, np.int32), t, {"lat": t * 0, "lon": t * 0})
        assert Kind.LINK not in meter.add(Batch(["a"], {Kind.ADSB: cols}), t + 0.1).kinds
