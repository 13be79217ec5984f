"""The outbox and the dead letters: bounded, and nothing that matters is lost."""

from __future__ import annotations

import base64
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.intake.deadletter import PAYLOAD_BYTES, PER_SECOND, DeadLetters, encode
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent
from watchkeeper.streams.messages import Drop


def letter(number: int, name: str, state: str, subject: str | None = None) -> Letter:
    event = AlarmEvent(
        id=name, kind="silence", state=state, severity="caution", subjects=(subject or name,), t=float(number),
        t_onset=0.0, t_raised=0.0, t_cleared=None, score=2.0, threshold=1.0, evidence={},
    )  # fmt: skip
    return Letter(event, number)


def drained(outbox: Outbox) -> list[Letter]:
    return [outbox.take() for _ in range(len(outbox))]


def test_what_is_said_again_goes_first_and_replaces_what_was_to_be_said_again_before() -> None:
    outbox = Outbox(100)
    outbox.put(letter(7, "new", RAISED), set())
    again = [Letter(letter(0, name, UPDATED).event) for name in ("a", "b")]
    outbox.repeat(again)
    outbox.repeat(again[1:])
    assert [x.event.id for x in drained(outbox)] == ["b", "new"]


@settings(max_examples=200, deadline=None)
@given(lives=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.booleans()), max_size=60), known=st.booleans())
def test_a_full_outbox_never_forgets_how_an_alarm_ended_or_that_it_is_up(
    lives: list[tuple[int, int, bool]], known: bool
) -> None:
    outbox = Outbox(24)
    number = 0
    final: dict[str, str] = {}
    shown = {f"{who}-0" for who in range(6)} if known else set()
    generation = dict.fromkeys(range(6), 0)
    for who, updates, ends in lives:
        name = f"{who}-{generation[who]}"
        for state in [RAISED] * (name not in final and name not in shown) + [UPDATED] * updates + [CLEARED] * ends:
            number += 1
            outbox.put(letter(number, name, state), shown)
            final[name] = state
        generation[who] += ends
    assert len(outbox) <= 24
    sent = drained(outbox)
    numbers = [x.number for x in sent if x.number is not None]
    assert numbers == sorted(numbers)
    assert len(sent) + outbox.dropped == number
    told = {x.event.id: x.event.state for x in sent}
    for name, state in final.items():
        if state != CLEARED or name in shown:
            assert told[name] == state, name
        else:
            assert told.get(name, CLEARED) == CLEARED


def test_dead_letters_are_counted_all_and_shown_at_a_bounded_rate() -> None:
    now = [0.0]
    letters = DeadLetters(DEFAULT.topics, now=lambda: now[0])
    for _ in range(10_000):
        letters.refused("telemetry/gps/d1", Drop.SYNTAX, b"{")
    assert len(letters.take()) == PER_SECOND
    assert letters.suppressed == 10_000 - PER_SECOND
    now[0] = 1.0
    letters.refused("nonsense/gps/d1", Drop.TOPIC, b"{")
    assert len(letters.take()) == 1
    assert letters.counts == {("gps", Drop.SYNTAX): 10_000, ("unknown", Drop.TOPIC): 1}


def test_nobody_fetching_dead_letters_costs_no_memory() -> None:
    now = [0.0]
    letters = DeadLetters(DEFAULT.topics, now=lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        for _ in range(PER_SECOND):
            letters.refused("telemetry/gps/d1", Drop.SYNTAX, b"{")
    kept = letters.take()
    assert len(kept) == 2 * PER_SECOND
    assert len(kept) + letters.suppressed == 100 * PER_SECOND


@given(topic=st.text(max_size=400), payload=st.binary(max_size=600) | st.text(max_size=600).map(str.encode))
def test_a_dead_letter_shows_how_the_payload_began(topic: str, payload: bytes) -> None:
    told = json.loads(encode(topic, Drop.TYPE, payload))
    assert told["size"] == len(payload)
    assert topic.startswith(told["topic"])
    if told["encoding"] == "base64":
        assert base64.b64decode(told["payload"]) == payload[:PAYLOAD_BYTES]
    else:
        start = told["payload"].encode()
        assert payload.startswith(start)
        # at most the part of one character is missing
        assert len(start) > min(len(payload), PAYLOAD_BYTES) - 4
