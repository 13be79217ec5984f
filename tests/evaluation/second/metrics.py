"""All metrics of one episode under their documented names, and nine more.

`num_lead_times`, `alerts_per_min_from_steps` and `alert_onsets_per_min` are decisions on top of the document. Six names
of the public code are not defined in the document. They are what that code computes:

tn_pct                  `tn` as a share of all steps
unwanted_interventions  alert windows that match no conflict
excess_alert_time_s     their length together, margins included
avg_alert_dcpa_nm       mean, over the steps in alert that have a cause, of the DCPA of its intruder; 0 without any. The
                        cause of a step is the first of its commands that counts as an alert
avg_alert_tcpa_s        mean of the TCPA of the same intruders; 0 without any
escape_improve_hits     causes after which, one step later, the DCPA to the intruder is wider by more than 0.3 NM
"""

from __future__ import annotations

import math
from typing import Any

from second.actions import intervention_steps, oscillation_rate
from second.alerts import Alert, alert_steps, causes, counted_alerts, escapes
from second.log import Log
from second.paths import path_metrics
from second.reward import reward_total
from second.settings import Settings
from second.truth import conflict_steps, least_separation_nm, loss_duration, loss_steps
from second.windows import expanded, failed_resolution, lost_separation, matched, runs


def metrics(trajectory: dict[str, Any], **settings: Any) -> dict[str, float]:
    """Every name and its value; NaN where it is not defined. Keywords are the fields of `Settings`."""
    log = Log(trajectory, Settings(**settings))
    g = conflict_steps(log)
    counted = counted_alerts(log)
    a = alert_steps(log, counted)
    return {
        **_detection(log, g, a),
        **_safety(log, g),
        **_alert_quality(log, a),
        **path_metrics(log),
        **_behaviour(log, g, a),
        **_alert_geometry(log, a, counted),
        "reward_total": reward_total(log),
    }


def _detection(log: Log, g: list[bool], a: list[bool]) -> dict[str, float]:
    """Everything that comes from windows: counts, rates, lead times, resolution."""
    settings = log.settings
    merge = settings.merge_overlapping
    truth = expanded(g, log.in_steps(settings.truth_pad_s), merge_overlapping=merge)
    alerts = expanded(a, log.in_steps(settings.alert_pad_s), merge_overlapping=merge)
    pairs = matched(truth, alerts, settings.iou_threshold)
    tp = len(pairs)
    fp = len(alerts) - tp
    fn = len(truth) - tp
    tn = sum(not conflict and not alert for conflict, alert in zip(g, a, strict=True))
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    excess_steps = sum(end - start for j, (start, end) in enumerate(alerts) if j not in {used for _, used in pairs})
    lead_times_s = [(truth[i][0] - alerts[j][0]) * log.step_s for i, j in pairs]
    unresolved = sum(failed_resolution(log, truth[i]) for i, _ in pairs)
    lost = sum(lost_separation(log, truth[i]) for i, _ in pairs)
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "tn_pct": tn / log.steps,
        "precision": precision,
        "recall": recall,
        "f1_score": 2.0 * precision * recall / max(1e-9, precision + recall),
        "ghost_conflict": fp / max(1, fp + tn),
        "missed_conflict": fn / max(1, fn + tp),
        "unwanted_interventions": fp,
        "excess_alert_time_s": excess_steps * log.step_s,
        "avg_lead_time_s": sum(lead_times_s) / len(lead_times_s) if lead_times_s else 0.0,
        "num_lead_times": len(lead_times_s),
        "resolution_fail_rate": unresolved / tp if tp else math.nan,
        "los_failure_rate": lost / tp if tp else math.nan,
    }


def _safety(log: Log, g: list[bool]) -> dict[str, float]:
    losses = runs(loss_steps(log))
    least_nm = least_separation_nm(log, 0, log.steps, level=False)
    return {
        "min_separation_nm": least_nm if math.isfinite(least_nm) else math.nan,
        "num_los_events": len(losses),
        "total_los_duration": loss_duration(losses, log.settings.los_duration),
        "num_conflict_steps": sum(g),
    }


def _alert_quality(log: Log, a: list[bool]) -> dict[str, float]:
    minutes = log.flight_time_s() / 60.0
    alert_time_s = sum(a) * log.step_s
    return {
        "alert_duty_cycle": sum(a) / len(a),
        "alerts_per_min": alert_time_s / max(1.0, minutes),
        "alerts_per_min_from_steps": sum(a) * 60.0 / log.step_s,
        "alert_onsets_per_min": len(runs(a)) / minutes if minutes > 0.0 else math.nan,
        "total_alert_time_s": alert_time_s,
    }


def _behaviour(log: Log, g: list[bool], a: list[bool]) -> dict[str, float]:
    """Commands beside conflicts and alerts, step by step."""
    interventions = intervention_steps(log)
    acted = [t for t in range(log.steps) if interventions[t]]
    return {
        "num_interventions": len(acted),
        "num_interventions_matched": sum(g[t] and a[t] for t in acted),
        "num_interventions_false": sum(not (g[t] and a[t]) for t in acted),
        "oscillation_rate": oscillation_rate(log),
    }


def _alert_geometry(log: Log, a: list[bool], counted: list[Alert]) -> dict[str, float]:
    by_step = causes(log, counted)
    shown = [alert for t, alert in by_step.items() if a[t]]
    n = max(1, len(shown))
    return {
        "avg_alert_dcpa_nm": math.fsum(alert.dcpa_nm for alert in shown) / n,
        "avg_alert_tcpa_s": math.fsum(alert.tcpa_s for alert in shown) / n,
        "escape_improve_hits": sum(escapes(log, alert) for alert in by_step.values()),
    }
