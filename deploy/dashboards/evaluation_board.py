"""Evaluation: the headline figures that `watchkeeper evaluate textfile` wrote, by result.

They change when somebody evaluates, not by the second: the newest value of each, in bars and tables.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import Query, board, graph, number, section

E = "watchkeeper_evaluation_"


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        "watchkeeper-evaluation", "Watchkeeper / Evaluation", "How good alarms, detectors and controllers are.",
        instances="watchkeeper_evaluation_timestamp_seconds",
    )  # fmt: skip
    section(
        made, "",
        number("Results", "Evaluations shown", Query(f"count({E}timestamp_seconds{{@}})")),
        number("Newest", "Age of the newest result", Query(f"min(time() - {E}timestamp_seconds{{@}})"), unit="s"),
        number("Missed", "Worst share of losses without an alarm", Query(f"max({E}conflict_missed_ratio{{@}})"),
               unit="percentunit"),
        number("Nuisance", "Worst share of alarms without a loss", Query(f"max({E}conflict_nuisance_ratio{{@}})"),
               unit="percentunit"),
        number("GPS/IMU AUROC", "Worst over groups and results",
               Query(f'min({E}gps_imu_auroc{{@, detector="watchkeeper"}})'), decimals=3),
        number("Diagnosis", "Worst share of faults named and located", Query(f"min({E}diagnosis_success_ratio{{@}})"),
               unit="percentunit"),
    )  # fmt: skip
    section(
        made, "Conflict alarms",
        graph("Missed, late, nuisance", "Shares of eligible losses and of alarms",
              Query(f"{E}conflict_missed_ratio{{@}}", "missed {{result}}"),
              Query(f"{E}conflict_late_ratio{{@}}", "late {{result}}"),
              Query(f"{E}conflict_nuisance_ratio{{@}}", "nuisance {{result}}"), unit="percentunit", width=8),
        graph("Warning time", "From alarm to loss, over foreseen losses",
              Query(f"{E}conflict_warning_median_seconds{{@}}", "median {{result}}"),
              Query(f"{E}conflict_warning_p10_seconds{{@}}", "10th percentile {{result}}"), unit="s", width=8),
        graph("Alarms per flight hour", "Over the flight time of the log",
              Query(f"{E}conflict_alarms{{@}} / ({E}conflict_flight_seconds{{@}} / 3600)", "{{result}}"), width=8),
    )  # fmt: skip
    section(
        made, "GPS/IMU under attack",
        graph("Area under the ROC curve", "Mean over attacks, ours and the baseline",
              Query(f"{E}gps_imu_auroc{{@}}", "{{detector}} {{group}} {{result}}"), width=6),
        graph("Recall", "At false-positive rates of 1 % and 5 %",
              Query(f"{E}gps_imu_recall_ratio{{@}}", "{{detector}} {{group}} at {{target_percent}} %"),
              unit="percentunit", width=6),
        graph("False positives, realised", "Compared with their target",
              Query(f"{E}gps_imu_false_positive_ratio{{@}}", "{{detector}} {{group}} at {{target_percent}} %"),
              unit="percentunit", width=6),
        graph("False alarms per hour", "On clean flights, by profile",
              Query(f"{E}gps_imu_false_alarms{{@}} / ({E}gps_imu_clean_seconds{{@}} / 3600)", "{{profile}} {{result}}"),
              width=6),
    )  # fmt: skip
    section(
        made, "Controllers and diagnosis",
        graph("A controller's alerts", "Precision, recall and F1, mean over episodes",
              Query(f"{E}controller_precision{{@}}", "precision {{group}} {{result}}"),
              Query(f"{E}controller_recall{{@}}", "recall {{group}} {{result}}"),
              Query(f"{E}controller_f1_score{{@}}", "F1 {{group}} {{result}}"), unit="percentunit"),
        graph("Diagnosis", "Faults named and located, located, F1 of the type",
              Query(f"{E}diagnosis_success_ratio{{@}}", "success {{agent}} {{result}}"),
              Query(f"{E}diagnosis_location_ratio{{@}}", "location {{agent}} {{result}}"),
              Query(f"{E}diagnosis_macro_f1{{@}}", "F1 {{agent}} {{result}}"), unit="percentunit"),
    )  # fmt: skip
    return made
