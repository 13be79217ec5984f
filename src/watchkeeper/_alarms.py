"""Alarms: what `watch` found, as a sequence, as a frame and as a table in a notebook; and what it did not judge."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import msgspec

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.incidents.fold import counted
from watchkeeper.detectors.sentence import said
from watchkeeper.streams.frames.cells import Clock
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, frame_of, time_cells, time_type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

F = TypeVar("F")
# Rows of the table in a notebook; a frame has all of them.
SHOWN = 20
_TIMES = ("t_onset", "t_raised", "t_cleared")


class Alarms(Sequence[AlarmEvent], Generic[F]):
    """All alarms of one run, each by its last event, in the order they were raised.

    `events` has every event, as `watchkeeper replay --alarms` writes them. What was not judged is said in `drops`
    (samples refused, by stream and reason), `not_judged` (alarm kinds that judged nobody, and why), `coverage` (vehicle
    by vehicle) and `problems` (of the files or frames).

    >>> import watchkeeper as wk
    >>> alarms = wk.watch(wk.simulate("head-on", seed=1, seconds=240))
    >>> alarms
    Alarms: 2 (1 conflict, 1 los) from 1,440 samples; not judged: gps_imu (no gps, no imu), intent ...signal (no signal)
    >>> alarms[0].kind, alarms[0].subjects
    ('conflict', ('03ef4f', 'a226c8'))
    """

    def __init__(
        self,
        events: Sequence[AlarmEvent],
        *,
        samples: Mapping[str, int],
        drops: Mapping[tuple[str, str], int],
        not_judged: Mapping[str, str],
        coverage: Sequence[Mapping[str, Any]] = (),
        judged: Mapping[str, str] | None = None,
        problems: Sequence[str] = (),
        clock: Clock = "seconds",
        backend: Backend | None = None,
        reported: Callable[[Path], None] | None = None,
    ) -> None:
        self._reported = reported
        self.events = list(events)
        """Every event: raised, updated, cleared."""
        self.samples = dict(sorted(samples.items()))
        """How many samples were taken in, by stream."""
        self.drops: dict[str, dict[str, int]] = {}
        """How many samples were refused, by stream and reason."""
        for (stream, reason), n in sorted(drops.items()):
            self.drops.setdefault(stream, {})[reason] = n
        self.not_judged = dict(sorted(not_judged.items()))
        """Alarm kinds that judged nobody, and why."""
        self._coverage = list(coverage)
        # in words, of detectors that judged some vehicles and others not, or not in every way
        self._judged = dict(judged or {})
        self.problems = list(problems)
        """What was wrong with the files or frames."""
        self._clock: Clock = clock
        self._backend = backend
        self._lives: dict[str, list[AlarmEvent]] = {}
        for event in self.events:
            self._lives.setdefault(event.id, []).append(event)
        self._last = [life[-1] for life in self._lives.values()]

    def __len__(self) -> int:
        return len(self._last)

    @overload
    def __getitem__(self, index: int) -> AlarmEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[AlarmEvent]: ...
    def __getitem__(self, index: int | slice) -> AlarmEvent | list[AlarmEvent]:
        return self._last[index]

    def __iter__(self) -> Iterator[AlarmEvent]:
        return iter(self._last)

    @overload
    def to_frame(self, backend: None = None) -> F: ...
    @overload
    def to_frame(self, backend: Literal["pandas"]) -> pd.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["pyarrow"]) -> pa.Table: ...
    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per alarm, in the library of the input, or the one named (`pandas`, `polars`, `pyarrow`).

        `severity` is the worst that it reached and `peak` the highest score; `subjects` are joined by `~`; `say` is
        the last event as a sentence, `evidence` its evidence as JSON. `t_cleared` and `ended` (how) are empty while an
        alarm is `active`. Times are as in the input.
        """
        return frame_of(self._columns(), self._schema(), backend or self._backend)

    @property
    def coverage(self) -> F:
        """Who was judged: a frame of `id`, `detector`, `watched`, `since_t`, `reason`, `say`, in the input's library.

        A row for each vehicle at the end of the recording and each detector that judges what it sends.
        """
        schema = {"id": TEXT, "detector": TEXT, "watched": FLAG, "since_t": time_type(self._clock)}
        columns = {
            name: [row[name] for row in self._coverage] for name in ("id", "detector", "watched", "reason", "say")
        }
        columns["since_t"] = time_cells((row["since_t"] for row in self._coverage), self._clock)
        frame: F = frame_of(columns, schema | {"reason": TEXT, "say": TEXT}, self._backend)
        return frame

    def report(self, path: str | PathLike[str]) -> None:
        """Write a page that opens offline: the verdict, a map, plots, alarms with their evidence, what was not judged.

        The recording goes through the pipeline once more for it, as it is now.
        """
        if self._reported is None:
            raise ValueError("these alarms do not come from watch(), so there is no recording to report on")
        self._reported(Path(path))

    def to_arrow(self) -> pa.Table:
        """The same as a pyarrow Table. Libraries that read Arrow streams can take the Alarms themselves."""
        return self.to_frame("pyarrow")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # Polars can do it alone; pandas needs pyarrow for it, which has types of its own
        frame: Any = self.to_frame() if importlib.util.find_spec("pyarrow") is None else self.to_arrow()
        return frame.__arrow_c_stream__(requested_schema)

    def _schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = dict.fromkeys(("id", "kind", "subjects", "severity"), TEXT)
        schema |= dict.fromkeys(_TIMES, time_type(self._clock))
        schema |= dict.fromkeys(("score", "threshold", "peak"), NUMBER)
        return schema | {"events": COUNT, "active": FLAG, "ended": TEXT, "say": TEXT, "evidence": TEXT}

    def _columns(self) -> dict[str, list[Any]]:
        lives = list(self._lives.values())
        columns: dict[str, list[Any]] = {
            name: [getattr(last, name) for last in self._last] for name in ("id", "kind", "score", "threshold")
        }
        columns |= {name: time_cells((getattr(last, name) for last in self._last), self._clock) for name in _TIMES}
        return columns | {
            "subjects": ["~".join(last.subjects) for last in self._last],
            "severity": [max((e.severity for e in life), key=SEVERITIES.index) for life in lives],
            "peak": [max(event.score for event in life) for life in lives],
            "events": [len(life) for life in lives],
            "active": [last.state != CLEARED for last in self._last],
            "ended": [last.ended for last in self._last],
            "say": [said(last) for last in self._last],
            "evidence": [msgspec.json.encode(last.evidence).decode() for last in self._last],
        }

    def __repr__(self) -> str:
        kinds = Counter(last.kind for last in self._last)
        inside = counted(self._last).symptoms
        listed = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
        by_kind = f" ({listed}{f'; {inside:,} are symptoms of an incident' if inside else ''})" if kinds else ""
        return f"Alarms: {len(self):,}{by_kind} from {sum(self.samples.values()):,} samples{self._remarks()}"

    def _remarks(self) -> str:
        dropped = ", ".join(f"{n:,} {s} {why}" for s, reasons in self.drops.items() for why, n in reasons.items())
        unjudged = ", ".join(f"{kind} ({why})" for kind, why in self.not_judged.items())
        some = ", ".join(f"{detector} {words}" for detector, words in self._judged.items())
        remarks = (
            f"dropped: {dropped}" if dropped else "",
            f"not judged: {unjudged}" if unjudged else "",
            f"vehicles judged: {some}" if some else "",
        )
        return "".join(f"; {remark}" for remark in (*remarks, *self.problems) if remark)

    def _repr_html_(self) -> str:
        names = ("kind", "subjects", "severity", *_TIMES, "score", "threshold", "peak", "say")
        columns = self._columns()
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(_cell(columns[name][row]))}</td>' for name in names)}</tr>"
            for row in range(min(len(self), SHOWN))
        )
        more = f"<p>… and {len(self) - SHOWN:,} more</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}<p>{escape(repr(self))}</p>"


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
