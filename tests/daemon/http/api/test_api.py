"""The API over a recorded log: what it says of the past is what the alarm events and the pictures said at the time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.scores import Scores
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.catalog import kinds

from api_rig import Client, Rig


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = Rig(tmp_path_factory.mktemp("api"))
    yield made
    made.close()


def test_every_alarm_is_listed_with_its_last_event_byte_by_byte(rig: Rig) -> None:
    last = {event.id: event for event in rig.events}
    page = rig.get("/alarms?limit=1000")
    assert page["total"] == len(last) > 1
    assert {row["id"]: row["event"] for row in page["alarms"]} == {
        name: msgspec.json.decode(encode_event(event)) for name, event in last.items()
    }


def test_the_life_of_an_alarm_is_all_of_its_events_in_order(rig: Rig) -> None:
    name = rig.events[0].id
    life = rig.get(f"/alarms/{name}")
    own = [msgspec.json.decode(encode_event(event)) for event in rig.events if event.id == name]
    assert life["events"] == own
    assert len(own) > 2


def test_at_a_moment_an_alarm_has_the_evidence_of_then(rig: Rig) -> None:
    for then in rig.events[:: max(len(rig.events) // 8, 1)]:
        page = rig.get(f"/alarms?at={then.t}&limit=1000")
        known: dict[str, Any] = {}
        for event in rig.events:
            if event.t <= then.t:
                known[event.id] = event
        active = {name: event for name, event in known.items() if event.state != "cleared"}
        assert {row["id"]: row["event"] for row in page["alarms"]} == {
            name: msgspec.json.decode(encode_event(event)) for name, event in active.items()
        }


def test_filters_and_pages_lose_and_repeat_nothing(rig: Rig) -> None:
    everything = [row["id"] for row in rig.get("/alarms?limit=1000&order=asc")["alarms"]]
    for sort in ("t_raised", "t_last", "severity", "kind", "score"):
        seen, cursor = [], ""
        while True:
            page = rig.get(f"/alarms?limit=1&sort={sort}{cursor}")
            seen += [row["id"] for row in page["alarms"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        assert sorted(seen) == sorted(everything)
    subject = rig.events[0].subjects[0]
    assert {row["id"] for row in rig.get(f"/alarms?subject={subject}")["alarms"]} == {
        event.id for event in rig.events if subject in event.subjects
    }
    assert rig.get("/alarms?kind=los")["total"] == len({event.id for event in rig.events if event.kind == "los"})
    first = rig.get("/alarms?limit=1")["alarms"][0]
    found = rig.get(f"/alarms?text={quote(first['say'][:20].upper())}")
    assert first["id"] in {row["id"] for row in found["alarms"]}
    assert rig.get("/alarms?text=nothing%20of%20the%20sort")["total"] == 0
    ended = {event.id for event in rig.events if event.state == "cleared"}
    assert rig.get("/alarms?active=false")["total"] == len(ended)


def test_a_table_to_download_has_a_row_for_each_alarm(rig: Rig) -> None:
    async def ask(client: Client) -> list[tuple[int, bytes, Mapping[str, str]]]:
        accepted = await client.ask("GET", "/alarms", headers={"Accept": "text/csv"})
        return [await client.ask("GET", "/alarms?format=csv"), accepted]

    for status, body, headers in rig.visit(ask):
        assert status == 200
        assert headers["Content-Type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(body.decode())))
        assert {row["id"] for row in rows} == {event.id for event in rig.events}
        assert all(row["say"] for row in rows)


def test_vehicles_are_listed_now_and_then(rig: Rig) -> None:
    now = rig.get("/vehicles")
    assert {row["id"] for row in now["vehicles"]} == set(rig.replay.pipeline.fleet.slot_of)
    then = rig.get(f"/vehicles?t={rig.events[0].t}")
    assert {row["id"] for row in then["vehicles"]} == {row["id"] for row in now["vehicles"]}
    assert sum(row["alarms"] for row in then["vehicles"]) == 2
    moved = {row["id"]: row["lon"] for row in now["vehicles"]}
    assert all(abs(moved[row["id"]] - row["lon"]) > 0.01 for row in then["vehicles"])


def test_a_track_is_where_the_vehicle_was(rig: Rig) -> None:
    name = rig.events[0].subjects[0]
    track = rig.get(f"/vehicles/{name}/track?t0=0&step=0")
    assert len(track["t"]) == len(track["lat"]) > 140
    assert track["t"] == sorted(set(track["t"]))
    here = next(row for row in rig.get("/vehicles")["vehicles"] if row["id"] == name)
    # sampled every 5 s, a second apart at most from the end for one with an alarm
    assert track["t"][-1] >= here["t"] - 5.0
    scores = rig.get(f"/vehicles/{name}/scores?t0=0")
    assert scores["columns"].keys() <= kinds().keys()
    assert all(0 <= value < 1 for value in scores["columns"]["kinematics"])
    coarse = rig.get(f"/vehicles/{name}/track?t0=0&step=60")
    assert len(coarse["t"]) <= 13


def test_the_picture_of_a_moment_is_in_the_pages_own_form(rig: Rig) -> None:
    # the pair is alarmed at its first report, between two samples
    async def ask(client: Client) -> bytes:
        return (await client.ask("GET", f"/picture?t={rig.events[0].t}"))[1]

    header, columns = picture.decode(rig.visit(ask))
    scores = Scores(rig.replay.pipeline.fleet.capacity)
    live = picture.vehicles(rig.replay.pipeline.fleet, scores, 0.0, enu=False) | picture.pairs(scores)
    assert {name: column.dtype for name, column in columns.items()} == {name: c.dtype for name, c in live.items()}
    assert header["roster"]["slots"] == columns["slot"].tolist()
    assert len(columns["pair_a"]) >= 1
    pair = {
        header["roster"]["ids"][header["roster"]["slots"].index(int(columns[side][0]))] for side in ("pair_a", "pair_b")
    }
    assert pair == set(rig.events[0].subjects)


def test_the_timeline_counts_every_alarm_once(rig: Rig) -> None:
    line = rig.get("/timeline?steps=7")
    assert sum(step["alarms"] for step in line["steps"]) == len({event.id for event in rig.events})
    (era,) = line["eras"]
    assert era["t_first"] <= rig.events[0].t <= era["t_last"]


def test_an_answer_that_is_known_is_not_sent_again(rig: Rig) -> None:
    async def ask(client: Client) -> tuple[int, bytes]:
        _, _, headers = await client.ask("GET", "/kinds")
        assert headers["Content-Encoding"] in ("gzip", "deflate")
        status, body, _ = await client.ask("GET", "/kinds", headers={"If-None-Match": headers["ETag"]})
        return status, body

    assert rig.visit(ask) == (304, b"")


@pytest.mark.parametrize(
    ("path", "status", "code", "field"),
    [
        ("/alarms?limit=0", 400, "bad_parameter", "limit"),
        ("/alarms?severity=loud", 400, "bad_parameter", "severity"),
        ("/alarms?t0=nan", 400, "bad_parameter", "t0"),
        ("/alarms?cursor=rubbish", 400, "bad_parameter", "cursor"),
        ("/alarms?colour=red", 400, "unknown_parameter", "colour"),
        ("/alarms/0000", 404, "not_found", ""),
        ("/vehicles/nobody", 404, "not_found", ""),
        ("/vehicles/nobody/track", 404, "not_found", ""),
        ("/nothing", 404, "not_found", ""),
        ("/replay", 409, "not_a_replay", ""),
    ],
)
def test_a_refusal_is_one_form_with_word_sentence_and_field(
    rig: Rig, path: str, status: int, code: str, field: str
) -> None:
    async def ask(client: Client) -> tuple[int, Any]:
        return await client.json("GET", path)

    found, problem = rig.visit(ask)
    assert (found, problem["code"], problem["field"]) == (status, code, field)
    assert problem["message"]
    if path == "/nothing":
        assert "/api/v1/openapi.json" in problem["message"]


def test_other_sites_are_kept_out(rig: Rig) -> None:
    async def ask(client: Client) -> list[int]:
        foreign = [{"Origin": "https://evil.example"}, {"Host": "evil.example"}]
        return [(await client.ask("GET", "/alarms", headers=headers))[0] for headers in foreign]

    assert rig.visit(ask) == [403, 403]


def test_what_is_said_of_the_watch_and_its_words(rig: Rig) -> None:
    assert rig.get("/ready")["ready"] is True
    assert {kind["name"] for kind in rig.get("/kinds")["kinds"]} == set(kinds())
    assert set(rig.get("/glossary")["kinds"]) == set(kinds())
    assert rig.get("/watch")["detectors"]
    name = rig.events[0].subjects[0]
    assert rig.get(f"/vehicles/{name}/watch")["changes"]
    assert rig.get(f"/vehicles/{name}")["alarms"] >= 1
