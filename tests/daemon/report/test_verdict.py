"""The verdict in words: every case has its own, and silence is called good only where somebody looked."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_events import event

from watchkeeper.daemon.report.gather.lives import Lives, grouped
from watchkeeper.daemon.report.sections.alarms import _life
from watchkeeper.daemon.report.verdict import Findings, verdict
from watchkeeper.detectors.alarms.events import AlarmEvent, alarm_id
from watchkeeper.detectors.coverage.table import Tally
from watchkeeper.detectors.incidents.fold import Tally as FoldTally
from watchkeeper.detectors.sentence import say

ARRIVAL = frozenset({"silence", "link"})
WATCHED = {"gps_imu": Tally(judged=1), "silence": Tally(judged=1)}
TOO_SHORT = {
    "gps_imu": Tally(not_judged={"too_short": 1}, examples={"too_short": ["quad"]}),
    "silence": Tally(judged=1),
}


def lives_of(*events: AlarmEvent) -> Lives:
    lives = Lives()
    for each in events:
        lives.hear(each)
    return lives


def found(tallies: dict[str, Tally], *events: AlarmEvent, seconds: float = 668.0, samples: int = 1000) -> Findings:
    tally = FoldTally()
    for each in events:
        tally.take(each)
    return Findings(
        raised=tally.count,
        seconds=seconds,
        vehicles=1,
        samples=samples,
        groups=grouped(list(lives_of(*events).all.values())),
        tallies=tallies,
        arrival=ARRIVAL,
        needs={"gps_imu": 20.0},
    )


def incident(state: str, t: float, *alarms: str) -> AlarmEvent:
    return AlarmEvent(
        id=alarm_id("incident", ("quad",), 1.0), kind="incident", state=state, severity="warning", subjects=("quad",),
        t=t, t_onset=1.0, t_raised=2.0, t_cleared=t if state == "cleared" else None, score=1.0, threshold=1.0,
        evidence={"alarms": list(alarms)}, ended="alarms_cleared" if state == "cleared" else None,
        diagnosis={"type": "gps_spoofing", "location": "quad/gps", "confidence": 0.93},
    )  # fmt: skip


def test_a_log_in_which_all_were_judged_and_nothing_happened_is_clean() -> None:
    said = verdict(found(WATCHED))
    assert (said.tone, said.unjudged) == ("clean", ())
    assert said.headline == "No alarm in 11 min 8 s, and everything that could be judged was."


def test_a_log_that_is_too_short_says_that_nothing_could_be_judged_and_why() -> None:
    said = verdict(found(TOO_SHORT, seconds=6.5))
    assert said.tone == "unjudged"
    assert said.headline.startswith("Nothing could be judged, so no alarm means nothing here")
    (why,) = said.unjudged
    assert why.startswith("GPS IMU did not judge quad: the recording ended before it could be judged")
    assert why.endswith("(6.5 s long; it needs 20 s of good data at least).")


def test_whether_messages_came_is_no_judgement_of_what_they_say() -> None:
    said = verdict(found({"gps_imu": Tally(), "silence": Tally(judged=1)}))
    assert said.tone == "unjudged"
    assert any("no streams that any detector judges" in note for note in said.notes)


def test_a_log_without_samples_is_not_judged() -> None:
    said = verdict(found({}, samples=0, seconds=0.0))
    assert said.tone == "unjudged"
    assert "no samples" in said.headline


def test_what_was_judged_in_part_is_not_called_clean() -> None:
    unaligned = Tally(judged=1, partly={"unaligned": 1}, examples={"unaligned": ["quad"]})
    some = Tally(judged=3, not_judged={"no_imu": 2}, examples={"no_imu": ["a", "b"]})
    for tally, words in ((unaligned, "judged quad only in part"), (some, "did not judge a and b: it sends no IMU")):
        said = verdict(found({"gps_imu": tally, "silence": Tally(judged=1)}))
        assert (said.tone, said.headline) == ("partly", "No alarm in 11 min 8 s, but not everything was judged.")
        assert any(words in line for line in said.unjudged)


def test_alarms_are_counted_told_and_those_that_did_not_end_are_said() -> None:
    ended = (event("a", "raised", 10.0), event("a", "cleared", 20.0))
    said = verdict(found(WATCHED, *ended, event("b", "raised", 30.0, t_onset=25.0)))
    assert said.tone == "caution"
    assert said.headline == "2 alarms about a and b in 11 min 8 s; the worst is a caution."
    assert said.happened[-1] == "1 alarm was still active when the log ended."
    # the sentence of every other output
    (sentence,) = verdict(found(WATCHED, *ended)).happened
    assert sentence == say(ended[-1])


def test_an_alarm_lasts_as_long_in_its_life_as_in_its_sentence() -> None:
    ended = (incident("raised", 11.0), incident("cleared", 61.0))
    (life,) = lives_of(*ended).all.values()
    assert "ended t=61.0 s after 60 s" in say(ended[-1])
    assert [*_life(SimpleNamespace(t_last=100.0), life)][-1] == "ended t=61.0 s, after 60 s"  # type: ignore[arg-type]
    (life,) = lives_of(ended[0]).all.values()
    active = [*_life(SimpleNamespace(t_last=100.0), life)][-1]  # type: ignore[arg-type]
    assert active == "still active at the end, 99 s after it began"


def test_alarms_do_not_hide_what_was_not_judged() -> None:
    said = verdict(found(TOO_SHORT, event("quad", "raised", 3.0)))
    assert said.tone == "caution"
    assert "did not judge quad" in said.unjudged[0]


def test_an_alarm_that_something_is_not_watched_is_no_finding_about_a_vehicle() -> None:
    said = verdict(found(TOO_SHORT, event("quad", "raised", 3.0, kind="watch")))
    assert said.tone == "unjudged"


def test_an_incident_names_the_cause_and_holds_its_alarms() -> None:
    symptom = event("quad", "raised", 2.0, t_onset=1.0)
    raised = incident("raised", 3.0, symptom.id)
    symptom = msgspec.structs.replace(symptom, incident=raised.id)
    events = (symptom, raised, incident("cleared", 9.0))
    (group,) = grouped(list(lives_of(*events).all.values()))
    assert [life.first.id for life in group.alarms] == [symptom.id]
    said = verdict(found(WATCHED, *events))
    assert said.headline == "1 alarm with 1 symptom about quad in 11 min 8 s; the worst is a warning."
    assert said.happened[:2] == (say(events[-1]), say(symptom))


@pytest.mark.parametrize("trouble", [{"troubles": ("a detector failed",)}, {"interrupted": True}])
def test_a_trouble_or_an_interruption_is_never_clean(trouble: dict[str, object]) -> None:
    plain = found(WATCHED)
    said = verdict(Findings(**{name: getattr(plain, name) for name in Findings.__slots__} | trouble))
    assert said.tone == "partly"
    assert said.notes


counts = st.dictionaries(st.sampled_from(["too_short", "no_imu", "never_aligns"]), st.integers(1, 50), max_size=3)


@given(judged=st.integers(0, 50), not_judged=counts, partly=st.booleans())
def test_clean_means_that_somebody_was_judged_and_nobody_left_out(
    judged: int, not_judged: dict[str, int], partly: bool
) -> None:
    tally = Tally(judged, not_judged, {"unaligned": 1} if partly and judged else {})
    said = verdict(found({"gps_imu": tally, "silence": Tally(judged=judged + 1)}))
    assert (said.tone == "clean") == (judged > 0 and not not_judged and not tally.partly)
    assert (said.tone == "unjudged") == (judged == 0)
    assert said.tone == "clean" or said.unjudged or said.notes
