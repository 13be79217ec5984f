"""KML with Google's tracks (`gx:Track`), `.kml`, and packed as `.kmz`: for Google Earth, with a slider for the time.

    Document
      Folder "adsb"                      one for each kind that has positions
        Placemark                        one for each vehicle
          gx:MultiTrack
            gx:Track                     one for each leg: altitudeMode, when …, gx:coord …
      Folder "alarms"
        Placemark                        one for each alarm, with its TimeSpan

Times are to the microsecond. Altitudes are metres above the sea (`absolute`). Where a leg has no altitude, it becomes a
track of its own on the ground (`clampToGround`), in which the third number of a coordinate has no meaning.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import BinaryIO, cast
from xml.sax.saxutils import escape

import numpy as np

from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.exports.alarms import Alarm
from watchkeeper.streams.adapters.exports.drawing import Drawing
from watchkeeper.streams.adapters.exports.times import dates
from watchkeeper.streams.adapters.exports.tracks import Track, cut_where
from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.logs.base import ALARMS, ORIGIN, Origin, Target
from watchkeeper.streams.messages import Kind

# Lines of text that are put together before they are written.
_ROWS_AT_ONCE = 8192
# What XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Opacity, blue, green, red: the order of KML. Colours that differ for most eyes (Okabe and Ito).
_LINES = {Kind.ADSB: "ffe9b456", Kind.GPS: "ff739e00", Kind.ROUTE: "ffa779cc"}
_SIGNS = {"advisory": "ff42e4f0", "caution": "ff009fe6", "warning": "ff005ed5"}
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
<Document>
<name>Watchkeeper</name>
"""
# The one file in a .kmz; the earliest date that a zip file can have, so that the same samples give the same bytes.
_PACKED_NAME, _PACKED_DATE = "doc.kml", (1980, 1, 1, 0, 0, 0)


