"""What a map shows of a log: its tracks, and alarms at the places where they were raised. GeoJSON and KML draw it.

drawing = Drawing(path, alarms, origin)
for kind, cols, found in drawing.add(batch): …     positions as they come
drawing.finish()                                   raises LogError when there is nothing to draw
drawing.tracks.each(), drawing.alarms, drawing.places
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from watchkeeper.streams.adapters.exports.alarms import Alarm, alarms
from watchkeeper.streams.adapters.exports.places import Places
from watchkeeper.streams.adapters.exports.positions import Positions
from watchkeeper.streams.adapters.exports.tracks import Tracks
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.logs.base import LogError, Origin
from watchkeeper.streams.messages import Kind


class Drawing:
    """One map. `path` is the file that it becomes: positions wait next to it."""

    def __init__(self, path: Path, alarm_file: Path | None, origin: Origin | None) -> None:
        self.alarms: list[Alarm] = [] if alarm_file is None else alarms(alarm_file)
        self.places = Places(self.alarms)
        self.tracks = Tracks(path.parent, origin)
        self._path = path

    def add(self, batch: Batch) -> Iterator[tuple[Kind, Columns, Positions]]:
        """Take a batch; its positions, with the samples that they are of."""
        for kind, cols, found in self.tracks.add(batch):
            self.places.see(batch.ids, found)
            yield kind, cols, found

    def finish(self) -> None:
        """All batches have been added. Raises LogError when nothing has a place on the globe."""
        if not self.tracks.placed and not self.alarms:
            raise LogError(self._path, "; ".join(("nothing to draw", *(self.notes or ("the log has no sample",)))))

    @property
    def notes(self) -> tuple[str, ...]:
        """Samples that are not on the map."""
        tracks = self.tracks
        found = []
        if tracks.placeless:
            counts = ", ".join(f"{n:,} {kind.word}" for kind, n in sorted(tracks.placeless.items()))
            local = " (--origin places a local frame)" if tracks.placeless.get(Kind.GPS) else ""
            found.append(f"samples without latitude and longitude, not on the map: {counts}{local}")
        if tracks.refused:
            found.append(f"{tracks.refused:,} samples that are out of range or incomplete, not on the map")
        if lost := sum(not self.places.of(alarm) for alarm in self.alarms):
            found.append(f"{lost:,} of {len(self.alarms):,} alarms have no position")
        return tuple(found)
