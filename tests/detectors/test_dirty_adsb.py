"""Dirty ADS-B as it really comes: a spoofed track is `kinematics` and never a conflict, altitude spikes are nothing.

The recordings are samples of the traffic library: some are in every clone, `make data` fetches all of them.
Synthetic aircraft are only put around them.
"""

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, Columns, columns_of, concat
from watchkeeper.streams.logs.chunks import join, merge_by_time
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Drop, Kind

from where import SAMPLES

C = COLUMN[Kind.ADSB]
SPOOFED = "4baac6"
# It claims to be near Lviv from the first to the second; before and after it is where it says, or says nothing.
SPOOFED_FROM, SPOOFED_TO = 1726565065.0, 1726567091.0
KT_MS = 1852.0 / 3600.0


def raised(batches: Iterable[Batch]) -> tuple[list[AlarmEvent], Pipeline]:
    pipeline = Pipeline(DEFAULT)
    events = [event for batch in batches for event in pipeline.feed(batch)]
    events += pipeline.finish()
    return [event for event in events if event.state == "raised"], pipeline


def recording(name: str) -> list[Batch]:
    if not (SAMPLES / name).exists():
        pytest.skip(f"no {name} in {SAMPLES}: run `make data`")
    return list(open_log(SAMPLES / name).batches())


def orbit(name: str, lat: float, lon: float, alt_ft: float, start: float, stop: float) -> Batch:
    """An aircraft flying level around a place, 3 NM from it at 250 kt, reporting every second."""
    t = np.arange(start, stop)
    turn = 250.0 * KT_MS / (3.0 * 1852.0)
    angle = turn * (t - start)
    step_deg = 3.0 / 60.0
    values = {
        "lat": lat + step_deg * np.cos(angle), "lon": lon + step_deg * np.sin(angle) / math.cos(math.radians(lat)),
        "alt_ft": np.full(len(t), alt_ft), "gs_kt": np.full(len(t), 250.0),
        "trk_deg": np.degrees(angle + math.pi / 2) % 360.0, "vs_fpm": np.zeros(len(t)), "on_ground": np.zeros(len(t)),
    }  # fmt: skip
    return Batch([name], {Kind.ADSB: columns_of(Kind.ADSB, np.zeros(len(t), np.int32), t, values)})


def test_the_spoofed_track_raises_kinematics_and_nothing_else() -> None:
    alarms, _ = raised(recording("noisy/noisy_spoofing.json.gz"))
    assert {alarm.kind for alarm in alarms} == {"kinematics"}
    assert all(alarm.subjects == (SPOOFED,) for alarm in alarms)
    # within the spoofed time, and at its end when it is suddenly back on its way over Poland
    times = [alarm.t_raised for alarm in alarms]
    assert any(SPOOFED_FROM <= t < SPOOFED_TO for t in times)
    assert any(SPOOFED_TO <= t < SPOOFED_TO + 30 for t in times)
    assert {"jump"} <= {cause for alarm in alarms for cause in alarm.evidence["causes"]}


def test_nobody_around_the_places_it_jumps_to_conflicts_with_the_spoofed_aircraft() -> None:
    spoofed = recording("noisy/noisy_spoofing.json.gz")
    cols = join(spoofed).kinds[Kind.ADSB]
    places = []
    for t in (SPOOFED_FROM, SPOOFED_FROM + 400, SPOOFED_FROM + 918, SPOOFED_FROM + 1300, SPOOFED_TO):
        at = int(np.searchsorted(cols.t, t))
        places.append((cols.data[C["lat"], at], cols.data[C["lon"], at]))
    around = [
        [orbit(f"level{i}", lat, lon, 38_000.0, SPOOFED_FROM - 300, SPOOFED_TO + 300)]
        for i, (lat, lon) in enumerate(places)
    ]
    alarms, _ = raised(merge_by_time([spoofed, *around]))
    assert any(alarm.kind == "kinematics" and alarm.subjects == (SPOOFED,) for alarm in alarms)
    # they are in each other's way: the test would notice a detector that is switched off
    assert any(alarm.kind == "los" and SPOOFED not in alarm.subjects for alarm in alarms)
    false = [
        (alarm.kind, alarm.subjects, alarm.t_raised - SPOOFED_FROM)
        for alarm in alarms
        if alarm.kind in ("conflict", "los") and SPOOFED in alarm.subjects and alarm.t_raised < SPOOFED_TO
    ]
    assert false == []


