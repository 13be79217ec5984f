"""ASTERIX as libasterix writes it, in several editions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from asterix import generated

from watchkeeper.streams.adapters.receivers.asterix import Asterix
from watchkeeper.streams.messages import COLUMN, Kind

MIDNIGHT = 1_709_251_200.0


def rows(feed: Asterix, data: bytes, now: float) -> list[tuple[str, float, dict[str, float]]]:
    feed.push(data, now)
    batch = feed.take()
    if batch is None:
        return []
    cols = batch.kinds[Kind.ADSB]
    found = []
    for i in range(len(cols)):
        values = dict(zip(COLUMN[Kind.ADSB], cols.data[:, i].tolist(), strict=True))
        found.append((batch.ids[cols.vid[i]], float(cols.t[i]), {k: v for k, v in values.items() if v == v}))
    return found


def reports(edition: Any, *seconds: float) -> bytes:
    records = [edition.cv_record.create({
        "080": 0x4CA7B3, "131": (("LAT", (51.5, "°")), ("LON", (-0.5, "°"))), "145": (350.0, "FL"),
        "160": (("RE", 0), ("GS", (0.125, "NM/s")), ("TA", (90.0, "°"))),
        "155": (("RE", 0), ("BVR", (-625.0, "ft/min"))),
        "146": (("SAS", 0), ("S", 0), ("ALT", (36_000.0, "ft"))), "073": (at, "s"), "170": "EIN4TR  ",
        "090": ((("NUCRNACV", 1), ("NUCPNIC", 8), None), (("NICBARO", 1), ("SIL", 2), ("NACP", 9), None)),
    }) for at in seconds]  # fmt: skip
    data: bytes = edition.create(records).unparse().to_bytes()
    return data


@pytest.mark.parametrize("edition", ["2_1", "2_4", "2_7"])
def test_reports_of_category_021(edition: str) -> None:
    feed = Asterix()
    data = reports(getattr(generated, f"Cat_021_{edition}"), 43_200.5, 43_201.5)
    found = rows(feed, data, MIDNIGHT + 43_202)
    assert [(name, t) for name, t, _ in found] == [("4ca7b3", MIDNIGHT + 43_200.5), ("4ca7b3", MIDNIGHT + 43_201.5)]
    assert found[0][2] == pytest.approx({
        "lat": 51.5, "lon": -0.5, "alt_ft": 35_000, "gs_kt": 450, "trk_deg": 90, "vs_fpm": -625, "sel_alt_ft": 36_000,
        "nic": 8, "nacp": 9,
    }, abs=1e-3)  # fmt: skip
    assert not feed.refused


@pytest.mark.parametrize("edition", ["1_18", "1_21"])
def test_tracks_of_category_062_over_midnight(edition: str) -> None:
    made = getattr(generated, f"Cat_062_{edition}")
    track = {"010": (("SAC", 25), ("SIC", 1)), "040": 77, "105": (("LAT", (51.5, "°")), ("LON", (-0.5, "°"))),
             "136": (350.0, "FL"), "185": (("VX", (-100.0, "m/s")), ("VY", (0.0, "m/s"))), "220": (625.0, "ft/min"),
             "060": (("V", 0), ("G", 0), ("CH", 0), 0, ("MODE3A", 0o7700))}  # fmt: skip
    named = {**track, "380": {"ADR": 0x4CA7B3, "ID": "EIN4TR  "}}
    data = b"".join(
        made.create([made.cv_record.create({**record, "070": (at, "s")})]).unparse().to_bytes()
        for record, at in ((track, 86_399.0), (named, 1.0))
    )
    first, second = rows(Asterix(), data, math.nan)
    assert (first[0], second[0]) == ("trk-25-1-77", "4ca7b3")
    assert second[1] - first[1] == 2.0
    wanted = {"lat": 51.5, "lon": -0.5, "alt_ft": 35_000, "gs_kt": 194.38, "trk_deg": 270, "vs_fpm": 625}
    assert first[2] == pytest.approx(wanted | {"squawk": 7700}, abs=1e-2)


def test_what_a_report_declares() -> None:
    edition = generated.Cat_021_2_6
    threat = {"TYP": 28, "STYP": 2, "ARA": 1 << 13, "RAC": 0, "RAT": 0, "MTE": 0, "TTI": 0, "TID": 0}
    place = {"080": 0x4CA7B3, "131": (("LAT", (51.5, "°")), ("LON", (-0.5, "°"))), "073": (43_200.0, "s")}
    state = (("ICF", 0), ("LNAV", 0), 0, ("PS", 4), ("SS", 0))
    told = []
    for ended in (0, 1):
        advisory = tuple({**threat, "RAT": ended}.items())
        record = edition.cv_record.create({**place, "070": (0, ("MODE3A", 0o7600)), "200": state, "260": advisory})
        (found,) = rows(Asterix(), edition.create([record]).unparse().to_bytes(), MIDNIGHT + 43_201)
        told.append({name: found[2][name] for name in ("squawk", "emergency", "tcas_ra")})
    assert told[0] == {"squawk": 7600.0, "emergency": 4.0, "tcas_ra": 1.0}
    assert told[1]["tcas_ra"] == 0.0


def test_a_block_that_no_system_sends_is_refused_unread() -> None:
    feed = Asterix()
    huge = bytes((21,)) + (30_000).to_bytes(2, "big") + b"\x80\x01" * 14_998 + b"\0"
    assert len(huge) == 30_000
    good = reports(generated.Cat_021_2_6, 43_200.5)
    assert len(rows(feed, huge + good, MIDNIGHT)) == 1
    assert feed.refused == {"too_large": 1}


def test_an_edition_that_is_not_known_is_refused_and_others_are_passed_over() -> None:
    old = generated.Cat_021_0_26
    record = old.cv_record.create({"080": 0x4CA7B3, "030": (43_200.0, "s")})
    feed = Asterix()
    cat048 = bytes((48, 0, 5, 0x80, 0))
    good = reports(generated.Cat_021_2_6, 43_200.5)
    damaged = good[:3] + b"\xff" * (len(good) - 3)
    found = rows(feed, old.create([record]).unparse().to_bytes() + cat048 + damaged + good, MIDNIGHT)
    assert len(found) == 1
    assert feed.refused["edition"] >= 1
