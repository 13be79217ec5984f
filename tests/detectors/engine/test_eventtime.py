"""Event time: on time, late, jumped, or of a clock that is off. Every decision is the same for any chunking."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import (
    ACCEPT,
    HELD,
    LATE,
    REFUSED,
    EventClock,
    HeldSample,
    closed_tick,
    tick_of,
)  # fmt: skip
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import Drop, Kind

TIME = Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=3.0)
NAMES = ["x", "a", "b", "c", "d"]


class Run:
    """Feeds times to a clock and keeps what happened, numbered over the whole input."""

    def __init__(self, time: Time = TIME, capacity: int = 64) -> None:
        self.clock = EventClock(time, capacity)
        self.codes: list[int] = []
        self.times: list[float] = []
        self.resets: list[int] = []
        self.released: list[tuple[int, float]] = []
        self.drops: list[str] = []

    def feed(self, times: list[float], senders: list[str] | None = None) -> "Run":
        t = np.array(times, float)
        who = senders or ["x"] * len(times)
        names = sorted(set(who))
        vid = np.array([names.index(name) for name in who], np.int32)
        base = len(self.codes)
        verdict = self.clock.admit(
            t, names, vid, np.full(len(t), -1, np.int32),
            lambda i, at: HeldSample(Kind.GPS, who[i], "", at, np.zeros(1)),
            lambda _, why: self.drops.append(why),
        )  # fmt: skip
        self.codes += verdict.codes.tolist()
        self.times += verdict.t.tolist()
        self.resets += [base + i for i in verdict.resets]
        self.released += [(base + i, held.t) for i, held in verdict.released]
        return self

    def notes(self) -> list[ClockNote]:
        return [note for era in range(1 + len(self.resets)) for note in self.clock.take_notes(era, np.inf)]

    def told(self) -> tuple:
        return self.codes, self.times, self.resets, self.released, self.drops, self.notes()


@pytest.mark.parametrize(
    ("t_max", "tick"), [(10.0, 8), (10.000001, 9), (10.5, 9), (11.0, 9), (11.1, 10), (-np.inf, -(2**62))]
)
def test_a_tick_closes_once_time_is_past_its_end_plus_lateness(t_max, tick):
    assert closed_tick(t_max, 1.0, 1.0) == tick


def test_a_sample_at_the_very_end_of_a_tick_belongs_to_it():
    assert tick_of(np.array([0.0, 0.5, 1.0, 1.0000001]), 1.0).tolist() == [0, 1, 1, 2]


def test_a_sample_of_a_closed_tick_is_late_and_of_an_open_one_is_not():
    run = Run().feed([10.0, 8.5, 12.5, 11.0, 11.5])
    # 12.5 closes tick 11 (ends at 11 < 11.5), so 11.0 is late and 11.5 is not
    assert run.codes == [ACCEPT, ACCEPT, ACCEPT, LATE, ACCEPT]


def test_single_wrong_times_among_good_ones_are_dropped_and_time_does_not_move():
    run = Run().feed([100.0, 5000.0, 100.2, 5000.3, 100.4])
    assert run.codes == [ACCEPT, HELD, ACCEPT, HELD, ACCEPT]
    assert run.drops == [Drop.TIME_JUMP] * 2
    assert run.clock.t_max == 100.4


def test_a_gap_in_the_input_is_confirmed_and_nothing_is_lost():
    run = Run().feed([100.0, 5000.0, 5001.0, 5002.0, 5003.5, 5004.0])
    assert [t for _, t in run.released] == [5000.0, 5001.0, 5002.0, 5003.5]
    assert run.codes[-1] == ACCEPT
    assert run.drops == []


def test_a_lone_vehicle_that_reports_once_a_minute_loses_nothing():
    run = Run().feed([60.0 * i for i in range(10)])
    let_in = run.codes.count(ACCEPT) + len(run.released)
    assert let_in + len(run.clock.held) == 10
    assert len(run.clock.held) <= 1
    assert run.drops == []


def test_a_restarted_simulation_begins_a_new_era():
    run = Run().feed([1000.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    assert run.resets == [4]
    assert [t for _, t in run.released] == [0.0, 1.0, 2.0, 3.0]
    assert run.clock.t_max == 4.0


@pytest.mark.parametrize("step_s", [-10.0, -30.0, -5000.0, 5.0, 30.0, 5000.0])
@pytest.mark.parametrize("n", [2, 3, 20])
def test_a_fleet_that_steps_together_loses_nothing(step_s, n):
    run = Run()
    for i in range(60):
        run.feed([1e6 + i + k / n + step_s * (i >= 30) for k in range(n)], [f"v{k}" for k in range(n)])
    assert run.drops == []
    assert run.codes.count(ACCEPT) + len(run.released) == 60 * n
    assert len(run.resets) == (step_s < 0)


def test_what_a_broker_delivers_again_is_late_and_no_new_era():
    run = Run()
    for i in range(40):
        run.feed([1e6 + i] * 4, list("abcd"))
        if i == 30:
            run.feed([1e6 + 20.0] * 4, list("abcd"))
    assert run.resets == []
    assert run.drops == [Drop.LATE] * 4


def test_random_times_of_an_attacker_never_move_time():
    rng = np.random.default_rng(1)
    times = [1e9]
    for i in range(2000):
        times += [float(rng.uniform(0, 4e9))] * int(rng.integers(0, 4)) + [1e9 + i * 0.01]
    run = Run().feed(times, ["bad" if abs(t - 1e9) > 100 else "good" for t in times])
    assert run.clock.t_max == pytest.approx(1e9 + 19.99)
    assert run.resets == []
    assert run.codes.count(ACCEPT) == 2001


def fleet(offender, *, honest: int = 20, seconds: int = 60, seed: int = 1) -> list[tuple[str, float]]:
    """Honest senders at 1 Hz with delays up to 0.1 s, and one with the times `offender(t, i)`: in order of arrival."""
    rng = np.random.default_rng(seed)
    arrivals = [(t + 0.01, "bad", offender(t, i)) for i in range(seconds) for t in [1e6 + 0.3 + i]]
    for k in range(honest):
        times = 1e6 + rng.uniform() + np.arange(seconds)
        arrivals += [(t + rng.uniform(0.0, 0.1), f"h{k:02}", t) for t in times]
    return [(name, t) for _, name, t in sorted(arrivals)]


OFFENDERS = {
    "20 s ahead": lambda t, _: t + 20.0,
    "1 h ahead": lambda t, _: t + 3600.0,
    "1 h behind": lambda t, _: t - 3600.0,
    "5 s behind": lambda t, _: t - 5.0,
    "creeps by 29 s a message": lambda t, i: t + 29.0 * i,
    "runs fast by a tenth": lambda t, i: t + 0.1 * i,
    "steps by 20 s": lambda t, i: t + 20.0 * (i > 25),
    "jitters by 20 s": lambda t, i: t + 20.0 * np.sin(1.7 * i * i),
}


@pytest.mark.parametrize("how", OFFENDERS)
def test_one_wrong_clock_costs_the_others_nothing_and_is_named(how):
    arrivals = fleet(OFFENDERS[how])
    run = Run().feed([t for _, t in arrivals], [name for name, _ in arrivals])
    honest = [code for (name, _), code in zip(arrivals, run.codes, strict=True) if name != "bad"]
    assert set(honest) == {ACCEPT}
    assert run.resets == []
    notes = run.notes()
    assert {note.name for note in notes} == {"bad"}
    begins = {"steps by 20 s": 26.0, "runs fast by a tenth": 10.0}.get(how, 0.0)
    assert notes[0].t - 1e6 < begins + 10.0


@pytest.mark.parametrize("how", ["20 s ahead", "1 h ahead", "1 h behind", "5 s behind", "steps by 20 s"])
def test_a_steady_offset_is_taken_off(how):
    arrivals = fleet(OFFENDERS[how])
    run = Run().feed([t for _, t in arrivals], [name for name, _ in arrivals])
    bad = [(code, t) for (name, _), code, t in zip(arrivals, run.codes, run.times, strict=True) if name == "bad"]
    true_t = 1e6 + 0.3 + np.arange(len(bad))
    assert sum(code != ACCEPT for code, _ in bad) <= 4
    assert max(abs(t - at) for (_, t), at in list(zip(bad, true_t, strict=True))[-20:]) < 0.5


def test_samples_of_an_unsteady_clock_are_refused_until_it_has_settled():
    arrivals = fleet(lambda t, i: t + (29.0 * i if i < 30 else 0.0), seconds=120)
    run = Run().feed([t for _, t in arrivals], [name for name, _ in arrivals])
    bad = [code for (name, _), code in zip(arrivals, run.codes, strict=True) if name == "bad"]
    assert set(bad[6:30]) == {REFUSED}
    assert set(bad[-60:]) == {ACCEPT}
    assert not run.notes()[-1].unsteady


@pytest.mark.parametrize("offset_s", [0.0, 0.5, 2.5, 5.0, 10.0, 20.0, 30.0, -2.5, -20.0, 3600.0, -3600.0])
def test_two_senders_are_brought_to_one_time(offset_s):
    times = [(1e6 + i + 0.4 * k + offset_s * k, "ab"[k]) for i in range(60) for k in range(2)]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    assert run.resets == []
    last = {name: t for (_, name), t in zip(times, run.times, strict=True)}
    assert set(run.codes[20:]) == {ACCEPT}
    assert abs(last["b"] - last["a"] - 0.4) < 1.0


def test_a_backlog_of_many_senders_is_waited_for():
    """A flood in which every other sender is delivered seconds behind the rest loses next to nothing."""
    times = []
    for i in range(200):
        lag = min(0.1 * i, 8.0)
        times += [(1e6 + 0.5 * i - lag * (k % 2), f"v{k}") for k in range(10)]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    assert run.codes.count(ACCEPT) >= 0.98 * len(times)


@pytest.mark.parametrize("silent_s", [5, 7, 9])
@pytest.mark.parametrize("back", [["b"], ["b", "c"], ["c", "b"]])
@pytest.mark.parametrize("strays", [False, True])
def test_what_was_said_while_all_others_were_silent_is_taken_once_they_are_back(silent_s, back, strays):
    """One of three goes on alone; the others come back with what they have saved up. Somebody else may be far off."""
    times = [(1e6 + t + 0.01 * k, name) for t in range(20) for k, name in enumerate("abc")]
    alone = range(20, 20 + silent_s)
    for t in alone:
        times += [(1e6 + t, "a")] + ([(2e6 + 7.0 * t, "d")] if strays and t % 2 else [])
    for name in back:
        times += [(1e6 + t + 0.01, name) for t in alone]
    times += [(1e6 + t + 0.01 * k, name) for t in range(20 + silent_s, 60) for k, name in enumerate("abc")]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    lone = [t for t, name in times if name == "a"]
    released = {t for _, t in run.released}
    taken = {t for (t, name), code in zip(times, run.codes, strict=True) if name == "a" and code == ACCEPT} | released
    assert sorted(taken) == lone
    assert {note.name for note in run.notes()} <= {"d"}
    assert run.resets == []


@pytest.mark.parametrize("silent_s", range(4, 10))
@pytest.mark.parametrize("joined_s", [1, 2, 3])
@pytest.mark.parametrize("back", ["c", "cd", "dc"])
def test_one_who_joins_a_lone_sender_takes_nothing_from_it(silent_s, joined_s, back):
    """Of four the last two are cut off, the second says nothing for some other reason and speaks before they are back.

    What was said meanwhile by the first and the second is taken, and their clocks are not blamed.
    """
    times = [(1e6 + t + 0.01 * k, name) for t in range(20) for k, name in enumerate("abcd")]
    alone = range(20, 20 + silent_s)
    for t in alone:
        times += [(1e6 + t, "a")] + ([(1e6 + t + 0.01, "b")] if t >= 20 + silent_s - joined_s else [])
    for name in back:
        times += [(1e6 + t + 0.02, name) for t in alone]
    times += [(1e6 + t + 0.01 * k, name) for t in range(20 + silent_s, 60) for k, name in enumerate("abcd")]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    mine = [t for t, name in times if name in "ab"]
    taken = {t for (t, _), code in zip(times, run.codes, strict=True) if code == ACCEPT} | {t for _, t in run.released}
    assert taken.issuperset(mine)
    assert {note.name for note in run.notes()}.isdisjoint("ab")
    assert run.resets == []


def test_one_that_is_back_first_after_a_gap_loses_nothing_to_the_next():
    """All three are cut off; what they said meanwhile is lost for one, the other sends it when it is back."""
    times = [(1e6 + t + 0.01 * k, name) for t in range(20) for k, name in enumerate("abc")]
    times += [(1e6 + t, "a") for t in range(26, 30)]
    times += [(1e6 + t + 0.01, "b") for t in range(20, 30)]
    times += [(1e6 + t + 0.01 * k, name) for t in range(30, 40) for k, name in enumerate("ab")]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    released = {t for _, t in run.released}
    taken = {t for (t, _), code in zip(times, run.codes, strict=True) if code == ACCEPT} | released
    assert {t for t, name in times if name == "a"} <= taken
    assert (run.notes(), run.resets) == ([], [])


def test_someone_who_was_silent_cannot_pull_the_time_of_two_others():
    times = [(1e6 + t + 0.01 * k, name) for t in range(15) for k, name in enumerate("abc")]
    times += [(1e6 + t + 0.01 * k, name) for t in range(15, 30) for k, name in enumerate("ab")]
    ahead = len(times)
    times += [(1e6 + 33.0, "c")]
    times += [(1e6 + t + 0.01 * k, name) for t in range(30, 40) for k, name in enumerate("ab")]
    run = Run().feed([t for t, _ in times], [name for _, name in times])
    assert set(run.codes[:ahead] + run.codes[ahead + 1 :]) == {ACCEPT}


def test_one_wrong_clock_after_a_gap_does_not_win_against_two_though_a_fourth_is_silent():
    run = Run()
    for t in range(10):
        for name in "abcx":
            run.feed([100.0 + t], [name])
    # nobody was heard for eight seconds; since then x is ahead by 40 s, speaks first, and c says nothing
    for t in range(18, 40):
        for name, off_s in (("x", 40.0), ("a", 0.0), ("b", 0.0)):
            run.feed([100.0 + t + off_s], [name])
    assert run.resets == []
    assert run.clock.t_max == pytest.approx(139.0)
    assert sum(t < 140.0 for _, t in run.released) + run.codes.count(ACCEPT) >= 40 + 2 * 22


def test_a_sender_that_is_never_in_time_is_named():
    """Its delay changes, so it is no offset that could be taken off, and it is not judged."""
    arrivals = fleet(lambda t, i: t - 3.0 - 1.9 * (i % 2), seconds=60)
    run = Run().feed([t for _, t in arrivals], [name for name, _ in arrivals])
    assert {code for (name, _), code in zip(arrivals, run.codes, strict=True) if name == "bad"} == {LATE}
    notes = run.notes()
    assert {(note.name, note.late) for note in notes} == {("bad", True)}
    assert notes[0].t - 1e6 < 10.0
    assert notes[-1].t - 1e6 > 58.0


@pytest.mark.parametrize("n", [2, 3, 20])
@pytest.mark.parametrize("every_s", [5.0, 60.0, 600.0])
def test_rare_reports_of_several_senders_are_all_taken(n, every_s):
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(every_s, 300)) + 1e6
    run = Run().feed(times.tolist(), [f"v{k}" for k in rng.integers(0, n, 300)])
    assert run.resets == []
    assert run.codes.count(ACCEPT) + len(run.released) + len(run.clock.held) == 300
    assert len(run.clock.held) < 5
    assert run.notes() == []


def test_strangers_cannot_fill_the_table_of_senders():
    run = Run(capacity=32)
    for i in range(200):
        run.feed([1e6 + i] * 4, ["a", "b", f"stranger {i}", f"stranger {-i}"])
    assert run.codes.count(ACCEPT) == 800


TIMES = st.one_of(st.floats(0.0, 40.0), st.floats(90.0, 110.0), st.floats(0.0, 5000.0)).map(lambda x: round(x, 2))


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), TIMES), max_size=80),
    st.lists(st.integers(1, 7), min_size=1, max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_decisions_do_not_depend_on_chunking(samples, sizes):
    names, times = [name for name, _ in samples], [t for _, t in samples]
    whole, parts = Run().feed(times, names), Run()
    at = 0
    while at < len(times):
        size = sizes[at % len(sizes)]
        parts.feed(times[at : at + size], names[at : at + size])
        at += size
    # every sample is accounted for exactly once
    let_in = whole.codes.count(ACCEPT) + len(whole.released)
    lost = whole.codes.count(LATE) + whole.codes.count(REFUSED) + len(whole.drops)
    assert let_in + lost + len(whole.clock.held) == len(times)
    assert parts.told() == whole.told()


@given(st.integers(0, 2**32 - 1), st.integers(1, 400))
@settings(max_examples=20, deadline=None)
def test_a_restored_clock_goes_on_as_if_nothing_had_happened(seed, cut):
    how = list(OFFENDERS.values())[seed % len(OFFENDERS)]
    arrivals = fleet(how, honest=5, seed=seed)
    names, times = [name for name, _ in arrivals], [t for _, t in arrivals]
    whole, first = Run().feed(times, names), Run().feed(times[:cut], names[:cut])
    second = copy.copy(first)
    second.clock = EventClock(TIME, 64)
    second.clock.restore(decode_state(bytes(StateEncoder().encode(first.clock.snapshot()))))
    assert second.feed(times[cut:], names[cut:]).told() == whole.told()
