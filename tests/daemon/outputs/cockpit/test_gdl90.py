"""What a tablet sees: the specification's own report, and a conflict with the alert bit on both aircraft."""

from __future__ import annotations

import math

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict
from watchkeeper.config.outputs import Gdl90Out
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.cockpit.gdl90 import Gdl90Sink, framed, report
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.receivers.gdl90 import OWNSHIP, TRAFFIC, Gdl90
from watchkeeper.streams.check import checked
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

CONFIG = Config(fleet=FleetLimits(max_vehicles=100), detectors=Detectors(conflict=Conflict(max_pairs=1000)))
# "GDL 90 Data Interface Specification", 560-1058-00 Rev A; byte 18 is the category, which we do not know
STEP = 180.0 / 2**23
REPORT = bytes.fromhex("1400ab45491fef15a889780f09a907b00120014e3832355620202000")


def test_a_report_is_that_of_the_specification() -> None:
    known = {"lat": 0x1FEF15 * STEP, "lon": (0xA88978 - 2**24) * STEP,
             "alt_ft": 5000.0, "gs_kt": 123.0, "trk_deg": 45.0, "vs_fpm": 64.0,
             "nic": 10.0, "nacp": 9.0, "on_ground": 0.0}  # fmt: skip
    values = [known.get(name, math.nan) for name in COLUMN[Kind.ADSB]]
    made = report(TRAFFIC, "ab4549", "N825V", values, alert=False)
    assert made[:18] + made[19:] == REPORT[:18] + REPORT[19:]
    assert report(TRAFFIC, "ab4549", "N825V", values, alert=True)[1] == 0x10


def test_both_aircraft_of_a_conflict_have_the_alert_bit_and_the_others_do_not() -> None:
    pipeline = Pipeline(CONFIG)
    for batch in simulate("head-on", seed=1, seconds=45.0, vehicles=4).batches():
        pipeline.feed(checked(batch))
    subjects = {
        name for event in pipeline.active.values() if event.kind in ("conflict", "los") for name in event.subjects
    }
    assert 0 < len(subjects) < len(pipeline.fleet.slot_of)
    own = min(subjects)
    sink = Gdl90Sink(Gdl90Out(url="udp://127.0.0.1:4000", own=own), Watched(pipeline, "0"), now=lambda: 43_200.0)
    heartbeat, *reports = sink.messages()
    assert heartbeat == framed(bytes((0, 0x81, 1, 0xC0, 0xA8, 0, 0)))
    feed = Gdl90()
    feed.push(heartbeat + b"".join(reports), 1.0)
    batch = feed.take()
    assert batch is not None
    assert not feed.refused
    cols, fleet = batch.kinds[Kind.ADSB], pipeline.fleet
    assert set(batch.ids) == set(fleet.slot_of)
    for name in ("lat", "lon"):
        shown = cols.data[COLUMN[Kind.ADSB][name]].tolist()
        there = [fleet.value[Kind.ADSB][COLUMN[Kind.ADSB][name], fleet.slot_of[batch.ids[v]]] for v in cols.vid]
        assert max(abs(a - b) for a, b in zip(shown, there, strict=True)) < 2.2e-5
    alerts = {message[3:6].hex(): message[2] >> 4 for message in reports if 0x7D not in message}
    assert alerts == {name: int(name in subjects) for name in alerts}
    assert len(alerts) > len(subjects)
    assert [message[1] for message in reports] == [OWNSHIP] + [TRAFFIC] * (len(reports) - 1)
    few = Gdl90Sink(Gdl90Out(url="udp://127.0.0.1:4000", max_reports=1), Watched(pipeline, "0"))
    assert [message[2] >> 4 for message in list(few.messages())[1:]] == [1]
