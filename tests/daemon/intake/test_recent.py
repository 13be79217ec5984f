"""Messages that a broker delivers a second time are recognised, for as long as it may do so."""

from __future__ import annotations

from watchkeeper.daemon.intake import recent as recent_module
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.intake.recent import Recent


def test_what_came_before_the_connection_was_lost_is_known_by_topic_and_payload() -> None:
    recent = Recent(size=4)
    for payload in (b"1", b"2", b"3", b"4", b"5"):
        recent.note("a", payload)
    assert not recent.looking
    assert not recent.is_repeat("a", b"5")
    recent.look()
    assert [recent.is_repeat("a", bytes([c])) for c in b"12345"] == [False, True, True, True, True]
    assert not recent.is_repeat("b", b"5"), "two vehicles may say the same"


def test_looking_ends_when_nothing_known_comes_any_more() -> None:
    recent = Recent()
    recent.note("a", b"old")
    recent.look()
    for i in range(recent_module.UNKNOWN - 1):
        assert not recent.is_repeat("a", str(i).encode())
    assert recent.is_repeat("a", b"old")
    for i in range(recent_module.UNKNOWN):
        assert recent.looking
        assert not recent.is_repeat("a", str(i).encode())
    assert not recent.looking


def test_a_message_that_comes_again_is_skipped_counted_and_acknowledged() -> None:
    intake = Intake(100)
    skipped: list[int] = []
    intake.skip = lambda: skipped.append(intake.repeated)
    intake.put("t", b"1")
    intake.put("t", b"1")
    assert len(intake) == 2, "on one connection a broker repeats nothing by itself"
    intake.recent.look()
    intake.put("t", b"1")
    intake.put("t", b"2")
    assert (len(intake), intake.repeated, skipped) == (3, 1, [1])
    assert intake.drops["unknown", "duplicate"] == 1
