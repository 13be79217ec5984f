"""The pump around an outage, with a clock that the test steps: who waits for whom, and who was silent."""

from __future__ import annotations

import pytest
from pumping import Setup, in_loop

from watchkeeper.daemon.intake import pump as pump_module

# not on the clock of the first test
pytestmark = pytest.mark.usefixtures("_compiled")


@pytest.mark.parametrize(
    ("outage_s", "kept", "next_t", "silent"),
    [
        (30.0, True, 110.0, True),  # everything was kept: the stream goes on where it was
        (30.0, True, 140.0, False),  # the session was kept, but what was sent to it with QoS 0 was not
        (30.0, False, 140.0, False),
        (1.0, True, 140.0, True),  # a short break does not explain a long silence
    ],
)
def test_only_what_nobody_heard_is_an_absence(outage_s: float, kept: bool, next_t: float, silent: bool) -> None:
    setup = Setup()
    steps: list[str] = []
    setup.pump.on_step = lambda what, _t, _vehicle="": steps.append(what)

    async def work() -> None:
        for t in range(10):
            setup.fix("a", 100.0 + t)
            setup.fix("b", 100.0 + t)
        # one that has arrived before the break, and is judged after it
        setup.fix("a", 110.0)
        setup.pump.returned(outage_s, kept=kept)
        for t in range(20 if next_t > 111.0 else 30):
            setup.fix("a", next_t + t)
        await setup.settle()

    in_loop(work)
    raised = [e.subjects for e, _ in setup.events if e.kind == "silence" and e.state == "raised" and e.t < 141.0]
    assert (("b",) in raised) == silent
    assert steps.count("away") == (not silent)
    assert steps[0] == "fed", "what arrived before the break is a slice of its own"


def test_after_an_outage_the_first_sender_that_is_back_does_not_make_the_others_late() -> None:
    setup = Setup()
    steps: list[str] = []
    setup.pump.on_step = lambda what, _t, _vehicle="": steps.append(what)
    names = ("a", "b", "c")

    async def work() -> None:
        for t in range(20):
            for name in names:
                setup.fix(name, 100.0 + t)
        await setup.settle()
        setup.pump.left()
        # one by one, each with all that it has saved up; the last of them when we are connected already
        for name in names:
            if name == names[-1]:
                setup.pump.returned(20.0, kept=True)
            for t in range(20, 40):
                setup.fix(name, 100.0 + t)
            await setup.settle()
        assert steps == ["fed", "paused"], "nothing goes in before all had time to come back"
        assert setup.pump.health() == ["60 messages wait for senders that come back after an outage"]
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()
        setup.fix("a", 140.0)
        await setup.settle()

    in_loop(work)
    assert steps == ["fed", "paused", "settled", "fed"]
    assert setup.pump.health() == []
    assert setup.pipeline.samples["gps"] == 121
    assert not setup.pipeline.drops
    assert {event.kind for event, _ in setup.events} <= {"watch"}


def test_a_connection_that_is_never_complete_does_not_make_us_deaf() -> None:
    setup = Setup()
    setup.pump.left()

    async def work() -> None:
        for t in range(40):
            setup.fix("a", 100.0 + t)
            await setup.settle()
            assert len(setup.intake) <= 7, "each waits for seconds, not until the connection is complete"
            setup.now_s += 0.5 * pump_module.SETTLE_S

    in_loop(work)
    assert setup.pipeline.samples["gps"] >= 33


def test_a_line_that_falls_silent_in_the_middle_of_a_backlog_is_cut_off() -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.now_s += 5.0
        # nobody has said yet that we are back, and then nothing comes any more
        setup.saved("ab", 10, 15)
        await setup.settle()
        setup.now_s += 2.5 * pump_module.SETTLE_S
        await setup.settle()
        assert len(setup.intake) == 10
        setup.saved("c", 10, 15)
        await setup.settle()
        setup.pump.returned(10.0, kept=True)
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 45
    assert not setup.pipeline.drops


def test_a_backlog_that_waits_for_our_disk_is_waited_for() -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.now_s += 5.0
        setup.pump.returned(5.0, kept=True)
        for name in "abc":
            setup.saved(name, 10, 15)
            # the broker sends no more before we acknowledge, and we do not before it is on disk
            setup.pump.is_late = lambda: True
            setup.now_s += 1.5 * pump_module.SETTLE_S
            await setup.settle()
            assert "wait for senders" in setup.pump.health()[0]
            setup.pump.is_late = lambda: False
            setup.pump.stalled()
            await setup.settle()
        assert len(setup.intake) == 15
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 45
    assert not setup.pipeline.drops


def test_a_second_outage_while_senders_come_back_gives_them_their_time_again() -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        for first, last in ((10, 12), (12, 20)):
            setup.pump.left()
            setup.now_s += 3.0 * pump_module.SETTLE_S
            setup.pump.returned(3.0 * pump_module.SETTLE_S, kept=True)
            for name in "abc":
                setup.saved(name, first, last)
                await setup.settle()
        assert len(setup.intake) == 30
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 60
    assert not setup.pipeline.drops


