"""The history of one daemon or one replay: the parts together, and a sink for alarm events.

    pipeline ─ on_evidence ─▶ Recorder ─┐
    AlarmRouter ─ put ──────────────────┴▶ Writer (a thread) ─▶ history.sqlite ─▶ Reader ─▶ API, page

The file is an index that may be lost: alarms are in the journal, and everything else is for looking back. So what goes
wrong here is said (`health`, /readyz `warnings`), counted, and stops nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prometheus_client.core import Metric

from watchkeeper.config.history import History as Settings
from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.history import writing
from watchkeeper.daemon.history.reader import Reader, eras
from watchkeeper.daemon.history.recorder import Recorder
from watchkeeper.daemon.history.tables import open_for_reading
from watchkeeper.daemon.history.writer import Writer
from watchkeeper.daemon.live.view import Live
from watchkeeper.daemon.outputs.base import idle
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import said

log = logging.getLogger(__name__)

FILE = "history.sqlite"
# Questions answered at once; more wait.
READERS = 2
# The era of what only the journal knew when the file was begun.
FROM_JOURNAL = 0


class History:
    """A sink. Made before the pipeline's first tick; `start` begins to write, `close` ends it."""

    name = "history"
    failures = refused = 0

    def __init__(self, path: Path, settings: Settings, pipeline: Pipeline, *, patient: bool = False) -> None:
        self.path = path
        self.writer = Writer(path, settings, patient=patient)
        self.reader = Reader(self.writer)
        self.recorder = Recorder(pipeline, self.writer, _last_era(path))
        self._pipeline = pipeline
        self.pool = ThreadPoolExecutor(READERS, thread_name_prefix="history reader")
        self.delivered = 0

    def show_on(self, live: Live) -> None:
        """Note what people do on the live page."""
        live.on_acknowledged = self.acknowledged

    def start(self, known: Iterable[AlarmEvent] = ()) -> None:
        """Begin to write. `known` is what the journal has: a history that was lost has at least this."""
        self.writer.start()
        for event in known:
            self._put(event, FROM_JOURNAL, known=True)

    def acknowledged(self, alarm: str, by: str, given: bool) -> None:
        """A person looks after an alarm, or does not any more."""
        self.writer.put(writing.acknowledged(alarm, by, time.time(), given=given))
        self.writer.nudge()

    def close(self) -> None:
        """Write what waits, and end."""
        self.writer.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    # -- a sink ---------------------------------------------------------------------------------------------

    def put(self, event: AlarmEvent) -> None:
        """One alarm event, with the sentence that is said of it."""
        self._put(event, self.recorder.note(event), known=False)
        self.delivered += 1

    def _put(self, event: AlarmEvent, era: int, *, known: bool) -> None:
        callsigns: Mapping[str, str] = self._pipeline.fleet.callsigns
        sentence = said(event)
        names = [*event.subjects, *(callsigns[name] for name in event.subjects if name in callsigns)]
        self.writer.put(
            writing.event(era, event, sentence, " ".join([sentence, event.kind, event.id, *names]), known=known)
        )

    @property
    def waiting(self) -> int:
        """What is not on disk yet."""
        return self.writer.waiting

    @property
    def dropped(self) -> int:
        """Entries, of any sort, that found no room."""
        return self.writer.dropped

    async def run(self) -> None:
        """Task: nothing; the writer has a thread of its own."""
        await idle()

    async def flush(self) -> None:
        """Return when all is written."""
        while self.writer.waiting:
            self.writer.nudge()
            await asyncio.sleep(0.02)

    def health(self) -> list[str]:
        """What is wrong, in words."""
        failures = self.recorder.failures
        return [*self.writer.health(), *([f"{failures:,} ticks were not recorded, see the log"] if failures else [])]


def history_metrics(history: History | None) -> Iterator[Metric]:
    """For Prometheus; zeros without a history."""
    writer, recorder = (history.writer, history.recorder) if history else (None, None)
    yield gauge("history_bytes", "Disk that the history takes", writer.bytes if writer else 0)
    yield gauge("history_ok", "1 while the history is written", not (writer and writer.trouble))
    yield gauge("history_queue_depth", "Entries that are not in the history yet", writer.waiting if writer else 0)
    yield total("history_samples", "Samples of vehicles handed to the history", recorder.samples if recorder else 0)
    yield total("history_dropped", "Entries left out because the disk did not keep up", writer.dropped if writer else 0)
    failed = (writer.failed + recorder.failures) if writer and recorder else 0
    yield total("history_failures", "Entries and ticks left out because of an error", failed)
    removed = writer.removed_buckets if writer else 0
    yield total("history_removed_buckets", "Buckets of three minutes removed, by age or for room", removed)


def _last_era(path: Path) -> tuple[int, float] | None:
    """The newest era of a file and its end; None: there is none that can be read."""
    if not path.exists():
        return None
    try:
        db = open_for_reading(path)
    except sqlite3.Error:
        return None
    try:
        found = next(iter(eras(db)), None)
    except sqlite3.Error:
        return None
    finally:
        db.close()
    return (found.era, found.t_last) if found is not None else None
