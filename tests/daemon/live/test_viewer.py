"""A page that watches: alarms in order, the newest picture only, and never more waiting than the limit."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.live.viewer import NEWS_AT_ONCE, NEWS_WAITING, Picture, Viewer, parse_wish


@dataclass
class Stage:
    """What the live view has to show: numbers instead of alarms and pictures."""

    picture: Picture | None = None
    version: int = 0
    told: list[int] = field(default_factory=list)

    def everything(self) -> bytes:
        return msgspec.json.encode({"type": "alarms", "alarms": self.told})

    def roster(self, since: int | None) -> tuple[bytes, int]:
        if since == self.version:
            return b"", self.version
        return msgspec.json.encode({"type": "roster", "reset": since is None}), self.version

    def vehicle(self, name: str) -> bytes:
        return msgspec.json.encode({"type": "vehicle", "id": name})

    def network(self) -> bytes:
        return b'{"type":"network"}'

    def tell(self, viewer: Viewer, number: int) -> None:
        self.told.append(number)
        viewer.tell(str(number).encode())

    def draw(self, viewer: Viewer, number: int, era: int = 0) -> None:
        self.picture = Picture(number, era, b"WKP1 %d" % number)
        viewer.offer()


def everything(viewer: Viewer) -> list[bytes]:
    found = []
    while (message := viewer.next()) is not None:
        found.append(message)
    return found


def types(messages: list[bytes]) -> list[str]:
    return [msgspec.json.decode(m)["type"] if m.startswith(b"{") else m.decode() for m in messages]


def test_whoever_comes_gets_all_alarms_then_names_then_the_picture() -> None:
    stage = Stage(told=[1, 2])
    viewer = Viewer(stage)
    stage.draw(viewer, 7)
    assert types(everything(viewer)) == ["alarms", "roster", "WKP1 7"]
    assert everything(viewer) == []


def test_of_several_pictures_a_slow_page_gets_the_newest() -> None:
    stage = Stage()
    viewer = Viewer(stage)
    everything(viewer)
    for number in range(1, 50):
        stage.draw(viewer, number)
    assert types(everything(viewer)) == ["roster", "WKP1 49"]


def test_alarms_overtake_pictures() -> None:
    stage = Stage()
    viewer = Viewer(stage)
    everything(viewer)
    stage.draw(viewer, 1)
    stage.tell(viewer, 5)
    assert types(everything(viewer)) == ["news", "roster", "WKP1 1"]


def test_an_era_begins_with_all_names() -> None:
    stage = Stage()
    viewer = Viewer(stage)
    stage.draw(viewer, 1)
    everything(viewer)
    stage.draw(viewer, 2)
    assert types(everything(viewer)) == ["WKP1 2"]
    stage.draw(viewer, 3, era=1)
    (roster, picture) = everything(viewer)
    assert msgspec.json.decode(roster)["reset"] is True
    assert picture == b"WKP1 3"


def test_a_page_that_takes_nothing_costs_a_bounded_amount_and_then_gets_everything() -> None:
    stage = Stage()
    viewer = Viewer(stage)
    everything(viewer)
    most = 0
    for number in range(100_000):
        stage.tell(viewer, number)
        stage.draw(viewer, number + 1)
        most = max(most, viewer.waiting)
    assert most == NEWS_WAITING
    assert viewer.resyncs == 1
    first, *rest = everything(viewer)
    assert msgspec.json.decode(first)["alarms"] == list(range(100_000))
    assert types(rest) == ["roster", "WKP1 100000"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.integers(1, 400).map(lambda n: ("tell", n)), st.integers(0, 9).map(lambda n: ("take", n))))
)
def test_whoever_follows_knows_every_alarm_in_order(steps: list[tuple[str, int]]) -> None:
    """However often the page looks: a resync and the news after it add up to all that was told."""
    stage = Stage()
    viewer = Viewer(stage)
    known: list[int] = []
    counter = 0

    def take(message: bytes | None) -> None:
        if message is None:
            return
        found = msgspec.json.decode(message)
        if found["type"] == "alarms":
            known[:] = found["alarms"]
        else:
            assert len(found["news"]) <= NEWS_AT_ONCE
            known.extend(found["news"])

    for what, n in steps:
        for _ in range(n):
            if what == "tell":
                counter += 1
                stage.tell(viewer, counter)
            else:
                take(viewer.next())
        assert viewer.waiting <= NEWS_WAITING
    for message in everything(viewer):
        take(message)
    assert known == stage.told


def test_a_page_gets_what_it_asks_for_with_each_picture() -> None:
    stage = Stage()
    viewer = Viewer(stage)
    stage.draw(viewer, 1)
    everything(viewer)
    viewer.ask(parse_wish('{"select": "uav-1", "network": true}'))
    assert sorted(types(everything(viewer))) == ["network", "vehicle"]
    stage.draw(viewer, 2)
    assert sorted(types(everything(viewer))) == ["WKP1 2", "network", "vehicle"]
    viewer.ask(parse_wish('{"select": null, "network": false}'))
    stage.draw(viewer, 3)
    assert types(everything(viewer)) == ["WKP1 3"]


def test_nonsense_from_a_page_is_ignored() -> None:
    viewer = Viewer(Stage())
    everything(viewer)
    for text in ("", "[1]", "{", '{"select": 7, "network": "yes"}', '"x"', '{"other": 1}'):
        viewer.ask(parse_wish(text))
    assert viewer.selected is None
    assert not viewer.wants_network