SIZES_FT = [sign * size for size in (500, 1000, 1900, 2000, 2100, 5000, 20_000, 100_000) for sign in (1, -1)]
REAL_SPIKE_FT = 123_100.0


LEVEL_S = 400


def cruise() -> Columns:
    """A real aircraft in level flight for LEVEL_S, the one that reported most different positions."""
    whole = join(recording("collections/quickstart.json.gz"))
    cols = whole.kinds[Kind.ADSB]
    found: list[tuple[int, Columns]] = []
    for vid in range(len(whole.ids)):
        own = cols.take(cols.vid == vid)
        for start in np.arange(own.t[0], own.t[-1] - LEVEL_S, 100.0):
            part = own.take((own.t >= start) & (own.t < start + LEVEL_S))
            alt_ft = part.data[C["alt_ft"]]
            whole_rows = len(part) == LEVEL_S and not np.isnan(part.data[: C["vs_fpm"] + 1]).any()
            if whole_rows and alt_ft.min() > 5000.0 and np.ptp(alt_ft) <= 100.0:
                found.append((len(np.unique(part.data[C["lat"]])), part))
    return max(found, key=lambda one: one[0])[1]


@pytest.mark.parametrize("report_every_s", [1, 5])
def test_altitude_spikes_alone_raise_no_alarm_of_any_kind(report_every_s: int) -> None:
    """Each size, single and double, often and rarely, on an aircraft with another one 2,000 ft above or below it."""
    clean = cruise().take(np.arange(0, LEVEL_S, report_every_s))
    n = len(clean)
    ids: list[str] = []
    blocks: list[Columns] = []
    cases = list(product([*SIZES_FT, REAL_SPIKE_FT], (1, 2), (30, 20, 10, 5)))
    for k, (size, wide, every) in enumerate(cases):
        for role in ("spiked", "other"):
            data = clean.data.copy()
            # pairs are far from each other, and shifting the longitude changes nothing else
            data[C["lon"]] = (data[C["lon"]] + 360.0 * k / len(cases) + 180.0) % 360.0 - 180.0
            if role == "spiked":
                hit = np.arange(n) % every >= every - wide
                # the first report is an honest one
                hit[:every] = False
                data[C["alt_ft"]] = np.where(
                    hit, size if size == REAL_SPIKE_FT else data[C["alt_ft"]] + size, data[C["alt_ft"]]
                )
            else:
                data[C["lat"]] += 0.01
                data[C["alt_ft"]] += math.copysign(2000.0, size)
            blocks.append(Columns(clean.seq, np.full(n, len(ids), np.int32), np.full(n, -1, np.int32), clean.t, data))
            ids.append(f"{role} {size:+.0f} ft x{wide} every {every}")
    cols = concat(blocks)
    order = np.argsort(cols.t, kind="stable")
    by_time = cols.take(order)
    batch = Batch(ids, {Kind.ADSB: Columns(np.arange(len(order)), by_time.vid, by_time.via, by_time.t, by_time.data)})
    spiked = np.unique(by_time.vid[by_time.data[C["alt_ft"]] == REAL_SPIKE_FT])
    assert len(spiked) == 8
    alarms, pipeline = raised([batch])
    # the largest spikes downward end below the ground and are refused before anything looks at them
    below = int((by_time.data[C["alt_ft"]] < -5000.0).sum())
    assert pipeline.drops == {("adsb", Drop.RANGE): below}
    assert [(alarm.kind, alarm.subjects) for alarm in alarms] == []


def test_the_wrong_altitudes_of_a_real_day_raise_no_kinematics() -> None:
    """Landing aircraft that are heard at 25,000 ft for half a minute: their positions are all right."""
    alarms, pipeline = raised(recording("collections/quickstart.json.gz"))
    assert pipeline.samples["adsb"] == 284_505
    assert [alarm for alarm in alarms if alarm.kind == "kinematics"] == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [("noisy_ground", 924), ("noisy_landing", 848), ("noisy_takeoff", 730), ("noisy_time_issue", 8294)],
)
def test_other_noisy_flights_pass_without_an_alarm(name: str, rows: int) -> None:
    log = open_log(SAMPLES / "noisy" / f"{name}.json.gz")
    alarms, pipeline = raised(log.batches())
    assert pipeline.samples["adsb"] + sum(pipeline.drops.values()) + log.info().bad_rows == rows
    assert [(alarm.kind, alarm.t_raised) for alarm in alarms] == []
