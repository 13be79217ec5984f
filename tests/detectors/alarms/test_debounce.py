"""Debounce: the array kernel does what a plain reading of the rules does, and each rule by itself."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.detectors.alarms.debounce import CLEAR, MOST_CHANGES, NOTHING, RAISE, SETTLED_S, STILL, Debouncer


def run(rule: Debounce, rows: list[tuple[float, float]], epochs: list[float] | None = None) -> list[int]:
    """Actions for (t, score) rows of one cell at threshold 1."""
    d = Debouncer(rule, 1)
    t = np.array([r[0] for r in rows])
    return d.update(
        np.zeros(len(rows), np.int32), t, t if epochs is None else np.array(epochs),
        np.array([r[1] for r in rows]), np.ones(len(rows)),
    ).tolist()  # fmt: skip


RULE = Debounce(n=3, m=3, clear_n=2, clear_ratio=0.8, min_on_s=0.0, bridge_s=10.0, lost_s=30.0)


def test_three_in_a_row_raise_and_two_below_the_clearing_level_clear():
    scores = [2, 2, 0, 2, 2, 2, 0.9, 0.7, 0.9, 0.7, 0.7, 2]
    actions = run(RULE, [(float(i), s) for i, s in enumerate(scores)])
    assert actions.index(RAISE) == 5
    assert actions.index(CLEAR) == 10  # 0.9 is under the threshold but not under the clearing level
    assert actions[11] == NOTHING


def test_after_a_look_that_found_nothing_active_what_is_raised_or_taken_over_is_seen():
    t, one = np.arange(3.0), np.ones(3)
    raised, adopted, restored = (Debouncer(RULE, 2) for _ in range(3))
    for d in (raised, adopted, restored):
        d.update(np.ones(3, np.int32), t, t, 0.0 * one, one)
        assert not len(d.active(2))
        assert not len(d.lost(100.0, 2))
    raised.update(np.zeros(3, np.int32), t, t, 2.0 * one, one)
    adopted.adopt(0, 0.0, 1.0, 2.0, 0)
    restored.restore(raised.snapshot(2))
    for d in (raised, adopted, restored):
        assert d.active(2).tolist() == [0]
        assert d.lost(100.0, 2).tolist() == [0]
        assert not len(d.active(2))


def test_one_measurement_used_five_times_is_one_piece_of_evidence():
    rows = [(float(i), 9.0) for i in range(5)]
    assert run(RULE, rows, epochs=[1.0] * 5) == [NOTHING] * 5
    assert RAISE in run(RULE, rows, epochs=[0.0, 1.0, 2.0, 3.0, 4.0])


def test_a_long_gap_starts_the_count_again_and_a_short_one_is_bridged():
    assert RAISE not in run(RULE, [(0.0, 2), (1.0, 2), (12.5, 2), (13.0, 2)])
    assert RAISE in run(RULE, [(0.0, 2), (9.0, 2), (18.0, 2)])


def test_of_the_epochs_before_a_long_gap_none_counts():
    rule = Debounce(n=2, m=3, clear_n=1, bridge_s=10.0)
    assert RAISE not in run(rule, [(0.0, 0), (1.0, 2), (12.0, 2)])
    assert RAISE not in run(rule, [(0.0, 0), (1.0, 0), (2.0, 2), (13.0, 2)])
    assert RAISE in run(rule, [(0.0, 0), (1.0, 2), (11.0, 2)])


def test_n_of_m_forgives_one_miss_and_onset_is_the_first_counted_epoch():
    rule = Debounce(n=2, m=3, clear_n=1, bridge_s=10.0)
    d = Debouncer(rule, 1)
    t = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    score = np.array([2.0, 0.0, 0.0, 2.0, 0.0, 2.0])
    actions = d.update(np.zeros(6, np.int32), t, t, score, np.ones(6))
    assert actions.tolist() == [0, 0, 0, 0, 0, RAISE]
    assert d.cells["t_onset"][0] == 3.0
    assert d.cells["t_raised"][0] == 5.0


FIVE = Debounce(n=5, m=5, most_s=8.0, strong=2.0)


def test_a_slow_feed_raises_by_time_and_a_fast_one_by_count():
    assert run(FIVE, [(float(i), 1.0) for i in range(6)]).index(RAISE) == 4
    assert run(FIVE, [(5.0 * i, 1.0) for i in range(6)]).index(RAISE) == 2
    assert run(FIVE, [(10.0 * i, 1.0) for i in range(6)]).index(RAISE) == 1
    # a miss begins the time again
    assert run(FIVE, [(0.0, 1.0), (5.0, 0.5), (10.0, 1.0), (15.0, 1.0)]) == [NOTHING] * 4


def test_strong_evidence_counts_for_several_epochs():
    assert run(FIVE, [(0.0, 2.0)]) == [RAISE]
    assert run(FIVE, [(0.0, 1.5), (1.0, 1.5)]) == [NOTHING, RAISE]
    assert run(FIVE, [(0.0, 1.5), (1.0, 0.9), (2.0, 1.5), (3.0, 1.1), (4.0, 1.0)])[-2:] == [NOTHING, RAISE]


def test_no_evidence_is_strong_enough_to_raise_before_the_least_time():
    rule = Debounce(n=2, m=2, least_s=3.0, strong=2.0)
    d = Debouncer(rule, 1)
    t = np.arange(8.0)
    actions = d.update(np.zeros(8, np.int32), t, t, np.array([0, 9, 9, 9, 9, 9, 9, 9.0]), np.ones(8))
    assert actions.tolist().index(RAISE) == 4
    # also where the first epoch that counts has left the window
    assert d.cells["t_onset"][0] == 1.0


def test_minimum_persistence_keeps_an_alarm_up():
    rule = Debounce(n=1, m=1, clear_n=1, min_on_s=5.0)
    actions = run(rule, [(0.0, 2)] + [(float(i), 0.0) for i in range(1, 8)])
    assert actions == [RAISE, STILL, STILL, STILL, STILL, CLEAR, NOTHING, NOTHING]


def test_no_evidence_at_all_loses_the_alarm_after_lost_s():
    d = Debouncer(RULE, 3)
    t = np.array([0.0, 1.0, 2.0])
    d.update(np.full(3, 1, np.int32), t, t, np.full(3, 5.0), np.ones(3))
    assert d.lost(31.0, 3).tolist() == []
    assert d.lost(32.5, 3).tolist() == [1]
    assert d.lost(40.0, 3).tolist() == []


def weighed(rule: Debounce, score: float) -> float:
    """For how many epochs a score counts, at threshold 1."""
    if score < 1.0:
        return 0.0
    return 1.0 + (rule.n - 1) * min((score - 1.0) / (rule.strong - 1.0), 1.0) if rule.strong > 1.0 else 1.0


def counting(rule: Debounce, history: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The newest epochs (t, score) that count together: any m in a row of them have at most m - n misses."""
    for start in range(len(history)):
        part = history[start:]
        windows = [part[max(0, end - rule.m) : end] for end in range(1, len(part) + 1)]
        if part[0][1] >= 1.0 and all(sum(s < 1.0 for _, s in w) <= rule.m - rule.n for w in windows):
            return part
    return []


