"""ASTERIX as Wireshark's dissector reads it, which shares nothing with libasterix. Needs `tshark` (Debian: tshark)."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from asterix import generated

from watchkeeper.streams.adapters.receivers.asterix import Asterix
from watchkeeper.streams.messages import COLUMN, Kind

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
MIDNIGHT = 1_709_251_200.0
PORT = 8600
RECORDS = 400
# Our field, Wireshark's, and what makes ours of its unit.
REPORT = {
    "lat": ("021_131_LAT", 1.0), "lon": ("021_131_LON", 1.0), "alt_ft": ("021_145_VALUE", 100.0),
    "gs_kt": ("021_160_GS", 3600.0), "trk_deg": ("021_160_TA", 1.0), "vs_fpm": ("021_155_BVR", 1.0),
    "sel_alt_ft": ("021_146_ALT", 1.0), "nic": ("021_090_NUCPNIC", 1.0), "nacp": ("021_090_NACP", 1.0),
    "emergency": ("021_200_PS", 1.0), "t": ("021_073_VALUE", 1.0),
}  # fmt: skip
TRACK = {
    "lat": ("062_105_LAT", 1.0), "lon": ("062_105_LON", 1.0), "alt_ft": ("062_136_VALUE", 100.0),
    "vs_fpm": ("062_220_VALUE", 1.0), "t": ("062_070_VALUE", 1.0),
}  # fmt: skip


def report(draw: random.Random, edition: Any) -> bytes:
    record = edition.cv_record.create({
        "080": draw.randrange(1 << 24), "073": (draw.uniform(0, 86_399), "s"), "020": draw.choice((1, 5, 10, 11, 13)),
        "131": (("LAT", (draw.uniform(-89, 89), "°")), ("LON", (draw.uniform(-179, 179), "°"))),
        "145": (draw.uniform(-10, 450), "FL"), "170": draw.choice(("EIN4TR  ", "DLH123  ", "N12345  ")),
        "160": (("RE", 0), ("GS", (draw.uniform(0, 0.2), "NM/s")), ("TA", (draw.uniform(0, 359), "°"))),
        "155": (("RE", 0), ("BVR", (draw.uniform(-6000, 6000), "ft/min"))),
        "146": (("SAS", 0), ("S", 0), ("ALT", (draw.uniform(0, 45_000), "ft"))),
        "070": (0, ("MODE3A", draw.randrange(4096))),
        "090": ((("NUCRNACV", 1), ("NUCPNIC", draw.randrange(12)), None),
                (("NICBARO", 1), ("SIL", 2), ("NACP", draw.randrange(12)), None)),
        "200": (("ICF", 0), ("LNAV", 0), 0, ("PS", draw.randrange(7)), ("SS", 0)),
    })  # fmt: skip
    return bytes(edition.create([record]).unparse().to_bytes())


def track(draw: random.Random, edition: Any) -> bytes:
    record = edition.cv_record.create({
        "010": (("SAC", 25), ("SIC", 1)), "040": draw.randrange(4096), "070": (draw.uniform(0, 86_399), "s"),
        "105": (("LAT", (draw.uniform(-89, 89), "°")), ("LON", (draw.uniform(-179, 179), "°"))),
        "136": (draw.uniform(0, 450), "FL"), "220": (draw.uniform(-6000, 6000), "ft/min"),
        "185": (("VX", (draw.uniform(-250, 250), "m/s")), ("VY", (draw.uniform(-250, 250), "m/s"))),
        "060": (("V", 0), ("G", 0), ("CH", 0), 0, ("MODE3A", draw.randrange(4096))),
    })  # fmt: skip
    return bytes(edition.create([record]).unparse().to_bytes())


def captured(blocks: list[bytes]) -> bytes:
    """A capture of raw IPv4 with a datagram for each block."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)]
    for n, block in enumerate(blocks):
        datagram = struct.pack("!HHHH", 4000, PORT, 8 + len(block), 0) + block
        size = 20 + len(datagram)
        address = bytes((127, 0, 0, 1))
        packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, n & 0xFFFF, 0, 64, 17, 0, address, address) + datagram
        out.append(struct.pack("<IIII", n, 0, len(packet), len(packet)) + packet)
    return b"".join(out)


def theirs(path: Path, blocks: list[bytes], fields: list[str]) -> list[list[str]]:
    path.write_bytes(captured(blocks))
    words = ["tshark", "-n", "-r", str(path), "-d", f"udp.port=={PORT},asterix", "-T", "fields"]
    for field in fields:
        words += ["-e", f"asterix.{field}"]
    found = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return [line.split("\t") for line in found.stdout.splitlines()]


def ours(blocks: list[bytes]) -> list[tuple[str, str, dict[str, float]]]:
    """Id, callsign and values, each block by a stream of its own, with the time of the day."""
    found = []
    for block in blocks:
        feed = Asterix()
        feed.push(block, MIDNIGHT + 43_200)
        batch = feed.take()
        assert batch is not None
        cols = batch.kinds[Kind.ADSB]
        values = dict(zip(COLUMN[Kind.ADSB], cols.data[:, 0].tolist(), strict=True))
        values["t"] = (float(cols.t[0]) - MIDNIGHT) % 86_400.0
        found.append((batch.ids[0], batch.callsigns.get(batch.ids[0], ""), values))
    return found


def compare(values: dict[str, float], cells: list[str], fields: dict[str, tuple[str, float]]) -> None:
    for (name, (_, scale)), cell in zip(fields.items(), cells, strict=True):
        assert values[name] == pytest.approx(scale * float(cell), abs=1e-6, rel=1e-9), name


def test_reports_of_category_021_are_what_wireshark_reads(tmp_path: Path) -> None:
    draw = random.Random(1)
    blocks = [report(draw, generated.Cat_021_2_6) for _ in range(RECORDS)]
    extra = ["021_080_VALUE", "021_070_MODE3A", "021_170_VALUE", "021_020_VALUE"]
    rows = theirs(tmp_path / "x.pcap", blocks, [*(field for field, _ in REPORT.values()), *extra])
    assert len(rows) == RECORDS
    kinds = {1: 1.0, 5: 5.0, 10: 7.0, 11: 9.0, 13: 14.0}
    for (name, callsign, values), cells in zip(ours(blocks), rows, strict=True):
        compare(values, cells[: len(REPORT)], REPORT)
        address, squawk, sign, kind = cells[len(REPORT) :]
        assert int(name, 16) == int(address, 0)
        assert f"{values['squawk']:04.0f}" == f"{int(squawk):04o}"
        assert callsign == sign.strip()
        assert values["category"] == kinds[int(kind)]


def test_tracks_of_category_062_are_what_wireshark_reads(tmp_path: Path) -> None:
    draw = random.Random(2)
    blocks = [track(draw, generated.Cat_062_1_19) for _ in range(RECORDS)]
    extra = ["062_185_VX", "062_185_VY", "062_060_MODE3A", "062_040_VALUE"]
    rows = theirs(tmp_path / "x.pcap", blocks, [*(field for field, _ in TRACK.values()), *extra])
    assert len(rows) == RECORDS
    for (name, _, values), cells in zip(ours(blocks), rows, strict=True):
        compare(values, cells[: len(TRACK)], TRACK)
        east, north, squawk, number = cells[len(TRACK) :]
        assert (float(east) ** 2 + float(north) ** 2) ** 0.5 == pytest.approx(values["gs_kt"] * 1852 / 3600)
        assert f"{values['squawk']:04.0f}" == f"{int(squawk):04o}"
        assert name == f"trk-25-1-{int(number, 0)}"
