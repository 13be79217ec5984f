"""Makes daemon/init/airports.csv.gz from two tables of OurAirports: `python -m tools.airports FOLDER`.

The folder has airports.csv and runways.csv, which are at https://ourairports.com/data, in the public domain; with or
without .gz. HEAD says what is kept.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.rooms import ROOT

OUT = ROOT / "daemon" / "init" / "airports.csv.gz"
SIZES = {"large_airport": "l", "medium_airport": "m", "small_airport": "s"}
# A small airport is kept if it has a hard runway of this length: circuits are flown there with transponders.
LONG_FT = 2500.0
HARD = ("ASP", "CON", "PEM", "BIT", "TAR", "PAV")
HEAD = """\
# OurAirports, https://ourairports.com/data, in the public domain by its authors. No warranty; not for navigation.
# Large and medium airports, and small ones with a hard runway of 2,500 ft: ident,lat,lon,elevation_ft,size
"""


def rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """The rows of one of the tables."""
    packed, plain = folder / f"{name}.csv.gz", folder / f"{name}.csv"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    yield from csv.DictReader(text.decode("utf-8").splitlines())


def extract(folder: Path) -> str:
    """The text of the extract."""
    longest_ft: dict[str, float] = defaultdict(float)
    for row in rows(folder, "runways"):
        if row["surface"][:3].upper() in HARD and row["closed"] != "1":
            ident = row["airport_ident"]
            longest_ft[ident] = max(longest_ft[ident], float(row["length_ft"] or 0.0))
    kept = []
    for row in rows(folder, "airports"):
        size = SIZES.get(row["type"])
        if size in ("l", "m") or (size == "s" and longest_ft[row["ident"]] >= LONG_FT):
            place = f"{float(row['latitude_deg']):.3f},{float(row['longitude_deg']):.3f}"
            kept.append(f"{row['ident']},{place},{row['elevation_ft']},{size}\n")
    return HEAD + "".join(sorted(kept))


if __name__ == "__main__":
    text = extract(Path(sys.argv[1]))
    OUT.write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
    print(f"{text.count(chr(10)) - 2:,} airports, {OUT.stat().st_size:,} bytes")
