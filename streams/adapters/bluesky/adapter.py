"""BlueSky, the air traffic simulator (extra `bluesky`): run with a scenario, joined over its network, or as a log.

process.py is the process in which it runs, and says what its lines are. Every moment becomes ADS-B samples of
all aircraft, at one time, so one frame:

    id                      the callsign, as BlueSky has it
    lat, lon, trk_deg       as they are
    alt_m, sel_alt_m        alt_ft, sel_alt_ft
    gs_ms                   gs_kt
    vs_ms                   vs_fpm

A controller's command becomes an `action`: heading_delta_deg, speed_delta_kt (both 0 for an altitude).

Times: a scenario that is read as a log has BlueSky's own UTC. Live, simulated seconds are counted from when the first
moment arrived (`times = "message"` takes BlueSky's UTC instead, which begins at midnight unless the scenario says
otherwise), and a simulation that is reset begins again at the present.

A `.scn` file is a log too: it is run as fast as it goes, until it quits, holds, has neither aircraft nor commands left,
or LOG_S have passed in it.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from math import inf, isnan, nan
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
import numpy as np

from watchkeeper.config.adapters.bluesky import BlueSky as Settings
from watchkeeper.streams.adapters.base import READ_BYTES, AdapterDeclaration, LineFeed, Sample, Way, problems_of, within
from watchkeeper.streams.batch import F8, Batch, columns_of
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.logs.base import Format, LogError, SourceInfo
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import ID_MAX, Drop, Kind

PROCESS = "watchkeeper.streams.adapters.bluesky.process"
# A moment of 20,000 aircraft has some 4 MB.
LINE_MAX = 16 << 20
LOG_S = 3600.0
END_S = 5.0
# Our field: the line's, and what one unit of it is.
_FIELDS = {
    "lat": ("lat", 1.0),
    "lon": ("lon", 1.0),
    "alt_ft": ("alt_m", 1.0 / FT_M),
    "gs_kt": ("gs_ms", 1.0 / KT_MS),
    "trk_deg": ("trk_deg", 1.0),
    "vs_fpm": ("vs_ms", 60.0 / FT_M),
    "sel_alt_ft": ("sel_alt_m", 1.0 / FT_M),
}

Values = list[float | None]


class _Line(msgspec.Struct, gc=False):
    """A moment, a command (`id` is one name) or a refusal."""

    t: float = nan
    simt: float = nan
    id: list[str] | str = ""
    lat: Values = []
    lon: Values = []
    alt_m: Values = []
    gs_ms: Values = []
    trk_deg: Values = []
    vs_ms: Values = []
    sel_alt_m: Values = []
    heading_delta_deg: float = 0.0
    speed_delta_ms: float = 0.0
    refused: str | None = None


_decode = json_decoder(_Line)


class BlueSky(LineFeed):
    """The lines of one simulation; see adapters/base.py."""

    def __init__(self, *, via: str = "", times: Literal["arrival", "message"] = "message") -> None:
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self.simt = 0.0
        self._via = via
        self._times = times
        self._began = nan
        self._parts: list[Batch] = []

    def take(self) -> Batch | None:
        """See Feed."""
        parts, self._parts = self._parts, []
        return join(parts) if parts else None

    def _line(self, line: bytes | None, now: float) -> None:
        try:
            told = _decode(line or b"")
        except ForeignError:
            self.refused[Drop.SYNTAX if line is not None else Drop.SIZE] += 1
            return
        if told.refused is not None:
            self.refused["command"] += 1
        elif isnan(told.t) or isnan(told.simt):
            self.refused[Drop.MISSING] += 1
        elif isinstance(told.id, str):
            changes = {"heading_delta_deg": told.heading_delta_deg, "speed_delta_kt": told.speed_delta_ms / KT_MS}
            self._add(Kind.ACTION, [told.id], self._time(told, now), {k: np.array([v]) for k, v in changes.items()})
        else:
            columns = {field: (getattr(told, name), unit) for field, (name, unit) in _FIELDS.items()}
            if any(len(values) not in (0, len(told.id)) for values, _ in columns.values()):
                self.refused[Drop.FRAME] += 1
                return
            values = {f: unit * np.array(v, np.float64) for f, (v, unit) in columns.items() if v}
            self._add(Kind.ADSB, told.id, self._time(told, now), values)

    def _time(self, told: _Line, now: float) -> float:
        if self._times == "message" or isnan(now):
            self.simt = told.simt
            return told.t
        if isnan(self._began) or told.simt < self.simt:  # the first, or it was reset
            self._began = now - told.simt
        self.simt = told.simt
        return self._began + told.simt

    def _add(self, kind: Kind, names: list[str], t: float, values: dict[str, F8]) -> None:
        if not names:
            return
        if any(not 0 < len(name) <= ID_MAX for name in names):
            self.refused[Drop.ID] += 1
            return
        n = len(names)
        via = np.full(n, 0 if self._via else -1, np.int32)
        columns = columns_of(kind, np.arange(n, dtype=np.int32), np.full(n, t), values, via=via)
        self._parts.append(Batch(names, {kind: columns}, [self._via] if self._via else []))


def command_of(source: Settings) -> list[str]:
    """The command line of the process for a source: bluesky://HOST:PORT joins, bluesky:///FILE.scn runs."""
    where = urlsplit(source.url)
    start = [sys.executable, "-m", PROCESS]
    if where.netloc:
        return [*start, "join", where.netloc, "--period", str(source.period_s)]
    scenario = unquote(where.path).rstrip("/")
    given = ["--scenario", scenario] if scenario else []
    given += ["--commands", source.commands] if source.commands else []
    return [*start, "run", *given, "--period", str(source.period_s), "--speed", str(source.speed)]


