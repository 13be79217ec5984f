"""Cuts of real recordings for tests/recordings: every clone tests what is promised about real traffic and flights.

    python -m tools.recordings adsb WHEEL        from the wheel of `traffic` 2.13 (pip download --no-deps traffic==2.13)
    python -m tools.recordings flights FOLDER    from GPS/IMU flights as CSV (docs/logs.md), as listed in FLIGHTS
    python -m tools.recordings px4 FOLDER        from ULog files of PX4: the topics that we read, whole in time

Only recordings under a permissive licence: tests/recordings/NOTICE.md names source and licence of
each. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import struct
import sys
import zipfile
from pathlib import Path

from watchkeeper.streams.adapters.vehicles import ulog, ulog_signals, ulog_told

OUT = Path(__file__).resolve().parents[1] / "tests" / "recordings"
# All files together; a clone should stay small.
MOST_BYTES = 3_000_000
SAMPLES = "traffic/data/samples/"
WHOLE = (
    "noisy/noisy_spoofing.json.gz",
    "noisy/noisy_ground.json.gz",
    "noisy/noisy_landing.json.gz",
    "noisy/noisy_takeoff.json.gz",
    "noisy/noisy_time_issue.json.gz",
    "readsb/trace_full_ac671b.json",
    "dump1090/sample_dump1090.bin",
)
PARIS, PARIS_S = "collections/quickstart.json.gz", 600.0
# name -> from and to, s of its own time: in motion, long enough for the filter to align and an attack to be found
FLIGHTS = {
    "quad106": (0.0, 240.0), "plane_testlog2": (300.0, 500.0), "car_comma": (0.0, 60.0), "bench_frozen_gps": (0.0, 86.0)
}  # fmt: skip
# A ULog begins with its magic, version and time; then messages: length of the body, type, body.
ULOG_HEAD, ULOG_MESSAGE = 16, struct.Struct("<HB")
TOPICS = {ulog.IMU, *ulog.GPS, ulog_told.STATUS, *ulog_signals.TOPICS}


def packed(content: bytes) -> bytes:
    """Compressed, without a time in it."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(content)
    return out.getvalue()


def adsb(wheel: Path) -> dict[str, bytes]:
    """Files of the wheel, and the busiest ten minutes over Paris."""
    with zipfile.ZipFile(wheel) as archive:
        found = {f"traffic/{name}": archive.read(SAMPLES + name) for name in WHOLE}
        rows = json.loads(gzip.decompress(archive.read(SAMPLES + PARIS)))
    times = sorted(row["timestamp"] for row in rows)
    # the middle of the recording, where most aircraft are
    start = times[len(times) // 2]
    part = [row for row in rows if start <= row["timestamp"] < start + 1000 * PARIS_S]
    keep = (
        "timestamp",
        "icao24",
        "callsign",
        "latitude",
        "longitude",
        "altitude",
        "groundspeed",
        "track",
        "vertical_rate",
    )
    slim = [{name: row[name] for name in keep if name in row} for row in part]
    found["traffic/collections/paris.json.gz"] = packed(json.dumps(slim, separators=(",", ":")).encode())
    return found


def flights(folder: Path) -> dict[str, bytes]:
    """A part of each flight."""
    found = {}
    for name, (start, stop) in FLIGHTS.items():
        out = io.StringIO()
        with gzip.open(folder / f"{name}.csv.gz", "rt", newline="") as file:
            lines = csv.DictReader(file)
            writer = csv.DictWriter(out, list(lines.fieldnames or ()), lineterminator="\n")
            writer.writeheader()
            writer.writerows(line for line in lines if start <= float(line["t"]) <= stop)
        found[f"flights/{name}.csv.gz"] = packed(out.getvalue().encode())
    return found


def px4(folder: Path) -> dict[str, bytes]:
    """Each log without the data of topics that nothing of ours reads."""
    return {f"px4/{path.name}.gz": packed(slim_ulog(path.read_bytes())) for path in sorted(folder.glob("*.ulg"))}


def slim_ulog(log: bytes) -> bytes:
    """All messages but the data of other topics."""
    kept, at, topics = [log[:ULOG_HEAD]], ULOG_HEAD, dict[bytes, str]()
    while at + ULOG_MESSAGE.size <= len(log):
        size, kind = ULOG_MESSAGE.unpack_from(log, at)
        end = at + ULOG_MESSAGE.size + size
        message, body = log[at:end], log[at + ULOG_MESSAGE.size : end]
        at = end
        if kind == ord("A"):  # a topic's number, and its name
            topics[body[1:3]] = body[3:].decode()
        if kind != ord("D") or topics[body[:2]] in TOPICS:
            kept.append(message)
    return b"".join(kept)


def main() -> int:
    """Write the cuts; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("adsb", "flights", "px4"))
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    made = {"adsb": adsb, "flights": flights, "px4": px4}[args.what](args.source)
    for name, content in made.items():
        path = args.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{len(content):9,d} {name}")
    whole = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{whole:9,d} of {MOST_BYTES:,d} bytes")
    return 0 if whole <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
