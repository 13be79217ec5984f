"""`watchkeeper.evaluate.alarms`: were the conflict alarms true, and did they come in time?

The samples go through the one Pipeline as in a replay. Afterwards their own future is the truth: truth.py finds the
pairs that really lost separation, verdicts.py holds the alarms against them, and rebounce.py works out what other rules
would have raised; breakdown.py and calibration.py look closer, and shifted.py makes traffic that nobody keeps apart.
command.py is the same from a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.evaluation.alarms.breakdown import Airspace, LookAhead, by_airspace, by_look_ahead
from watchkeeper.evaluation.alarms.calibration import Calibration, calibration
from watchkeeper.evaluation.alarms.curve import Curve, trade_off
from watchkeeper.evaluation.alarms.flights import Reports
from watchkeeper.evaluation.alarms.ghosts import ghosts
from watchkeeper.evaluation.alarms.probe import Tracks
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog
from watchkeeper.evaluation.alarms.shifted import Shift, shifted
from watchkeeper.evaluation.alarms.truth import losses, minima
from watchkeeper.evaluation.alarms.verdicts import Alarm, AlarmVerdict, Figures, LossVerdict, Truth, figures, judge
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.frames.sources import Data, sources_of
from watchkeeper.streams.frames.write import FLAG, NUMBER, TEXT, Backend, rows_frame
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import read_logs

KIND = "conflict"
ALARM = {
    "a": TEXT, "b": TEXT, "t_raised": NUMBER, "t_cleared": NUMBER, "severity": TEXT, "first": TEXT, "verdict": TEXT,
    "undecided": FLAG,
}  # fmt: skip
LOSS = {
    "a": TEXT, "b": TEXT, "t_start": NUMBER, "t_end": NUMBER, "min_sep_nm": NUMBER, "min_vsep_ft": NUMBER,
    "eligible": FLAG, "marginal": FLAG, "verdict": TEXT, "warning_s": NUMBER, "in_view_s": NUMBER,
}  # fmt: skip


class Evaluation(msgspec.Struct, frozen=True):
    """All that is known about the alarms of one run."""

    config: Config
    min_alt_ft: float
    aircraft: int
    flight_hours: float
    t_first: float
    interval_s: float
    figures: Figures
    severity: dict[str, int]
    """How many alarms reached which severity at the worst."""
    first_severity: dict[str, int]
    """How many alarms were raised with which severity."""
    ghosts: list[tuple[str, str]]
    """Pairs of ids that are one aircraft: no losses in the truth."""
    ghosts_alarmed: int
    """How many of these pairs have an alarm all the same."""
    alarms: list[AlarmVerdict]
    losses: list[LossVerdict]
    look_ahead: list[LookAhead]
    airspace: list[Airspace]
    calibration: Calibration | None
    curve: Curve | None

    def to_frame(self, backend: Backend | None = None, *, table: Literal["alarms", "losses"] = "alarms") -> Any:
        """One row per conflict alarm with its verdict, or per loss of separation (`table="losses"`)."""
        if table == "losses":
            return rows_frame([_flat(row) for row in self.to_dict()["loss_list"]], LOSS, backend)
        return rows_frame([_flat(row) for row in self.to_dict()["alarm_list"]], ALARM, backend)

    def to_dict(self) -> dict[str, Any]:
        """All figures, losses and alarms, ready for JSON: what `--out` writes."""
        c = self.config.detectors.conflict
        return {
            "rule": {
                "horizon_s": c.horizon_s,
                "separation_nm": c.separation_nm,
                "vertical_ft": c.vertical_ft,
                "zones": msgspec.to_builtins(c.zones),
                "debounce": msgspec.to_builtins(c.debounce),
                "min_alt_ft": self.min_alt_ft,
            },
            "aircraft": self.aircraft,
            "flight_hours": self.flight_hours,
            "interval_s": self.interval_s,
            **msgspec.to_builtins(self.figures),
            "severity": self.severity,
            "first_severity": self.first_severity,
            "ghosts": self.ghosts,
            "ghosts_alarmed": self.ghosts_alarmed,
            "look_ahead": msgspec.to_builtins(self.look_ahead),
            "airspace": msgspec.to_builtins(self.airspace),
            "calibration": msgspec.to_builtins(self.calibration),
            "curve": msgspec.to_builtins(self.curve),
            "loss_list": [
                msgspec.to_builtins(v.loss) | {"verdict": v.verdict, "warning_s": v.warning_s, "in_view_s": v.in_view_s}
                for v in self.losses
            ],
            "alarm_list": [
                msgspec.to_builtins(v.alarm) | {"verdict": v.verdict, "undecided": v.undecided} for v in self.alarms
            ],
        }


def alarms(
    data: Data,
    *,
    config: Config | None = None,
    min_alt_ft: float = 0.0,
    shift: Shift | None = None,
    curve: bool = False,
    calibrated: bool = False,
    quiet: bool = False,
) -> Evaluation:
    """Hold the conflict alarms of a recording against what happened next.

    `data` is what `watch` takes: a frame, a path, a simulation, several logs. Reports from below `min_alt_ft` are left
    out; `shift` flies the flights at other times; `curve` adds the trade-off over count and threshold, `calibrated` the
    reliability of the probabilities; `quiet` hides the progress bar.

    >>> import watchkeeper as wk
    >>> found = wk.evaluate.alarms(wk.simulate("head-on", seed=1, seconds=300))
    >>> found.figures.losses, found.figures.alarms
    (1, 1)
    >>> found.to_frame("polars")["verdict"].to_list()
    ['true']
    """
    config = config or load(None)
    if not config.detectors.conflict.enabled:
        raise EvaluationError("detectors.conflict.enabled is false: there are no alarms to evaluate")
    if timed := [zone.name for zone in config.detectors.conflict.zones if zone.volume.tau_s > 0.0]:
        raise EvaluationError(f"the truth knows distances only, no tau; without the zone {timed[0]!r} it can be told")
    sources = sources_of(data)
    batches = shown(read_logs(sources), sources, "evaluating", hidden=quiet)
    if shift is not None:
        batches = shifted(batches, shift)
    result = evaluate(batches, config, min_alt_ft=min_alt_ft, curve=curve, calibrated=calibrated)
    if not result.aircraft:
        above = f" at or above {min_alt_ft:g} ft" if min_alt_ft else ""
        raise EvaluationError(f"no ADS-B samples{above} in {', '.join(str(source.info().path) for source in sources)}")
    return result


def evaluate(
    batches: Iterable[Batch],
    config: Config,
    *,
    min_alt_ft: float = 0.0,
    curve: bool = False,
    calibrated: bool = False,
) -> Evaluation:
    """Run the pipeline over all batches and judge its conflict alarms; without the reports from below min_alt_ft."""
    c = config.detectors.conflict
    reports, log = Reports(min_alt_ft), EvidenceLog(KIND, config.time.tick_s, c.probability)
    noted = curve or calibrated
    pipeline = Pipeline(
        config,
        every_tick=noted,
        on_evidence=(lambda window, found: log.tick(window, found, pipeline.fleet.ids)) if noted else None,
    )
    events = list(events_of(pipeline, reports.passing(batches)))
    sky = reports.sky(min_gs_kt=c.min_gs_kt)
    one_aircraft = ghosts(sky)
    real = [v for v in losses(sky, c.separation_nm, c.vertical_ft, c.zones) if v.pair not in one_aircraft]
    truth = Truth(sky, real, c.horizon_s, Tracks(sky, minima(sky, c.separation_nm, c.vertical_ft, c.zones)))
    raised = alarms_of(events)
    alarm_verdicts, loss_verdicts = judge(raised, truth)
    worst, first = Counter(alarm.severity for alarm in raised), Counter(alarm.first for alarm in raised)
    result = figures(alarm_verdicts, loss_verdicts, sky)
    return Evaluation(
        config=config,
        min_alt_ft=min_alt_ft,
        aircraft=len(sky.ids),
        flight_hours=sky.hours,
        t_first=sky.t_first,
        interval_s=sky.interval_s,
        figures=result,
        severity={severity: worst[severity] for severity in SEVERITIES},
        first_severity={severity: first[severity] for severity in SEVERITIES},
        ghosts=sorted(one_aircraft),
        ghosts_alarmed=len(one_aircraft & {alarm.pair for alarm in raised}),
        alarms=alarm_verdicts,
        losses=loss_verdicts,
        look_ahead=by_look_ahead(alarm_verdicts, loss_verdicts, truth),
        airspace=by_airspace(alarm_verdicts, loss_verdicts, truth),
        calibration=calibration(log, truth) if calibrated else None,
        curve=trade_off(log, c.debounce, truth, result) if curve else None,
    )


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its pair as two columns."""
    a, b = row["pair"]
    return row | {"a": a, "b": b}


def alarms_of(events: Iterable[AlarmEvent]) -> list[Alarm]:
    """The conflict alarms in a stream of events, each from raised to cleared, in the order they were raised."""
    found: dict[str, Alarm] = {}
    for event in events:
        if event.kind != KIND:
            continue
        if event.state == RAISED:
            a, b = event.subjects
            predicted_s = event.evidence.get("t_los_s")
            found[event.id] = Alarm((a, b), event.t_raised, None, event.severity, event.severity, predicted_s)
        else:
            known = found[event.id]
            worst = max(known.severity, event.severity, key=SEVERITIES.index)
            cleared = event.t_cleared if event.state == CLEARED else None
            found[event.id] = msgspec.structs.replace(known, t_cleared=cleared, severity=worst)
    return sorted(found.values(), key=lambda alarm: (alarm.t_raised, alarm.pair))
