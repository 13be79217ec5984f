"""What the broker shows of us: alarms that are over are removed after a connect, and being unheard is said."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchkeeper.config.schema import Topics
from watchkeeper.daemon.outputs.readback import echo as echo_module
from watchkeeper.daemon.outputs.readback.echo import UNKNOWN_S, Echo
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event

TOPIC = "watchkeeper/alarm/silence/quiet"
HELLO = b'{"state":"online"}'


def alarm(name: str, state: str = "raised") -> AlarmEvent:
    event = {
        "id": f"{name:0<16}", "kind": "silence", "state": state, "severity": "warning", "subjects": [name],
        "t": 5.0, "t_onset": 1.0, "t_raised": 5.0, "t_cleared": 6.0 if state == "cleared" else None, "score": 2.0,
        "threshold": 1.0, "evidence": {}, "diagnosis": None,
    }  # fmt: skip
    return msgspec.convert(event, AlarmEvent)


def topic(name: str) -> str:
    return f"watchkeeper/alarm/silence/{name}"


class Shown:
    """A sink that shows `up` and has told the ends of `over`; notes what is removed."""

    places = ("watchkeeper/alarm/", "watchkeeper/incident/")

    def __init__(self, up: str = "", over: str = "") -> None:
        self.up = {topic(name): alarm(name).id for name in up}
        self.over = {alarm(name).id for name in over}
        self.removed: list[tuple[str, bool]] = []

    def shown(self) -> dict[str, str]:
        return self.up

    def is_over(self, alarm_id: str) -> bool:
        return alarm_id in self.over

    def remove(self, where: str, event: AlarmEvent | None) -> None:
        self.removed.append((where, event is not None))


class Clock:
    def __init__(self, showing: Shown, topics: Topics | None = None) -> None:
        self.now_s = 100.0
        self.received = 0
        self.echo = Echo(topics or Topics(), "watchkeeper", lambda: self.received, now=lambda: self.now_s)
        self.echo.showing = [showing]


def test_what_is_retained_and_not_active_is_removed_once_everything_retained_has_come() -> None:
    sink = Shown(up="a", over="c")
    clock = Clock(sink)
    echo = clock.echo
    # retained messages may come before we know that we are connected
    echo.put(topic("a"), encode_event(alarm("a")))
    echo.connected(HELLO)
    echo.put(topic("b"), msgspec.msgpack.encode(alarm("b")))
    echo.put(topic("c"), encode_event(alarm("c")))
    echo.put(topic("d"), b"what is this?")
    echo.put("watchkeeper/incident/0123", encode_event(alarm("e")))
    echo.put("watchkeeper/status", b'{"state":"offline"}')
    assert sink.removed == []
    echo.put("watchkeeper/status", HELLO)
    # the end of c was told before; d is no alarm that could end
    assert sink.removed == [(topic("c"), False), (topic("d"), False)]
    # of b and the incident nobody has heard: we may be about to raise them
    clock.now_s += UNKNOWN_S / 2
    echo.end_unknown()
    assert len(sink.removed) == 2
    clock.now_s += UNKNOWN_S / 2
    echo.end_unknown()
    assert sink.removed[2:] == [(topic("b"), True), ("watchkeeper/incident/0123", True)]
    assert echo.removed == 4
    # from then on our own words do not matter, until the next connection
    echo.put(topic("x"), encode_event(alarm("x")))
    echo.disconnected()
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    assert echo.removed == 4


def test_an_alarm_that_comes_and_goes_meanwhile_is_no_ghost() -> None:
    sink = Shown()
    echo = Clock(sink).echo
    echo.connected(HELLO)
    for name, gone in (("a", [encode_event(alarm("a", "cleared")), b""]), ("b", [b""])):
        for payload in (encode_event(alarm(name)), *gone):
            echo.put(topic(name), payload)
    # of this one the empty message is on its way
    echo.posted(topic("c"), b"", asyncio.Future(loop=asyncio.new_event_loop()))
    echo.put(topic("c"), encode_event(alarm("c", "cleared")))
    echo.put("watchkeeper/status", HELLO)
    assert sink.removed == []


def test_an_alarm_that_is_raised_again_in_time_is_not_ended() -> None:
    sink = Shown()
    clock = Clock(sink)
    echo = clock.echo
    echo.put(topic("a"), encode_event(alarm("a")))
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    sink.up = {topic("a"): alarm("a").id}
    clock.now_s += UNKNOWN_S
    echo.end_unknown()
    assert sink.removed == []


def test_an_alarm_that_another_one_has_replaced_is_ended() -> None:
    sink = Shown()
    clock = Clock(sink)
    echo = clock.echo
    echo.put(topic("a"), encode_event(alarm("a")))
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    sink.up = {topic("a"): "another"}
    clock.now_s += UNKNOWN_S
    echo.end_unknown()
    assert sink.removed == [(topic("a"), True)]


def test_an_alarm_that_another_one_has_replaced_before_we_looked_is_ended() -> None:
    sink = Shown()
    echo = Clock(sink).echo
    echo.put(topic("a"), encode_event(alarm("a")))
    echo.connected(HELLO)
    sink.up = {topic("a"): "another"}
    echo.put("watchkeeper/status", HELLO)
    assert sink.removed == [(topic("a"), True)]


def test_an_alarm_about_to_be_published_ends_a_strange_one_in_its_place_and_is_itself_no_news_if_it_is_shown() -> None:
    sink = Shown()
    clock = Clock(sink)
    echo = clock.echo
    for name in "ab":
        echo.put(topic(name), encode_event(alarm(name)))
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    assert not echo.shows(topic("c"), alarm("c").id)
    assert not echo.shows(topic("a"), "another")
    assert sink.removed == [(topic("a"), True)]
    assert echo.shows(topic("b"), alarm("b").id)
    # we have raised it, and it has ended since: it is no stranger any more
    clock.now_s += UNKNOWN_S
    echo.end_unknown()
    assert sink.removed == [(topic("a"), True)]


def test_an_end_that_is_still_retained_was_heard_and_is_taken_away() -> None:
    sink = Shown(up="a")
    echo = Clock(sink).echo
    for name in ("a", "b", "c"):
        echo.put(topic(name), encode_event(alarm(name, "cleared")))
    echo.put(topic("c"), b"")
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    assert [found for found in sink.removed if found[0] != topic("a")] == [(topic("b"), False)]


def test_the_note_that_the_broker_had_is_handed_on_with_what_it_shows() -> None:
    class Noting(Shown):
        heard: tuple[bytes, dict[str, str]] | None = None

        def told(self, note: bytes, retained: dict[str, str]) -> None:
            self.heard = note, retained

        def resume(self) -> None:
            assert self.heard is not None
            self.strange = echo.shows(topic("b"), alarm("b").id)

    sink = Noting(up="a")
    echo = Clock(sink).echo
    echo.put("watchkeeper/instance/watchkeeper/told", b"first")
    for name in ("a", "b"):
        echo.put(topic(name), encode_event(alarm(name)))
    echo.connected(HELLO)
    assert sink.heard is None
    echo.put("watchkeeper/status", HELLO)
    assert sink.heard == (b"first", {topic(name): alarm(name).id for name in ("a", "b")})
    # when events may go out, those of a run that we know nothing of are known to be shown already
    assert sink.strange
    echo.disconnected()
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    assert sink.heard == (b"", {})


def test_where_another_daemon_publishes_only_what_our_journal_knows_is_removed() -> None:
    sink = Shown(over="c")
    clock = Clock(sink)
    echo = clock.echo
    echo.connected(HELLO)
    echo.put(echo.instance, HELLO)
    echo.put("watchkeeper/instance/other", HELLO)
    for name in "bc":
        echo.put(topic(name), encode_event(alarm(name)))
    echo.put(topic("d"), b"what is this?")
    echo.put("watchkeeper/status", HELLO)
    clock.now_s += UNKNOWN_S
    echo.end_unknown()
    assert sink.removed == [(topic("c"), False)]


def test_not_being_heard_is_said_and_a_backlog_is_no_reason_to_say_it() -> None:
    clock = Clock(Shown())
    echo = clock.echo
    assert echo.health() == []
    echo.connected(HELLO)
    for _ in range(5):
        clock.now_s += 4.0
        clock.received += 1000
        assert echo.health() == []
    clock.now_s += echo_module.HEARD_S
    assert echo.health() == ["connected, but not heard: what we publish on watchkeeper/status does not come back"]
    echo.put("watchkeeper/status", HELLO)
    assert echo.health() == []
    echo.disconnected()
    echo.connected(HELLO)
    # messages that never stop are no excuse for ever
    for _ in range(70):
        clock.now_s += 1.0
        clock.received += 1
        said = echo.health()
    assert said
    echo.disconnected()
    assert echo.health() == []


def test_once_unheard_telemetry_that_arrives_does_not_make_us_heard() -> None:
    clock = Clock(Shown())
    echo = clock.echo
    echo.connected(HELLO)
    clock.now_s += echo_module.HEARD_S
    assert echo.health()
    clock.received += 1
    assert echo.health()
    echo.put("watchkeeper/status", HELLO)
    assert echo.health() == []


def test_an_alarm_that_is_acknowledged_and_does_not_come_back_is_said_until_it_does() -> None:
    async def main() -> None:
        clock = Clock(Shown())
        echo = clock.echo
        echo.connected(HELLO)
        echo.put("watchkeeper/status", HELLO)
        done = asyncio.get_running_loop().create_future()
        echo.posted(TOPIC, b"1", done)
        done.set_result(True)
        await asyncio.sleep(0)
        assert echo.health() == []
        clock.now_s += echo_module.HEARD_S
        said = [f"connected, but not heard: what we publish on {TOPIC} does not come back"]
        assert echo.health() == said
        clock.received += 1
        assert echo.health() == said
        echo.put(TOPIC, b"1")
        assert echo.health() == []

    asyncio.run(main())


def test_what_is_retained_on_topics_that_we_may_read_only_later_is_looked_at_then() -> None:
    sink, blind, now_s = Shown(), True, 0.0
    echo = Echo(Topics(), "watchkeeper", lambda: 0, now=lambda: now_s, half_blind=lambda: blind)
    echo.showing = [sink]
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    # the subscription is granted: what is retained comes, and then the transport says that it is as good as new
    echo.put(topic("b"), encode_event(alarm("b")))
    blind = False
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    now_s += UNKNOWN_S
    echo.end_unknown()
    assert sink.removed == [(topic("b"), True)]
    # the same without anything to see: the greeting is heard all the same
    echo.connected(HELLO)
    echo.put("watchkeeper/status", HELLO)
    assert echo.health() == []


def test_an_end_of_ours_on_its_way_is_no_ghost() -> None:
    async def main() -> None:
        sink = Shown(over="a")
        echo = Clock(sink).echo
        echo.put(topic("a"), encode_event(alarm("a")))
        echo.connected(HELLO)
        echo.posted(topic("a"), b"", asyncio.get_running_loop().create_future())
        echo.put("watchkeeper/status", HELLO)
        assert sink.removed == []

    asyncio.run(main())


def test_what_is_looked_at_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo_module, "SEEN_MAX", 3)
    sink = Shown()
    clock = Clock(sink)
    echo = clock.echo
    for connection in range(2):
        echo.connected(HELLO)
        for name in "abcde"[3 * connection :]:
            echo.put(topic(name), encode_event(alarm(name)))
        echo.put("watchkeeper/status", HELLO)
        clock.now_s += UNKNOWN_S
        echo.end_unknown()
        echo.disconnected()
    assert [where for where, _ in sink.removed] == [topic(name) for name in "abcde"]


def test_input_below_the_prefix_of_our_output_is_input() -> None:
    echo = Clock(Shown(), Topics(telemetry="watchkeeper/in", output="watchkeeper")).echo
    assert not echo.is_ours("watchkeeper/in/gps/a")
    assert echo.is_ours("watchkeeper/alarm/silence/a")
    assert not echo.is_ours("telemetry/gps/a")


def raise_silence(listener: Any) -> None:
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)


def test_after_a_lost_journal_the_broker_forgets_what_nobody_follows_and_its_end_is_told(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, tmp_path: Path
) -> None:
    app = start(configure(broker.url))
    raise_silence(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    app.stop()
    assert listener.retained() == {TOPIC: raised}
    shutil.rmtree(tmp_path / "state")
    again = start(configure(broker.url))
    wait_for(lambda: listener.retained() == {})
    [cleared] = wait_for(lambda: listener.alarms("cleared"))
    assert (cleared["id"], cleared["ended"]) == (raised["id"], "not_resumed")
    assert "watchkeeper_ghosts_removed_total 1.0" in again.get("/metrics")[1]


def test_a_broker_that_comes_back_with_an_older_state_shows_no_ghost(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    app = start(configure(broker.url))
    raise_silence(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    listener.fixes("quiet busy", 116, 120)
    wait_for(lambda: listener.retained() == {})
    app.stop()
    # as after the broker's restart with what it had saved before the end
    listener._client.publish(TOPIC, json.dumps(raised), qos=1, retain=True).wait_for_publish(10)
    assert listener.retained() != {}
    start(configure(broker.url))
    wait_for(lambda: listener.retained() == {})
    listener.catch_up()
    # the end was told when it happened, and once is enough
    assert len(listener.alarms("cleared")) == 1