class ScenarioLog:
    """A scenario as a log: each reading runs it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self._size = path.stat().st_size
        self._refused: Counter[str] = Counter()
        self._problem = ""

    def batches(self, chunk: int = 8192, *, start: float = -inf, stop: float = inf) -> Iterator[Batch]:  # noqa: ARG002
        """Samples in the order of the simulation. Raises LogError if it does not come to a good end."""
        feed = BlueSky()
        self._refused, self._problem = feed.refused, ""
        limits = ["--speed", "0", "--seconds", str(LOG_S)]
        command = [sys.executable, "-m", PROCESS, "run", "--scenario", str(self.path.resolve()), *limits]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            try:
                while data := running.stdout.read1(READ_BYTES):  # type: ignore[attr-defined]
                    feed.push(data, nan)
                    self.position = int(self._size * min(1.0, feed.simt / LOG_S))
                    yield from within(feed.take(), start, stop)
                said = running.stderr.read().decode("utf-8", "replace").strip().splitlines()
                if running.wait(END_S):
                    raise LogError(self.path, said[-1] if said else "BlueSky broke down")
            finally:
                with suppress(ProcessLookupError):
                    running.terminate()
        feed.close()
        if feed.simt >= LOG_S - 1.0:
            self._problem = f"the scenario goes on: what is after {LOG_S:,.0f} s was not read"
        self.position = self._size

    def info(self) -> SourceInfo:
        """Format, size, and the commands that BlueSky did not take."""
        problems = problems_of(self._problem, "lines", self._refused)
        return SourceInfo(self.path, "bluesky", self._size, problems, None, self._refused.total())


def open_scenario(path: Path) -> ScenarioLog:
    """A scenario file. Raises LogError."""
    if find_spec("bluesky") is None:
        raise LogError(path, 'a scenario of BlueSky needs it: pip install "watchkeeper[bluesky]"')
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise LogError(path, f"not a scenario: {error}") from error
    if not any(">" in line for line in text.splitlines() if not line.startswith("#")):
        raise LogError(path, "not a scenario: no line with a time, > and a command")
    return ScenarioLog(path)


BLUESKY = AdapterDeclaration(
    name="bluesky",
    help="the air traffic simulator BlueSky, live, and its scenarios",
    docs="adapters/bluesky.md",
    settings=Settings,
    feed=f"{__name__}:BlueSky",
    takes=("via", "times"),
    ways=(Way.PROCESS,),
    command=f"{__name__}:command_of",
    sample=Sample(
        data=b'{"t": 1709294400.0, "simt": 1.0, "id": ["KL204"], "lat": [52.0], "lon": [4.0], "alt_m": [9144.0], '
        b'"gs_ms": [230.0], "trk_deg": [90.0], "vs_ms": [0.0], "sel_alt_m": [9144.0]}\n',
        settings={"url": "bluesky:///scenario.scn"},
    ),
    needs={"bluesky": "bluesky-simulator"},
    extra="watchkeeper[bluesky]",
    formats=(Format("bluesky", f"{__name__}:open_scenario", (".scn",)),),
)
