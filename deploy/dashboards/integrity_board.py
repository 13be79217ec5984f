"""Sensor integrity: which sensors, tracks and links contradict themselves, and by how much?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import NONE_SOME, Query, board, graph, number, section

from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.incidents.declaration import INCIDENT

# Everything that is not about aircraft in danger: what other packages bring is shown as well.
SAFETY = "|".join([*(name for name, kind in detector_kinds().items() if kind.safety), INCIDENT])
RAISED = f'watchkeeper_alarm_events_total{{@, kind!~"{SAFETY}", state="raised"}}'


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        "watchkeeper-integrity", "Watchkeeper / Sensor integrity", "Sensors, tracks and links that lie or stop."
    )
    for title, metric, about in (
        ("GPS against IMU", "gps_imu_vehicles", "Vehicles whose GPS and IMU disagree now"),
        ("Tracks", "kinematics_reports", "Reports of the last tick that contradict their track"),
        ("Interference", "gnss_interference_areas", "Areas where aircraft lose their accuracy together"),
        ("Silent", "silence_vehicles", "Vehicles with a silent stream"),
        ("Bad links", "link_vehicles", "Vehicles with late or thin telemetry"),
    ):
        made.with_panel(number(title, about, Query(f"sum(watchkeeper_{metric}{{@}})"), steps=NONE_SOME, width=4))
    made.with_panel(
        number("Epochs learned", "By the fleet's model of healthy residuals",
               Query("sum(watchkeeper_gps_imu_model_epochs_total{@})"))
    )  # fmt: skip
    section(
        made, "",
        graph("Active alarms", "After debouncing",
              Query(f'sum by (kind) (watchkeeper_alarms_active{{@, kind!~"{SAFETY}"}})', "{{kind}}"), stacked=True),
        graph("Alarms raised", "In the last five minutes",
              Query(f"sum by (kind) (increase({RAISED}[5m]))", "{{kind}}")),
    )  # fmt: skip
    section(
        made, "GPS against IMU",
        graph("Scores", "Percentiles over the fixes of the last tick, and the threshold: sigma",
              Query('max by (percentile) (watchkeeper_score{@, kind="gps_imu"})', "p{{percentile}}"),
              Query('max(watchkeeper_score_threshold{@, kind="gps_imu"})', "threshold")),
        graph("Vehicles and fixes", "Over the threshold before debouncing; fixes judged in the last tick",
              Query("sum(watchkeeper_gps_imu_vehicles{@})", "over the threshold"),
              Query("sum(watchkeeper_gps_imu_fixes{@})", "fixes judged")),
    )  # fmt: skip
    section(
        made, "Tracks, areas and links",
        graph("Contradicting reports", "Of the last tick",
              Query("sum(watchkeeper_kinematics_reports{@})", "track"),
              Query("sum(watchkeeper_kinematics_altitude_spikes{@})", "altitude spikes"), width=8),
        graph("Accuracy lost", "Aircraft with an accuracy to lose, and those that lost it",
              Query("sum(watchkeeper_gnss_interference_aircraft{@})", "with accuracy"),
              Query("sum(watchkeeper_gnss_interference_aircraft_collapsed{@})", "lost it"), width=8),
        graph("Worst link: latency", "Largest latency over a vehicle's usual one",
              Query("max(watchkeeper_link_max_latency_excess_seconds{@})", "excess"), unit="s", width=4),
        graph("Worst link: rate", "Smallest rate of a stream over its usual one",
              Query("min(watchkeeper_link_min_rate_ratio{@})", "ratio"), unit="percentunit", width=4),
    )  # fmt: skip
    return made
