"""The evidence of an opened alarm: what contributes most comes first, with its unit, and the rest is folded away."""

from __future__ import annotations

from typing import Any

IN_PAGE = """async (event) => {
  const { about } = await import('/page/story.js');
  const { learnKinds } = await import('/page/kinds.js');
  await learnKinds();
  const told = document.createElement('div');
  told.append(...about({ event, ack: null }, false, () => {}, (id) => id));
  const lines = (root) => [...root.children].filter((node) => node.matches('.facts'))
    .flatMap((list) => [...list.children].map((line) => [...line.children].map((cell) => cell.textContent)));
  const rest = told.querySelector('details.rest');
  return [lines(told), rest && [rest.open, rest.querySelector('summary').textContent, lines(rest)],
    [...told.querySelectorAll('.life li')].map((step) => step.textContent.split(' ')[0])];
}"""


def event(kind: str, threshold: float, **evidence: Any) -> dict[str, Any]:
    times = {"t": 1010.0, "t_onset": 1000.0, "t_raised": 1001.0, "t_cleared": None}
    worst = {"t": 1005.0, "score": 20.0, "evidence": {}}
    rest = {"severity": "warning", "score": 20.8, "diagnosis": None, "worst": worst, "ended": None}
    return {"kind": kind, "state": "updated", "threshold": threshold, "evidence": evidence, **times, **rest}


def test_what_is_responsible_comes_first_and_what_is_usual_is_folded_away(screen: Any) -> None:
    told = event(
        "gps_imu", 2.5, jump_sigma=0.52, position_sigma=4.11, step_sigma=20.8, drift_sigma=1.3,
        position_off_m=34.0, velocity_off_mps=0.5, spoofing_p=0.914, jamming_p=0.002,
    )  # fmt: skip
    first, rest, life = screen().page.evaluate(IN_PAGE, told)
    assert first == [
        ["score", "20.8"], ["threshold", "2.50"],
        ["step", "20.8 sigma"], ["position", "4.11 sigma"], ["position off", "34.0 m"], ["velocity off", "0.50 m/s"],
    ]  # fmt: skip
    folded, summary, lines = rest
    assert not folded
    assert summary == "4 more figures, none of them over its threshold"
    assert lines == [["drift", "1.30 sigma"], ["jump", "0.52 sigma"], ["spoofing", "91 %"], ["jamming", "0 %"]]
    assert life == ["onset", "raised", "worst"]


def test_an_incident_has_no_worst_moment(screen: Any) -> None:
    first, rest, life = screen().page.evaluate(IN_PAGE, event("incident", 1.0, alarms=["a"]))
    assert (first, rest, life) == ([], None, ["onset", "raised"])