def test_what_arrives_while_we_are_still_away_is_a_backlog_again() -> None:
    setup = Setup()
    steps: list[str] = []
    setup.pump.on_step = lambda what, _t, _vehicle="": steps.append(what)

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.fix("a", 110.0)
        await setup.settle()
        setup.now_s += pump_module.CUT_OFF_S
        await setup.settle()
        assert steps == ["fed", "paused", "settled", "paused"]
        # each with all that it has saved up, before we know that we are back
        setup.saved("cb", 10, 25)
        setup.saved("a", 11, 25)
        await setup.settle()
        setup.pump.returned(15.0, kept=True)
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 75
    assert not setup.pipeline.drops


def test_the_first_of_a_backlog_does_not_go_with_what_waited_for_too_long() -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.fix("b", 110.0)
        setup.now_s += pump_module.CUT_OFF_S
        # we are back: this arrives before we know, at the moment when the other has waited for long enough
        setup.fix("a", 115.0)
        await setup.settle()
        assert len(setup.intake) == 1
        setup.pump.returned(5.0, kept=True)
        setup.saved("bc", 11, 16)
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 42
    assert not setup.pipeline.drops


def test_cut_off_again_in_the_middle_of_a_backlog_its_rest_is_waited_for() -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.now_s += 5.0
        setup.pump.returned(5.0, kept=True)
        setup.saved("a", 10, 15)
        await setup.settle()
        setup.pump.left()
        setup.now_s += 2.5 * pump_module.SETTLE_S
        await setup.settle()
        assert len(setup.intake) == 5, "nobody else could come back meanwhile"
        # the rest comes before we know that we are back
        setup.saved("cb", 10, 20)
        setup.saved("a", 15, 20)
        await setup.settle()
        setup.pump.returned(5.0, kept=True)
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 60
    assert not setup.pipeline.drops


@pytest.mark.parametrize("flap_s", [1.0, 3.0, 1000.0])
def test_a_link_that_comes_and_goes_does_not_make_us_deaf(flap_s: float) -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        until_s = setup.now_s + pump_module.CUT_OFF_S
        setup.pump.left()
        setup.pump.returned(5.0, kept=True)
        setup.fix("a", 110.0)
        while setup.now_s <= until_s:
            setup.pump.left()
            await setup.settle()
            setup.now_s += min(flap_s, until_s - setup.now_s + 0.1)
            setup.pump.returned(flap_s, kept=True)
            setup.pump.left()
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 31


@pytest.mark.parametrize("finish", [True, False])
def test_what_waits_at_the_end_goes_on_waiting_in_the_next_run(finish: bool) -> None:
    setup = Setup()

    async def work() -> None:
        await setup.fly()
        setup.pump.left()
        setup.fix("a", 110.0)
        setup.pump.stop(finish=finish)
        await setup.pump.run()

    in_loop(work)
    assert (setup.pipeline.samples["gps"], len(setup.intake)) == ((31, 0) if finish else (30, 1))


@pytest.mark.parametrize("off_s", [40.0, 3600.0, -40.0, -3600.0])
def test_a_clock_that_is_off_in_a_backlog_does_not_take_the_time_of_all_with_it(off_s: float) -> None:
    setup = Setup()

    async def work() -> None:
        for t in range(20):
            for name in "abc":
                setup.fix(name, 100.0 + t)
        await setup.settle()
        setup.pump.left()
        setup.now_s += 20.0
        for name in "abc":
            for t in range(20, 40):
                setup.fix(name, 100.0 + t + (off_s if name == "c" else 0.0))
        setup.pump.returned(20.0, kept=True)
        setup.now_s += pump_module.SETTLE_S
        await setup.settle()
        for t in range(40, 60):
            for name in "ab":
                setup.fix(name, 100.0 + t)
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.clock.t_max == pytest.approx(159.0)
    assert {name for (name, _reason), n in setup.pipeline.drops.items() if n} <= {"gps"}
    assert setup.pipeline.samples["gps"] >= 60 + 40 + 40


def test_nobody_is_silent_or_slow_while_the_broker_waits_for_our_disk() -> None:
    setup = Setup()
    steps: list[str] = []
    setup.pump.on_step = lambda what, _t, _vehicle="": steps.append(what)
    setup.pump.online(True)
    resumed: list[bool] = []
    resume = setup.pump.edge.resume
    setup.pump.edge.resume = lambda: (resumed.append(True), resume())[1]  # type: ignore[method-assign]

    async def work() -> None:
        for t in range(10):
            setup.fix("a", 100.0 + t)
        await setup.settle()
        setup.pump.is_late = lambda: True
        setup.now_s += 60.0
        setup.pump._idle()
        assert "advanced" not in steps
        setup.pump.is_late = lambda: False
        setup.pump.stalled()
        setup.fix("a", 110.0)
        await setup.settle()
        assert steps == ["fed", "stalled", "fed"]
        assert resumed == [True]
        setup.now_s += 60.0
        setup.pump._idle()

    in_loop(work)
    assert steps[-1] == "advanced"
