"""NMEA, gpsd and UBX give what their reference readers (pynmea2, pyubx2) read in the same bytes."""

from __future__ import annotations

import asyncio
import math
import random
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pynmea2
import pytest
from pyubx2 import GET, UBXMessage, UBXReader
from waiting import until

from watchkeeper.config.adapters.gpsd import Gpsd as GpsdSettings
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.background import end
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.base import Feed
from watchkeeper.streams.adapters.catalog import discover
from watchkeeper.streams.adapters.navigation.gpsd import WATCH, Gpsd
from watchkeeper.streams.adapters.navigation.nmea import Nmea
from watchkeeper.streams.adapters.navigation.ubx import Ubx
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import COLUMN, Kind

KT_MS = 1852.0 / 3600.0


def fixes(feed: Feed, data: bytes, now: float = math.nan) -> list[tuple[float, dict[str, float]]]:
    feed.push(data, now)
    feed.close()
    batch = feed.take()
    assert batch is not None
    cols = batch.kinds[Kind.GPS]
    rows = [dict(zip(COLUMN[Kind.GPS], cols.data[:, i].tolist(), strict=True)) for i in range(len(cols))]
    return [(t, {k: v for k, v in row.items() if v == v}) for t, row in zip(cols.t.tolist(), rows, strict=True)]


def _sides(lat: float, lon: float) -> tuple[str, str, str, str]:
    def text(value: float, digits: int) -> str:
        return f"{int(abs(value)):0{digits}d}{abs(value) % 1 * 60:08.5f}"

    return text(lat, 2), "NS"[lat < 0], text(lon, 3), "EW"[lon < 0]


def test_nmea_is_what_pynmea2_reads() -> None:
    draw, lines, wanted = random.Random(1), [], []
    for k in range(300):
        when = datetime(2024, 2, 29, 23, 58, tzinfo=UTC) + timedelta(seconds=k)  # over midnight and the end of a month
        place = _sides(draw.uniform(-89, 89), draw.uniform(-179, 179))
        clock, speed, course = f"{when:%H%M%S}.00", f"{draw.uniform(0, 300):.2f}", f"{draw.uniform(0, 360):.2f}"
        gga = pynmea2.GGA("GN", "GGA", (clock, *place, "4", "17", "0.61", f"{draw.uniform(-50, 9000):.1f}", "M", "47.0",
                                        "M", "", ""))  # fmt: skip
        rmc = pynmea2.RMC("GN", "RMC", (clock, "A", *place, speed, course, f"{when:%d%m%y}", "", "", "R"))
        gst = pynmea2.GST("GN", "GST", (clock, "1.0", "", "", "", "3.0", "4.0", "5.0"))
        lines += [str(line) for line in ((gga, gst, rmc) if k % 2 else (gst, rmc, gga))]
        wanted.append((pynmea2.parse(str(gga)), pynmea2.parse(str(rmc))))
    found = fixes(Nmea(), "\r\n".join(lines).encode())
    assert len(found) == len(wanted)
    for (t, values), (gga, rmc) in zip(found[1:], wanted[1:], strict=True):
        assert t == rmc.datetime.timestamp()
        assert (values["lat"], values["lon"]) == pytest.approx((gga.latitude, gga.longitude), abs=1e-12)
        assert (values["alt_m"], values["sats"], values["hdop"], values["fix"]) == (gga.altitude, 17, 0.61, 6)
        speed_ms, course = rmc.spd_over_grnd * KT_MS, math.radians(rmc.true_course)
        velocity = speed_ms * math.cos(course), speed_ms * math.sin(course)
        assert (values["gps_vx"], values["gps_vy"]) == pytest.approx(velocity, abs=1e-9)
        assert (values["eph"], values["epv"]) == (5.0, 5.0)


def test_nmea_without_a_fix_or_a_date_says_so() -> None:
    feed = Nmea()
    line = str(
        pynmea2.GGA(
            "GP", "GGA", ("120000.00", "5130.0", "N", "00030.0", "W", "1", "9", "0.9", "80", "M", "", "M", "", "")
        )
    )
    feed.push(line.encode() + b"\n" + line.encode()[:-1] + b"0\n", math.nan)
    feed.close()
    assert feed.take() is None
    assert feed.refused == {"bad_time": 1, "checksum": 1}
    noon = datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp()
    [(t, values)] = fixes(Nmea(), line.encode() + b"\n", noon + 3600 * 11)  # live: the date of this machine
    assert (t, values["lat"]) == (noon, 51.5)
    lost = str(pynmea2.RMC("GP", "RMC", ("120001.00", "V", "", "", "", "", "", "", "010324", "", "", "N")))
    assert fixes(Nmea(), lost.encode()) == [(noon + 1, {"fix": 0.0})]