class KmlWriter:
    """One file."""

    def __init__(self, path: Path, *, alarms: Path | None = None, origin: Origin | None = None) -> None:
        self.samples = 0
        self._path = path
        self._drawing = Drawing(path, alarms, origin)

    @property
    def notes(self) -> tuple[str, ...]:
        """See Writer."""
        return self._drawing.notes

    def write(self, batch: Batch) -> None:
        """See Writer."""
        for _, _, found in self._drawing.add(batch):
            self.samples += len(found.rows)

    def close(self) -> None:
        """See Writer."""
        self._drawing.finish()
        with self._path.open("wb") as file:
            if self._path.name.lower().endswith(".kmz"):
                entry = zipfile.ZipInfo(_PACKED_NAME, _PACKED_DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with zipfile.ZipFile(file, "w") as archive, archive.open(entry, "w", force_zip64=True) as packed:
                    self._draw(cast(BinaryIO, packed))
            else:
                self._draw(file)

    def _draw(self, file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, "utf-8", newline="\n", write_through=False)
        text.write(_HEAD)
        for kind, colour in _LINES.items():
            text.write(_style(kind.word, f"<LineStyle><color>{colour}</color><width>2</width></LineStyle>"))
        for severity, colour in _SIGNS.items():
            text.write(_style(severity, f"<IconStyle><color>{colour}</color></IconStyle>"))
        folder: Kind | None = None
        for track in self._drawing.tracks.each():
            if track.kind is not folder:
                text.write("</Folder>\n" if folder is not None else "")
                text.write(f"<Folder>\n<name>{track.kind.word}</name>\n")
                folder = track.kind
            text.writelines(_placemark(track))
        text.write("</Folder>\n" if folder is not None else "")
        if self._drawing.alarms:
            text.write("<Folder>\n<name>alarms</name>\n")
            for alarm in self._drawing.alarms:
                text.write(_sign(alarm, self._drawing.places.of(alarm)))
            text.write("</Folder>\n")
        text.write("</Document>\n</kml>\n")
        text.flush()
        text.detach()


def _placemark(track: Track) -> Iterator[str]:
    """A vehicle's tracks: each leg, and in each leg the parts with an altitude and those without."""
    name = f"{track.id} ({track.callsign})" if track.callsign else track.id
    yield f"<Placemark>\n<name>{_xml(name)}</name>\n<styleUrl>#{track.kind.word}</styleUrl>\n"
    yield _data({"id": track.id, "callsign": track.callsign, "via": ", ".join(track.vias)})
    yield "<gx:MultiTrack>\n"
    for leg in track.legs():
        absent = np.isnan(leg[:, 3])
        for part in cut_where(leg, absent[1:] != absent[:-1]):
            grounded = bool(np.isnan(part[0, 3]))
            yield f"<gx:Track>\n<altitudeMode>{'clampToGround' if grounded else 'absolute'}</altitudeMode>\n"
            for at in range(0, len(part), _ROWS_AT_ONCE):
                yield "".join(f"<when>{date}</when>\n" for date in dates(part[at : at + _ROWS_AT_ONCE, 0]))
            for at in range(0, len(part), _ROWS_AT_ONCE):
                rows = part[at : at + _ROWS_AT_ONCE, 1:].tolist()
                yield "".join(f"<gx:coord>{x!r} {y!r} {0 if grounded else z!r}</gx:coord>\n" for x, y, z in rows)
            yield "</gx:Track>\n"
    yield "</gx:MultiTrack>\n</Placemark>\n"


def _sign(alarm: Alarm, places: list[F8]) -> str:
    event = alarm.last
    begin, *end = dates(np.array([event.t_raised, *([] if event.t_cleared is None else [event.t_cleared])]))
    span = f"<TimeSpan><begin>{begin}</begin>{f'<end>{end[0]}</end>' if end else ''}</TimeSpan>"
    facts = {
        "kind": event.kind, "severity": alarm.severity, "subjects": ", ".join(event.subjects), "alarm": event.id,
        "ended": event.ended or "",
    }  # fmt: skip
    return (
        f"<Placemark>\n<name>{_xml(f'{event.kind}: ' + ' and '.join(event.subjects))}</name>\n"
        f"<description>{_xml(event.words)}</description>\n{span}\n<styleUrl>#{_xml(alarm.severity)}</styleUrl>\n"
        f"{_data(facts)}{_geometry(places)}</Placemark>\n"
    )


def _geometry(places: list[F8]) -> str:
    points = [_point(*where.tolist()) for where in places]
    return f"<MultiGeometry>{''.join(points)}</MultiGeometry>\n" if len(points) > 1 else "".join(points)


def _point(_t: float, lon: float, lat: float, alt_m: float) -> str:
    if isnan(alt_m):
        return f"<Point><coordinates>{lon!r},{lat!r}</coordinates></Point>\n"
    coordinates = f"<coordinates>{lon!r},{lat!r},{alt_m!r}</coordinates>"
    return f"<Point><altitudeMode>absolute</altitudeMode>{coordinates}</Point>\n"


def _data(facts: dict[str, str]) -> str:
    """What is known besides, as names and values; what is empty is left out."""
    rows = [f'<Data name="{name}"><value>{_xml(value)}</value></Data>' for name, value in facts.items() if value]
    return f"<ExtendedData>{''.join(rows)}</ExtendedData>\n"


def _style(name: str, content: str) -> str:
    return f'<Style id="{name}">{content}</Style>\n'


def _xml(text: str) -> str:
    return escape(_UNWRITABLE.sub("\ufffd", text))


KML = AdapterDeclaration(
    name="kml",
    help="tracks and alarms for Google Earth",
    docs="export.md",
    targets=(
        Target(
            name="kml",
            help="tracks with a time slider, for Google Earth; .kmz is the same, packed",
            writer=f"{__name__}:KmlWriter",
            suffixes=(".kml", ".kmz"),
            takes=(ALARMS, ORIGIN),
        ),
    ),
)
