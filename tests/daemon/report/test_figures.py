"""The figures on an alarm's card: those that tell something, in words, with as many digits as a person needs."""

from __future__ import annotations

import re

from watchkeeper.daemon.report.figures import figures

EVIDENCE = {
    "causes": ["step"], "step_sigma": 160.7648, "jump_sigma": 2.1, "delay_sigma": 0.0, "turn_sigma": None,
    "position_off_m": 6.8123, "spoofing_p": 0.8437,
}  # fmt: skip


def test_a_distance_from_normal_is_told_beyond_the_threshold_only() -> None:
    told = [(f.words, f.short, f.unit) for f in figures("gps_imu", EVIDENCE, 2.576) if f.tells]
    assert told[0] == ("step", "161", "sigma")
    assert ("position off", "6.81", "m") in told
    assert not {"jump", "delay", "turn"} & {words for words, _, _ in told}


def test_the_alarm_files_own_figures_stay_exact() -> None:
    exact = {f.name: f.value for f in figures("gps_imu", EVIDENCE, 2.576)}
    assert (exact["step"], exact["position off m"], exact["delay"]) == ("160.7648", "6.8123", "0")
    assert all(len(re.sub(r"\D", "", f.short).lstrip("0")) <= 3 for f in figures("gps_imu", EVIDENCE, 2.576))
