"""What the detectors' figures are called in Prometheus: base units spelt out, `_total` on counters, one line of help.

Detectors speak of `tcpa_min_s` and `refused`; Prometheus has its own customs. A figure that is not in FIGURES gets a
name by rule, so that a new detector is seen at once; a test asks for its line here and in docs/metrics.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.detectors.incidents.faults import FAULT_TYPES

UNITS: dict[str, str] = {"_s": "_seconds", "_m": "_meters", "_nm": "_nautical_miles"}
UNTOLD = "A detector's figure at its last tick"


@dataclass(frozen=True, slots=True)
class Figure:
    """The metric that a detector's figure becomes. Figures that share a name are told apart by their `label`."""

    name: str
    help: str
    counter: bool = False
    label: tuple[str, str] | None = None


def _verdict(word: str) -> Figure:
    return Figure(
        "intent_verdicts", "A controller's alerts, conflicts and quiet steps so far, by verdict",
        label=("verdict", word),
    )  # fmt: skip


FIGURES: dict[str, Figure] = {
    "conflict_tcpa_min_s": Figure(
        "conflict_min_tcpa_seconds", "Smallest time to closest approach among pairs in conflict; NaN without one"
    ),
    "conflict_dcpa_min_m": Figure(
        "conflict_min_dcpa_meters", "Smallest distance at closest approach among pairs in conflict; NaN without one"
    ),
    "conflict_probability_max": Figure(
        "conflict_max_probability", "Largest probability of a loss of separation among all pairs; NaN without one"
    ),
    "conflict_pairs": Figure("conflict_pairs", "Pairs in conflict now, before debouncing"),
    "conflict_pairs_los": Figure("conflict_pairs_los", "Pairs whose separation is lost now, before debouncing"),
    "conflict_pairs_overflow": Figure("conflict_pairs_overflow", "Pairs beyond max_pairs now, not followed"),
    "conflict_aircraft": Figure("conflict_aircraft", "Aircraft that are heard well enough to be judged"),
    "gnss_interference_areas": Figure("gnss_interference_areas", "Areas of interference now, before debouncing"),
    "gnss_interference_areas_overflow": Figure(
        "gnss_interference_areas_overflow", "Areas beyond those that are followed"
    ),
    "gnss_interference_aircraft": Figure(
        "gnss_interference_aircraft", "Aircraft heard lately with an accuracy to lose"
    ),
    "gnss_interference_aircraft_collapsed": Figure(
        "gnss_interference_aircraft_collapsed", "Aircraft that have lost their accuracy"
    ),
    "gps_imu_vehicles": Figure("gps_imu_vehicles", "Vehicles whose GPS and IMU disagree now, before debouncing"),
    "gps_imu_fixes": Figure("gps_imu_fixes", "GPS fixes judged in the last tick"),
    "gps_imu_model_epochs": Figure(
        "gps_imu_model_epochs_total", "Epochs that the fleet's model has learned from", counter=True
    ),
    "intent_vehicles": Figure("intent_vehicles", "Vehicles under control at the last step"),
    "intent_ghosts": Figure("intent_ghosts", "Vehicles commanded for no conflict, before debouncing"),
    "intent_missed": Figure("intent_missed", "Vehicles in a conflict that nobody acts upon, before debouncing"),
    "intent_steps": Figure("intent_steps_total", "Steps of control judged", counter=True),
    "intent_num_conflict_steps": Figure(
        "intent_conflict_steps_total", "Steps of control with a conflict", counter=True
    ),
    "intent_tp": _verdict("tp"),
    "intent_fp": _verdict("fp"),
    "intent_fn": _verdict("fn"),
    "intent_tn": _verdict("tn"),
    "intent_precision": Figure("intent_precision", "Share of the alerts that belong to a conflict; 0 without alerts"),
    "intent_recall": Figure("intent_recall", "Share of the conflicts that were acted upon; 0 without conflicts"),
    "intent_alert_duty_cycle": Figure(
        "intent_alert_duty_cycle", "Share of the steps with an alert; NaN before the first step"
    ),
    "intent_avg_lead_time_s": Figure(
        "intent_avg_lead_time_seconds", "Mean time from alert to conflict, negative if late; NaN without a match"
    ),
    "intent_cuts_forced": Figure(
        "intent_cuts_forced_total", "Times that the tally was cut although something was open", counter=True
    ),
    "kinematics_reports": Figure("kinematics_reports", "Reports of the last tick that contradict their track"),
    "kinematics_altitude_spikes": Figure(
        "kinematics_altitude_spikes", "Reports of the last tick whose altitude contradicts the track; no alarms"
    ),
    "link_vehicles": Figure("link_vehicles", "Vehicles with late or thin telemetry now, before debouncing"),
    "link_latency_excess_max_s": Figure(
        "link_max_latency_excess_seconds", "Largest latency over a vehicle's usual one"
    ),
    "link_rate_ratio_min": Figure("link_min_rate_ratio", "Smallest rate of a stream over its usual one"),
    "topology_declared": Figure("topology_declared", "Vehicles that the configuration calls by name"),
    "topology_never_heard": Figure("topology_never_heard", "Declared vehicles never heard since the start"),
    "topology_elsewhere": Figure("topology_elsewhere", "Vehicles heard through another gateway than the declared one"),
    "topology_undeclared": Figure(
        "topology_undeclared", "Vehicles heard that no declaration applies to; 0 without any declaration"
    ),
    "silence_vehicles": Figure("silence_vehicles", "Vehicles with a silent stream now"),
    "incident_open": Figure("incidents_open", "Incidents that are open"),
    "incident_alarms": Figure("incident_alarms", "Active alarms that are part of an incident"),
    "incident_refused": Figure(
        "incidents_refused_total", "Alarms that opened no incident because the table was full", counter=True
    ),
    **{
        f"incident_{fault_type}": Figure(
            "incidents_diagnosed", "Open incidents by their diagnosis", label=("type", fault_type)
        )
        for fault_type in FAULT_TYPES
    },
}


def figure(key: str) -> Figure:
    """The metric for a detector's figure `<detector>_<figure>`."""
    if key in FIGURES:
        return FIGURES[key]
    stem, mark, suffix = key.rpartition("_")
    return Figure(stem + UNITS.get(mark + suffix, mark + suffix), UNTOLD)