def test_ubx_is_what_pyubx2_reads() -> None:
    draw, stream = random.Random(2), b""
    for k in range(200):
        at: dict[str, Any] = {"year": 2024, "month": 2, "day": 29, "hour": 23, "min": 59, "second": k % 60}
        stream += UBXMessage("NAV", "NAV-DOP", GET, hDOP=draw.uniform(0.5, 3)).serialize()
        stream += b"$GNRMC,,V,,,,,,,,,,N*4D\r\n"
        stream += UBXMessage(
            "NAV", "NAV-PVT", GET, **at, validDate=1, validTime=1, nano=draw.randrange(-10**6, 10**9), fixType=3,
            gnssFixOk=1, diffSoln=k % 2, numSV=draw.randrange(30),
            lon=draw.uniform(-180, 180), lat=draw.uniform(-90, 90),
            hMSL=draw.randrange(-10**5, 10**7), hAcc=draw.randrange(1, 10**5), vAcc=draw.randrange(1, 10**5),
            velN=draw.randrange(-10**5, 10**5), velE=draw.randrange(-10**5, 10**5), velD=draw.randrange(-10**4, 10**4),
            sAcc=draw.randrange(1, 10**4),
        ).serialize()  # fmt: skip
    theirs = [parsed for _, parsed in UBXReader(BytesIO(stream)) if getattr(parsed, "identity", "") == "NAV-PVT"]
    ours = fixes(Ubx(), stream)
    assert len(ours) == len(theirs) == 200
    for (t, values), m in zip(ours, theirs, strict=True):
        begin = datetime(m.year, m.month, m.day, m.hour, m.min, m.second, tzinfo=UTC).timestamp()
        assert t == pytest.approx(begin + m.nano * 1e-9, abs=1e-6)
        assert values.pop("hdop", 0.0) < 3.01
        wanted = {"lat": m.lat, "lon": m.lon, "alt_m": m.hMSL * 1e-3, "gps_vx": m.velN * 1e-3, "gps_vy": m.velE * 1e-3,
                  "gps_vz": m.velD * 1e-3, "eph": m.hAcc * 1e-3, "epv": m.vAcc * 1e-3, "speed_acc": m.sAcc * 1e-3,
                  "sats": m.numSV, "fix": 3 + m.diffSoln}  # fmt: skip
        assert values == pytest.approx(wanted, abs=1e-9)


def test_ubx_carries_the_receivers_words_on_jamming_and_spoofing() -> None:
    sample = discover()["ubx"].sample
    assert sample is not None
    radio = UBXMessage("MON", "MON-RF", GET, version=0, nBlocks=2, jammingState_01=1, jamInd_01=3, noisePerMS_01=80,
                       agcCnt_01=4000, jammingState_02=3, jamInd_02=200, noisePerMS_02=300, agcCnt_02=900)  # fmt: skip
    found = fixes(Ubx(), sample.data + radio.serialize() + sample.data)
    _, values = found[-1]
    assert {k: values[k] for k in ("noise", "agc", "jamming", "jamming_state", "spoofing_state")} == {
        "noise": 300, "agc": 900, "jamming": 200, "jamming_state": 3, "spoofing_state": 1}  # fmt: skip


def test_gpsd_is_asked_and_its_estimates_become_one_sigma() -> None:
    async def heard() -> tuple[bytes, list[Batch]]:
        sample = discover()["gpsd"].sample
        assert sample is not None
        asked, batches = bytearray(), list[Batch]()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.extend(await reader.readline())
            writer.write(sample.data)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        task = asyncio.create_task(
            LiveSource(GpsdSettings(url=f"tcp://127.0.0.1:{port}"), DEFAULT, batches.append).run()
        )
        await until(lambda: bool(batches))
        await end(task)
        server.close()
        return bytes(asked), batches

    asked, [batch] = asyncio.run(heard())
    assert asked == WATCH
    assert batch.ids == ["gps"]
    tpv = (
        b'{"class":"TPV","mode":3,"time":"2024-03-01T12:00:00.500Z","lat":51.5,"lon":-0.5,"alt":80,"speed":5,'
        b'"track":180,"climb":0.5,"eph":4}'
    )
    [(t, values)] = fixes(Gpsd(), tpv)
    assert t == datetime(2024, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC).timestamp()
    assert values == pytest.approx({"fix": 3, "lat": 51.5, "lon": -0.5, "alt_m": 80, "gps_vx": -5, "gps_vy": 0,
                                    "gps_vz": -0.5, "eph": 2}, abs=1e-12)  # fmt: skip
    assert fixes(Gpsd(), b'{"class":"TPV","mode":1,"time":"2024-03-01T12:00:01Z"}')[0][1] == {"fix": 0.0}
