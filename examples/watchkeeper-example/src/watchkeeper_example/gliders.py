"""Gliders of a field: `seconds;id;lat;lon;alt_m`, one line each, live over TCP or UDP and from `.gliders` files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import about
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import ID_MAX, Drop, Kind


class Settings(Source, frozen=True, kw_only=True, tag="gliders"):
    """Gliders of a field, as its ground station sends them."""

    url: StreamUrl
    field_alt_m: Annotated[float, about("m", "elevation of the field, which is added", ge=-500, le=5000)] = 0.0


class Gliders(LineFeed):
    """One feed. Bad lines are counted by reason in `refused` and never raise."""

    def __init__(self, *, via: str = "", field_alt_m: float = 0.0) -> None:
        super().__init__(256)  # a longer line is none of ours
        self.refused: Counter[str] = Counter()
        self._field_alt_m = field_alt_m
        self._rows = Rows(via)

    def take(self) -> Batch | None:
        """The samples since the last take."""
        return self._rows.take()

    def _line(self, line: bytes | None, now: float) -> None:  # noqa: ARG002  a line has its own time
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        try:
            seconds, name, lat, lon, alt_m = line.decode("ascii").strip().split(";")
            values = {"lat": float(lat), "lon": float(lon), "alt_ft": (float(alt_m) + self._field_alt_m) / 0.3048}
            t = float(seconds)
        except ValueError:
            self.refused[Drop.SYNTAX] += 1
            return
        if 0 < len(name) <= ID_MAX:
            self._rows.add(Kind.ADSB, name, t, values)
        else:
            self.refused[Drop.ID] += 1


def open_gliders(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "gliders", Gliders)


ADAPTER = AdapterDeclaration(
    name="gliders",
    help="gliders of a field, one line for each position",
    docs="https://example.org/watchkeeper-gliders",
    settings=Settings,
    feed=f"{__name__}:Gliders",
    takes=("via", "field_alt_m"),
    ways=(Way.STREAM,),
    sample=Sample(data=b"1709294400.0;D-1234;50.0;8.0;700\n", settings={"url": "tcp://field:4711"}),
    formats=(Format("gliders", f"{__name__}:open_gliders", (".gliders",)),),
)
