"""`evaluate textfile`: what an evaluation found is what Prometheus is told, and what it did not find is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from watchkeeper.daemon.cli import main

ALARMS: dict[str, Any] = {
    "alarm_list": [], "flight_hours": 2.0, "losses": 4, "losses_eligible": 3, "alarms": 5,
    "missed_eligible_share": 0.25, "late_eligible_share": None, "nuisance_share": 0.4,
    "warning_median_s": 31.0, "warning_p10_s": 9.0,
}  # fmt: skip
AVERAGES = {"auroc": 0.9, "event_recall_1": 0.8, "alarm_recall": 0.7, "recall_1": 0.6, "recall_5": 0.65}
GROUP = {"macro": AVERAGES, "fpr_1": 0.011, "fpr_5": 0.052}
PROTOCOL: dict[str, Any] = {
    "minimum_detectable": [], "groups": {"quad": GROUP}, "baseline": {"quad": {**GROUP, "fpr_1": 0.2}},
    "false_alarms": [{"profile": "balanced", "alarms": 3, "hours": 0.5}],
}  # fmt: skip
CONTROLLER = {"groups": {"all": {name: {"mean": 0.5} for name in ("precision", "recall", "f1_score")}}}
SUMMARY = {"diagnosis_success_rate": 0.9, "location_accuracy": 0.95, "fault_type_macro_f1": None}
DIAGNOSIS = {"agents": {"ours": SUMMARY}}


def told(folder: Path, **results: Any) -> dict[tuple[str, ...], float]:
    paths = []
    for name, result in results.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(result))
    out = folder / "watchkeeper.prom"
    assert main(["evaluate", "textfile", *map(str, paths), "--out", str(out)]) == 0
    return {
        (
            sample.name.removeprefix("watchkeeper_evaluation_"),
            *(v for _, v in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(out.read_text())
        for sample in family.samples
    }


def test_figures_arrive_in_base_units_and_gaps_stay_gaps(tmp_path: Path) -> None:
    found = told(tmp_path, paris=ALARMS)
    assert found["conflict_flight_seconds", "paris"] == 7200
    assert found["conflict_missed_ratio", "paris"] == 0.25
    assert found["conflict_nuisance_ratio", "paris"] == 0.4
    assert found["conflict_warning_median_seconds", "paris"] == 31
    assert ("conflict_late_ratio", "paris") not in found
    assert found["timestamp_seconds", "paris"] == pytest.approx((tmp_path / "paris.json").stat().st_mtime)


def test_all_kinds_of_results_in_one_file(tmp_path: Path) -> None:
    found = told(tmp_path, a=ALARMS, p=PROTOCOL, c=CONTROLLER, d=DIAGNOSIS)
    assert found["gps_imu_auroc", "watchkeeper", "quad", "p"] == 0.9
    assert found["gps_imu_false_positive_ratio", "watchkeeper", "quad", "p", "1"] == 0.011
    assert found["gps_imu_false_positive_ratio", "baseline", "quad", "p", "1"] == 0.2
    assert found["gps_imu_clean_seconds", "balanced", "p"] == 1800
    assert found["controller_recall", "all", "c"] == 0.5
    assert found["diagnosis_success_ratio", "ours", "d"] == 0.9
    assert ("diagnosis_macro_f1", "ours", "d") not in found


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps({**ALARMS, "flight_hours": 10**400}), "no result of evaluate"),
        (json.dumps({**ALARMS, "losses": "many"}), "no result of evaluate"),
        ("{}", "no result of evaluate"), ("[]", "no result of evaluate"), ('{"groups": 3}', "no result of evaluate"),
        ("no json", "not a JSON document"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_result_is_named_and_nothing_is_written(
    content: str, problem: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.json").write_text(json.dumps(ALARMS))
    (tmp_path / "bad.json").write_text(content)
    out = tmp_path / "x.prom"
    words = [str(tmp_path / "good.json"), str(tmp_path / "bad.json"), "--out", str(out)]
    assert main(["evaluate", "textfile", *words]) == 1
    assert f"bad.json: {problem}" in capfd.readouterr().err
    assert not out.exists()


def test_two_results_of_one_name_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").mkdir()
    for folder in (tmp_path, tmp_path / "x"):
        (folder / "metrics.json").write_text(json.dumps(ALARMS))
    words = [str(tmp_path / "metrics.json"), str(tmp_path / "x" / "metrics.json"), "--out", str(tmp_path / "y.prom")]
    assert main(["evaluate", "textfile", *words]) == 1
    assert "two results are called metrics" in capfd.readouterr().err
