"""`watchkeeper evaluate textfile`: headline figures of finished evaluations, for Prometheus and the Grafana dashboard.

Reads the JSON that `evaluate alarms`, `protocol`, `conflicts` and `diagnosis` write with --out, and writes one file in
the Prometheus text format, all or nothing, for node_exporter's textfile collector. The label `result` is the JSON
file's name without its ending. A figure that an evaluation could not give (null) has no series: a gap is honest, a 0
is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.logs.base import LogError

HELP = "Write the headline figures of finished evaluations as a Prometheus textfile."
EXAMPLES = """\
examples:
  watchkeeper evaluate alarms flight.wklog --out results/paris.json
  watchkeeper evaluate protocol --out results/protocol.json
  watchkeeper evaluate textfile results/*.json --out /var/lib/prometheus/node-exporter/watchkeeper.prom

exit codes: 0 written, 1 a file is no evaluation's result, 2 usage
"""
# name, help, labels besides `result`, value
Row = tuple[str, str, dict[str, str], float | None]
PREFIX = "watchkeeper_evaluation_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT.json", help="what --out of an evaluation wrote"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.prom", help="replaced all at once")


def main(args: argparse.Namespace) -> int:
    """Write the file; the exit code."""
    names = [path.stem for path in args.results]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        print(f"watchkeeper: two results are called {', '.join(twice)}: the names tell them apart", file=sys.stderr)
        return 1
    registry = CollectorRegistry()
    families: dict[str, GaugeMetricFamily] = {}
    for path in args.results:
        try:
            rows = rows_of(read_json(path))
        except LogError as error:
            print(f"watchkeeper: {error}", file=sys.stderr)
            return 1
        except (LookupError, TypeError, ValueError, AttributeError):
            print(
                f"watchkeeper: {path}: no result of evaluate alarms, protocol, conflicts or diagnosis", file=sys.stderr
            )
            return 1
        rows.append(("timestamp_seconds", "When the result was written", {}, path.stat().st_mtime))
        for name, text, labels, value in rows:
            if value is None:
                continue
            family = families.setdefault(name, GaugeMetricFamily(PREFIX + name, text, labels=["result", *labels]))
            family.add_metric([path.stem, *labels.values()], value)
    registry.register(_Given(list(families.values())))
    write_to_textfile(str(args.out), registry)
    print(f"{args.out}: {sum(len(f.samples) for f in families.values())} figures of {len(args.results)} results")
    return 0


class _Given(Collector):
    """Families that are ready."""

    def __init__(self, families: list[GaugeMetricFamily]) -> None:
        self._families = families

    def collect(self) -> list[GaugeMetricFamily]:
        """All of them."""
        return self._families


def rows_of(result: dict[str, Any]) -> list[Row]:
    """The headline figures of one result; LookupError, TypeError or ValueError if it is none that we know."""
    if "alarm_list" in result:
        rows = _alarms(result)
    elif "minimum_detectable" in result:
        rows = _protocol(result)
    elif "agents" in result or "streamed" in result:
        rows = _diagnosis(result)
    else:
        rows = _conflicts(result)
    try:
        return [(name, text, labels, None if value is None else float(value)) for name, text, labels, value in rows]
    except OverflowError as error:
        raise ValueError("a figure that no number is large enough for") from error


def _alarms(result: dict[str, Any]) -> Iterator[Row]:
    hours = result["flight_hours"]
    yield "conflict_flight_seconds", "Flight time in the log", {}, None if hours is None else hours * 3600.0
    for key, text in {
        "losses": "Losses of separation in the log",
        "losses_eligible": "Losses that a detector can be held to",
        "alarms": "Conflict alarms",
    }.items():
        yield f"conflict_{key}", text, {}, result[key]
    for key, name, text in (
        ("missed_eligible_share", "missed_ratio", "Share of the eligible losses without an alarm"),
        ("late_eligible_share", "late_ratio", "Share of the eligible losses alarmed only after they began"),
        ("nuisance_share", "nuisance_ratio", "Share of the alarms without a loss"),
        ("warning_median_s", "warning_median_seconds", "Median time from alarm to loss"),
        ("warning_p10_s", "warning_p10_seconds", "Nine in ten foreseen losses had more warning"),
    ):
        yield f"conflict_{name}", text, {}, result[key]


def _protocol(result: dict[str, Any]) -> Iterator[Row]:
    for detector, groups in (("watchkeeper", result["groups"]), ("baseline", result["baseline"])):
        for group, found in groups.items():
            labels = {"detector": detector, "group": group}
            macro = found["macro"]
            yield "gps_imu_auroc", "Area under the ROC curve, mean over attacks", labels, macro["auroc"]
            yield "gps_imu_event_recall_ratio", "Share of attacks noticed at all", labels, macro["event_recall_1"]
            yield "gps_imu_alarm_recall_ratio", "Share of attacks with an alarm", labels, macro["alarm_recall"]
            for percent in ("1", "5"):
                at = {**labels, "target_percent": percent}
                yield "gps_imu_recall_ratio", "Recall at this false-positive rate", at, macro[f"recall_{percent}"]
                text = "False-positive rate realised at this target"
                yield "gps_imu_false_positive_ratio", text, at, found[f"fpr_{percent}"]
    for row in result["false_alarms"]:
        labels = {"profile": row["profile"]}
        yield "gps_imu_false_alarms", "Alarms on clean flights", labels, row["alarms"]
        yield "gps_imu_clean_seconds", "Clean flight time", labels, row["hours"] * 3600.0


def _conflicts(result: dict[str, Any]) -> Iterator[Row]:
    for group, figures in result["groups"].items():
        for name, text in {
            "precision": "Share of a controller's alerts that belong to a conflict, mean over episodes",
            "recall": "Share of the conflicts that a controller acted upon, mean over episodes",
            "f1_score": "Harmonic mean of precision and recall, mean over episodes",
        }.items():
            yield f"controller_{name}", text, {"group": group}, figures[name]["mean"]


def _diagnosis(result: dict[str, Any]) -> Iterator[Row]:
    agents = result["agents"] if "agents" in result else {"pipeline": result["summary"]}
    for agent, summary in agents.items():
        labels = {"agent": agent}
        success = summary["diagnosis_success_rate"]
        yield "diagnosis_success_ratio", "Share of faults named and located rightly", labels, success
        yield "diagnosis_location_ratio", "Share of faults located rightly", labels, summary["location_accuracy"]
        yield "diagnosis_macro_f1", "F1 of the fault type, mean over types", labels, summary["fault_type_macro_f1"]