def enough(rule: Debounce, history: list[tuple[float, float]]) -> bool:
    part = counting(rule, history)
    if not part or part[-1][1] < 1.0:
        return False
    lasted, recent = part[-1][0] - part[0][0], part[-rule.m :]
    over = sum(score >= 1.0 for _, score in recent)
    long = rule.most_s > 0.0 and lasted >= rule.most_s and over >= 2 and over * rule.m >= rule.n * len(recent)
    return lasted >= rule.least_s and (long or sum(weighed(rule, score) for _, score in recent) >= rule.n)


def plain(rule: Debounce, rows: list[tuple[float, float]]) -> list[int]:
    """The rules again, one row at a time, with lists."""
    history: list[tuple[float, float]] = []
    active, off, last, raised = False, 0, -np.inf, 0.0
    out = []
    for t, score in rows:
        if t <= last:
            out.append(NOTHING)
            continue
        if t - last > rule.bridge_s:
            history, off = [], 0
        last = t
        history = [*history, (t, score)]
        if not active:
            if enough(rule, history):
                active, off, raised = True, 0, t
                out.append(RAISE)
            else:
                out.append(NOTHING)
            continue
        off = off + 1 if score < rule.clear_ratio else 0
        if off >= rule.clear_n and t - raised >= rule.min_on_s:
            active, off, history = False, 0, []
            out.append(CLEAR)
        else:
            out.append(STILL)
    return out


@st.composite
def rules(draw):
    m = draw(st.integers(1, 8))
    return Debounce(
        n=draw(st.integers(1, m)), m=m, clear_n=draw(st.integers(1, 4)),
        clear_ratio=draw(st.sampled_from([0.5, 0.8, 1.0])), min_on_s=draw(st.sampled_from([0.0, 3.0])),
        bridge_s=draw(st.sampled_from([2.0, 100.0])), least_s=draw(st.sampled_from([0.0, 0.0, 2.0, 6.0])),
        most_s=draw(st.sampled_from([0.0, 0.0, 3.0, 8.0])), strong=draw(st.sampled_from([0.0, 0.0, 1.5, 5.0])),
    )  # fmt: skip


@given(
    rules(),
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0, 5.0]), st.sampled_from([0.0, 0.4, 0.7, 0.9, 1.0, 1.25, 2.0, 9.0])
        ),
        max_size=60,
    ),
    st.integers(1, 60),
)
@settings(max_examples=300, deadline=None)
def test_the_kernel_agrees_with_a_plain_reading_of_the_rules_for_any_chunking(rule, steps, cut):
    t = np.cumsum([s[0] for s in steps]) if steps else np.empty(0)
    rows = list(zip(t.tolist(), [s[1] for s in steps], strict=True))
    d = Debouncer(rule, 1)
    actions: list[int] = []
    for start in range(0, len(rows), cut):
        part = rows[start : start + cut]
        pt = np.array([r[0] for r in part])
        actions += d.update(
            np.zeros(len(part), np.int32), pt, pt, np.array([r[1] for r in part]), np.ones(len(part))
        ).tolist()
    assert actions == plain(rule, rows)


