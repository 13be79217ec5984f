"""Makes the page's base map, daemon/live/page/world.bin and airports.bin, from two packages of the registries.

    npm pack world-atlas@2 && tar xzf world-atlas-2*.tgz
    pip download --no-deps airportsdata && unzip airportsdata-*.whl
    python -m tools.basemap package/countries-50m.json airportsdata/airports.csv daemon/live/page

Land and borders are Natural Earth's at 1:50 million (public domain), by way of world-atlas (ISC). Airports are those
with an IATA code in airportsdata (MIT). The layout, which basemap.js reads; integers are little-endian varints, zigzag
where they have a sign:

    world.bin     "WKM1" · scale x, scale y, origin x, origin y (f8 degrees) · arcs · points of each arc, differences ·
                  rings of land · arcs of each ring (negative: ~index, backwards) · arcs that are borders
    airports.bin  "WKA1" · airports · code (3 bytes), latitude, longitude (1e-4 degrees, differences), each
"""

from __future__ import annotations

import csv
import json
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DEGREE = 1e4


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """With the sign in the lowest bit, so that small numbers of either sign are short."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def world(topology: dict[str, Any]) -> bytes:
    """Land and borders from a TopoJSON of countries."""
    (sx, sy), (ox, oy) = topology["transform"]["scale"], topology["transform"]["translate"]
    parts = [b"WKM1", struct.pack("<4d", sx, sy, ox, oy), varint(len(topology["arcs"]))]
    for arc in topology["arcs"]:
        parts.append(varint(len(arc)))
        parts += [signed(d) for point in arc for d in point[:2]]
    rings = list(rings_of(topology["objects"]["land"]["geometries"]))
    parts.append(varint(len(rings)))
    for ring in rings:
        parts += [varint(len(ring)), *map(signed, ring)]
    of_countries = Counter(
        index if index >= 0 else ~index
        for ring in rings_of(topology["objects"]["countries"]["geometries"])
        for index in ring
    )
    coast = {index if index >= 0 else ~index for ring in rings for index in ring}
    borders = sorted(index for index, n in of_countries.items() if n > 1 and index not in coast)
    return b"".join([*parts, varint(len(borders)), *map(varint, borders)])


def rings_of(geometries: Iterable[dict[str, Any]]) -> Iterator[list[int]]:
    """All rings of polygons, outer ones and holes."""
    for geometry in geometries:
        if geometry["type"] == "Polygon":
            yield from geometry["arcs"]
        elif geometry["type"] == "MultiPolygon":
            for polygon in geometry["arcs"]:
                yield from polygon


def airports(rows: Iterable[dict[str, str]]) -> bytes:
    """Those with a code that travellers know, from south to north."""
    found = sorted(
        (round(float(r["lat"]) * DEGREE), round(float(r["lon"]) * DEGREE), r["iata"]) for r in rows if r["iata"]
    )
    parts, lat, lon = [b"WKA1", varint(len(found))], 0, 0
    for y, x, code in found:
        parts += [code.encode("ascii"), signed(y - lat), signed(x - lon)]
        lat, lon = y, x
    return b"".join(parts)


def main(topology: str, table: str, folder: str) -> None:
    """Write both files."""
    land = world(json.loads(Path(topology).read_text()))
    with Path(table).open(encoding="utf-8") as file:
        fields = airports(csv.DictReader(file))
    for name, data in (("world.bin", land), ("airports.bin", fields)):
        (Path(folder) / name).write_bytes(data)
        print(name, len(data), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
