"""The further names of the documented project, and the settings that depart from the document, each by hand.

Along the equator, where a minute of arc is a nautical mile to within two parts in a thousand; steps of 10 s at 360 kt.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.departures import AS_DOCUMENTED, DEPARTURES
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS

PAGE = (Path(__file__).parents[3] / "docs/evaluation/conflicts.md").read_text()
STEPS = 40


def along(x_nm: float, y_nm: float = 0.0) -> tuple[float, float]:
    return y_nm / 60.0, x_nm / 60.0


def meeting(aside_nm: float, commands: dict[int, dict[str, list[float]]]) -> dict[str, Any]:
    """A1 → · · · 40 NM · · · ← A2, `aside_nm` to the north: 2 NM nearer at each step."""
    return {
        "positions": [{"A1": along(k), "A2": along(40.0 - k, aside_nm)} for k in range(STEPS)],
        "actions": [commands.get(k, {}) for k in range(STEPS)],
        "timestamps": [10.0 * k for k in range(STEPS)],
        "agents": {
            "A1": {"headings": [90.0] * STEPS, "speeds": [360.0] * STEPS},
            "A2": {"headings": [270.0] * STEPS, "speeds": [360.0] * STEPS},
        },
    }


def compute(trajectory: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return HallucinationDetector(**settings).compute(trajectory)


def test_quiet_steps_as_a_share():
    # conflict at 6 … 22, no alert: 23 of 40 steps are quiet
    r = compute(meeting(0.0, {}))
    assert (r["tn"], r["tn_pct"]) == (23, 23 / 40)
    assert compute({"positions": []})["tn_pct"] == 0.0


def test_alerts_that_match_no_conflict_are_unwanted():
    # 5.5 NM aside is a threat and no conflict. Commands at 14, 15, 16: two of three at 15, 16, 17, so the alert is 14 …
    # 18 and its window 13 … 19
    commands = {k: {"A1": [10.0, 0.0]} for k in (14, 15, 16)}
    r = HallucinationDetector().compute(meeting(5.5, commands), detail=True)
    assert [k for k, on in enumerate(r["steps"]["alert"]) if on] == [14, 15, 16, 17, 18]
    assert (r["unwanted_interventions"], r["excess_alert_time_s"]) == (1, 70.0)
    # in a conflict it is wanted, also the part of it that comes after
    commands = {k: {"A1": [10.0, 0.0]} for k in (21, 22, 23)}
    r = compute(meeting(0.0, commands))
    assert (r["unwanted_interventions"], r["excess_alert_time_s"]) == (0, 0.0)


def test_the_mean_threat_of_the_alerts_that_have_a_cause():
    # 4 NM aside, closing at 2 NM per 10 s: at step k TCPA is (40 - 2k) / 2 steps. Commands at 12, 14 and 15; one at 13
    # is trimming, and at 30 there is no threat any more. The alert is 13 … 17, so that the cause at 12 is not shown
    commands = {k: {"A1": [9.0, 0.0]} for k in (12, 14, 15, 30)} | {13: {"A1": [2.0, 0.0]}}
    r = compute(meeting(4.0, commands))
    assert r["avg_alert_dcpa_nm"] == pytest.approx(4.0, rel=0.01)
    assert r["avg_alert_tcpa_s"] == pytest.approx((60.0 + 50.0) / 2.0, rel=0.01)
    assert compute(meeting(4.0, {}))["avg_alert_dcpa_nm"] == 0.0


def test_the_cause_of_a_step_is_the_first_aircraft_that_acts():
    # A3 is 3 NM south of A1 and goes along with it: that is A1's threat, while A2's is A1, far ahead
    trajectory = meeting(4.0, {k: {name: [9.0, 0.0] for name in ("A2", "A1")} for k in (12, 13)})
    for k, step in enumerate(trajectory["positions"]):
        step["A3"] = along(k, -3.0)
    trajectory["agents"]["A3"] = trajectory["agents"]["A1"]
    r = compute(trajectory)
    assert r["avg_alert_dcpa_nm"] == pytest.approx(3.0, rel=0.01)
    assert r["avg_alert_tcpa_s"] == 0.0


@pytest.mark.parametrize(("wider_nm", "hits"), [(1.0, 1), (0.31, 1), (0.29, 0), (-1.0, 0)])
def test_an_escape_is_a_closest_approach_that_is_wider_one_step_later(wider_nm, hits):
    # commands at 13, 14 and 15; from 15 on A2 passes further away
    trajectory = meeting(2.0, {k: {"A1": [9.0, 0.0]} for k in (13, 14, 15)})
    for k in range(15, STEPS):
        trajectory["positions"][k]["A2"] = along(40.0 - k, 2.0 + wider_nm)
    assert compute(trajectory)["escape_improve_hits"] == hits


def test_a_threat_that_is_gone_one_step_later_was_not_escaped_from():
    trajectory = meeting(2.0, {k: {"A1": [9.0, 0.0]} for k in (13, 14)})
    for step in trajectory["positions"][15:]:
        del step["A2"]
    assert compute(trajectory)["escape_improve_hits"] == 0


# -- departures ------------------------------------------------------------------------------------------------


def test_every_departure_is_a_setting_is_in_the_output_and_on_the_page():
    plain, documented = HallucinationDetector(), HallucinationDetector.as_documented()
    ours, theirs = compute(meeting(0.0, {}))["settings"], documented.compute(meeting(0.0, {}))["settings"]
    rows = re.search(r"## Departures from the document\n(.*?)\n## ", PAGE, re.DOTALL)
    assert rows is not None
    for row in DEPARTURES:
        assert getattr(plain, row.setting) == ours[row.setting] == row.ours
        assert getattr(documented, row.setting) == theirs[row.setting] == row.documented
        word = f"`{row.setting}={row.documented!r}`".replace("'", '"')
        assert word in rows[1], word
    assert len(re.findall(r"^\| .*=", rows[1], re.MULTILINE)) == len(DEPARTURES)


def test_every_name_is_defined_on_the_page():
    for name in METRICS + BESIDE:
        assert re.search(rf"^\| `{name}` \|[^|]*\| [^|]+ \|$", PAGE, re.MULTILINE), name


def test_altitudes_may_be_left_out_of_it():
    trajectory = meeting(0.0, {})
    for agent, feet in (("A1", 30_000.0), ("A2", 36_000.0)):
        trajectory["agents"][agent]["altitudes"] = [feet] * STEPS
    assert compute(trajectory)["num_conflict_steps"] == 0
    assert compute(trajectory, vertical_ft=7000.0)["num_conflict_steps"] == 17
    r = compute(trajectory, vertical_ft=None)
    assert (r["num_conflict_steps"], r["num_los_events"]) == (17, 1)


def test_the_step_may_be_the_given_one():
    trajectory = meeting(0.0, {k: {"A1": [9.0, 0.0]} for k in (8, 9)})
    trajectory["timestamps"] = [20.0 * k for k in range(STEPS)]
    ours, given = compute(trajectory), compute(trajectory, step_from_timestamps=False)
    assert (ours["settings"]["step_s"], given["settings"]["step_s"]) == (20.0, 10.0)
    assert (ours["total_alert_time_s"], given["total_alert_time_s"]) == (80.0, 40.0)
    assert ours["flight_time_s"] == given["flight_time_s"] == 780.0


def test_a_loss_may_last_from_its_first_step_to_its_last():
    # separation is lost at 18 … 22
    assert compute(meeting(0.0, {}))["total_los_duration"] == 5
    assert compute(meeting(0.0, {}), los_duration="span")["total_los_duration"] == 4


def test_the_mean_extra_path_of_nobody():
    for setting, nothing in ({}, math.nan), ({"extra_path_without_waypoints": "zero"}, 0.0):
        r = compute(meeting(0.0, {}), **setting)
        assert [r["avg_extra_path_nm"], r["avg_extra_path_ratio"]] == pytest.approx([nothing] * 2, nan_ok=True)
        assert r["total_extra_path_nm"] == 0.0


def test_the_plane_at_the_first_aircraft_moves_dcpa_in_the_last_digits():
    trajectory = meeting(4.0, {})
    ours, first = compute(trajectory)["min_CPA_nm"], compute(trajectory, tangent_plane="first")["min_CPA_nm"]
    assert ours != first
    assert ours == pytest.approx(first, abs=0.001)


def test_the_command_has_every_departure_as_an_option(tmp_path, capsys):
    path, out = tmp_path / "e.json", tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(meeting(0.0, {})))
    assert main(["evaluate", "conflicts", str(path), "--as-documented", "--out", str(out)]) == 0
    written = json.loads(out.read_text())["settings"]
    assert {name: written[name] for name in AS_DOCUMENTED} == AS_DOCUMENTED
    options = ["--vertical-ft", "2000", "--team-potential", "sum", "--no-step-from-timestamps", "--merge-overlapping"]
    assert main(["evaluate", "conflicts", str(path), *options, "--out", str(out)]) == 0
    written = json.loads(out.read_text())["settings"]
    assert written["vertical_ft"] == 2000.0
    assert written["team_potential"] == "sum"
    assert written["step_from_timestamps"] is False
    assert written["merge_overlapping"] is True
    assert written["los_duration"] == "steps"
    assert (
        main(["evaluate", "conflicts", str(path), "--as-documented", "--vertical-ft", "2000", "--out", str(out)]) == 0
    )
    assert json.loads(out.read_text())["settings"]["vertical_ft"] == 2000.0
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "conflicts", str(path), "--los-duration", "days"])
    assert stop.value.code == 2
    assert "steps" in capsys.readouterr().err