def test_severity_rises_at_once_and_falls_to_the_worst_of_a_settled_minute():
    d, n = Debouncer(Debounce(n=1, m=1, clear_n=1), 1), 200
    t = np.arange(float(n))
    told = np.zeros(n, np.uint8)
    told[[0, 20, 60]] = 1, 2, 1
    cell = np.zeros(n, np.int32)
    action = d.update(cell, t, t, np.full(n, 2.0), np.ones(n))
    shown = d.shown(cell, t, action, told)
    # up and down are two changes: it does not fall again
    assert shown.tolist() == [1] * 20 + [2] * 61 + [1] * 119
    told[60] = 0
    assert told[1] == 0  # the evidence stays as it is
    assert Debouncer(Debounce(), 1).shown(cell, t, action, told).tolist() == [1] * 20 + [2] * 61 + [0] * 119


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=60), st.lists(st.integers(0, 2), max_size=120), st.integers(0, 2)
)
def test_severity_changes_twice_unless_it_gets_worse_after_it_had_fallen(told, later, left):
    severity = np.array([*told, *later, *[left] * 180], np.uint8)
    n = len(severity)
    t, cell = np.arange(float(n)), np.zeros(n, np.int32)
    d = Debouncer(Debounce(n=1, m=1, clear_n=1), 1)
    shown = d.shown(cell, t, d.update(cell, t, t, np.full(n, 2.0), np.ones(n)), severity).astype(int)
    steps = np.diff(shown)
    # it only rises in its first minute, and there are two steps to rise by
    assert np.all(steps[: len(told) - 1] >= 0)
    assert np.count_nonzero(steps[: len(told) - 1]) <= MOST_CHANGES
    # falls are a minute apart, each goes to the worst that the minute had, and none is the third change or a later one
    falls = np.flatnonzero(steps < 0)
    assert np.all(np.diff(falls) >= SETTLED_S)
    assert all(shown[i + 1] == severity[i + 1 - int(SETTLED_S) : i + 2].max() for i in falls)
    assert np.all(steps[np.flatnonzero(steps)[MOST_CHANGES:]] > 0)
    # what stays as it is ends in one fall, whatever was before
    assert np.count_nonzero(steps[len(told) + len(later) + int(SETTLED_S) :]) <= 1


def test_severity_rises_on_evidence_that_lasts():
    def shown(told, every_s=0.2, rise_s=0.9):
        n = len(told)
        t, cell = np.arange(n) * every_s, np.zeros(n, np.int32)
        d = Debouncer(Debounce(n=1, m=1, clear_n=1, rise_s=rise_s), 1)
        action = d.update(cell, t, t, np.full(n, 2.0), np.ones(n))
        return d.shown(cell, t, action, np.array(told, np.uint8)).tolist()

    # one epoch lifts nothing, and neither does one in every other
    assert shown([0, 2, 0, 0, 0, 0, 0, 0]) == [0] * 8
    assert shown([0, 2] * 8) == [0] * 16
    # in one step to what the last two epochs show, not over what was in between
    assert shown([0, 1, 2, 2, 2, 2, 2, 2]) == [0] * 6 + [2] * 2
    assert shown([0, 1, 1, 1, 1, 1, 2, 1]) == [0] * 6 + [1] * 2
    # two epochs of a receiver of 1 Hz have lasted, one has not
    assert shown([0, 2, 0, 2, 2], every_s=1.0) == [0, 0, 0, 0, 2]
    assert shown([0, 2, 0, 2, 2], every_s=1.0, rise_s=0.0) == [0, 2, 2, 2, 2]
    # what raised the alarm has been debounced
    assert shown([2, 0, 0]) == [2, 2, 2]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.integers(1, 40), st.data())
def test_severity_does_not_depend_on_how_rows_are_cut(told, step, data):
    n = len(told)
    t, severity, cell = np.arange(n) * float(step), np.array(told, np.uint8), np.zeros(n, np.int32)

    def shown(cuts):
        d, out = Debouncer(Debounce(n=1, m=1, clear_n=1, bridge_s=100.0), 1), []
        for a, b in zip([0, *cuts], [*cuts, n], strict=True):
            part = slice(a, b)
            action = d.update(cell[part], t[part], t[part], np.full(b - a, 2.0), np.ones(b - a))
            out += d.shown(cell[part], t[part], action, severity[part]).tolist()
        return out

    whole = shown([])
    assert shown(sorted(data.draw(st.sets(st.integers(0, n))))) == whole
    assert all(a >= b for a, b in zip(whole, told, strict=True))
