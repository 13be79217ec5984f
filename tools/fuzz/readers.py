"""Targets: every reader of files, of logs and of evaluations, and every live feed, on damaged input.

Good: it is read, read in part with a word about the rest, or refused with a clear error. A clear error is a LogError,
or one of the few that a command turns into a line, that names the file and says why. Everything else is a failure:
another exception, an error without words, memory or time without end.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.fuzz import corpus, evaluated
from tools.fuzz.mutate import mutated
from tools.fuzz.run import Case, Target
from watchkeeper.evaluation.conflicts.load import read_episodes
from watchkeeper.evaluation.leakage.features import correlations
from watchkeeper.evaluation.paired.files import read_model
from watchkeeper.evaluation.protocol.splits import read_splits
from watchkeeper.evaluation.shift_matrix.outcomes import outcomes_in
from watchkeeper.evaluation.textfile.command import rows_of
from watchkeeper.evaluation.tracks.files import read_tracks
from watchkeeper.evaluation.tracks.roads import read_roads
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import discover
from watchkeeper.streams.check import checked
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.foreign.library import UnforeseenError
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log

Read = Callable[[Path], str]


def read_log(path: Path) -> str:
    """Everything that a replay would judge."""
    log = open_log(path)
    for batch in log.batches():
        checked(batch)
    info = log.info()
    assert all(problem.strip() for problem in info.problems)
    return "part" if info.problems else "read"


def reader_target(files: corpus.Files, read: Read) -> Case:
    """Cases of one reader: a mutated file, next to what the reader looks for there."""
    folder = Path(tempfile.mkdtemp())
    for name, data in files.beside.items():
        (folder / name).write_bytes(data)
    path = folder / files.name
    opened = folder / files.opens if files.opens else path
    for data in files.seeds:
        path.write_bytes(files.seal(data))
        with contextlib.suppress(LogError):
            read(opened)  # warms up, compiles

    def case(draw: random.Random) -> str:
        path.write_bytes(files.seal(damaged(draw, files)))
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return read(opened)
        except UnforeseenError:
            raise
        except LogError as error:
            _is_clear(error)
            return "refused"

    return case


def damaged(draw: random.Random, files: corpus.Files) -> bytes:
    """One damaged content: as bytes, or in what it says."""
    if files.edit is not None and draw.random() < 0.5:
        return files.edit(draw, draw.choice(files.seeds))
    return mutated(draw, files.seeds)


def _is_clear(error: LogError) -> None:
    text = str(error)
    # the file that is damaged, the one that was opened, or one that a damaged one names
    assert text.startswith(f"{error.path}: "), f"does not name the file: {text}"
    assert error.path.name, f"does not name the file: {text}"
    assert len(error.problem) >= len("empty"), f"does not say why: {text}"
    assert "\n" not in text, f"more than one line: {text}"


def feed_target(name: str) -> Case:
    """Cases of one live feed: mutated bytes in pieces of any size."""
    adapter = discover()[name]
    assert adapter.settings is not None
    assert adapter.sample is not None
    folder = Path(tempfile.mkdtemp())
    for file, text in adapter.sample.files.items():
        (folder / file).write_text(text)
    given = {k: str(folder / v) if v in adapter.sample.files else v for k, v in adapter.sample.settings.items()}
    source = adapter.settings(**given)
    make = resolve(adapter.feed)
    settings = {key: getattr(source, key) for key in adapter.takes}
    seeds: Sequence[bytes] = [adapter.sample.data, adapter.sample.data * 5]

    def case(draw: random.Random) -> str:
        feed = make(**settings)
        data = mutated(draw, seeds)
        piece = draw.choice((1, 7, 100, len(data) + 1)) if len(data) < 5000 else len(data)
        samples = 0
        for at in range(0, len(data), piece):
            feed.push(data[at : at + piece], draw.choice((1.7e9, math.nan)))
            if (batch := feed.take()) is not None:
                samples += len(checked(batch))
        feed.close()
        feed.take()
        return "part" if feed.refused else "read" if samples else "refused"

    return case


def _log_target(name: str) -> Case:
    return reader_target(corpus.LOGS[name](), read_log)


def _evaluation_target(name: str) -> Case:
    files, read = EVALUATIONS[name]
    return reader_target(files(), read)


def _whole(function: Callable[[Path], object]) -> Read:
    def read(path: Path) -> str:
        function(path)
        return "read"

    return read


def _figures(path: Path) -> None:
    """As `evaluate textfile` does: what is no result is refused."""
    try:
        rows_of(read_json(path))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LogError(path, "no result") from error


def _road_ids(path: Path) -> Tracks:
    return read_tracks(path, quiet=True, roads=read_roads(path.parent / "roadmap.geo"))


EVALUATIONS: dict[str, tuple[Callable[[], corpus.Files], Read]] = {
    "conflicts json": (lambda: evaluated.episode("e.json"), _whole(lambda path: list(read_episodes(path, 1.0)))),
    "conflicts msgpack": (lambda: evaluated.episode("e.msgpack"), _whole(lambda path: list(read_episodes(path, 1.0)))),
    "conflicts csv": (lambda: evaluated.episode("e.csv"), _whole(lambda path: list(read_episodes(path, 1.0)))),
    "conflicts truth": (evaluated.truth, _whole(lambda path: list(read_episodes(path, 1.0)))),
    "shift_matrix json": (lambda: evaluated.outcomes("o.json"), _whole(lambda path: list(outcomes_in(path, {})))),
    "shift_matrix csv": (lambda: evaluated.outcomes("o.csv"), _whole(lambda path: list(outcomes_in(path, {})))),
    "tracks geojson": (evaluated.geojson, _whole(lambda path: read_tracks(path, quiet=True))),
    "tracks csv": (evaluated.tracks_csv, _whole(lambda path: read_tracks(path, quiet=True))),
    "tracks roads": (evaluated.road_network, _whole(read_roads)),
    "tracks road ids": (evaluated.road_tracks, _whole(_road_ids)),
    "paired json": (evaluated.paired, _whole(lambda path: read_model(path, ["dtw_km"]))),
    "leakage csv": (evaluated.features, _whole(lambda path: correlations(path, None))),
    "splits json": (evaluated.splits, _whole(read_splits)),
    "textfile json": (evaluated.result, _whole(_figures)),
}

TARGETS: dict[str, Target] = {
    **{f"log {name}": functools.partial(_log_target, name) for name in corpus.LOGS},
    **{f"feed {name}": functools.partial(feed_target, name) for name, adapter in discover().items() if adapter.feed},
    **{f"evaluate {name}": functools.partial(_evaluation_target, name) for name in EVALUATIONS},
}
