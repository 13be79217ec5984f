"""What people do over the API: acknowledge, shelve, look at the settings; nothing of it is lost, or says a secret."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from made_events import event

from watchkeeper.config.guests import SETTINGS, build, default, values_of
from watchkeeper.config.loader import load
from watchkeeper.config.section import Setting, columns
from watchkeeper.daemon.http.api.about import without_secrets
from watchkeeper.daemon.live.shelves import Area, Shelf, ShelfList
from watchkeeper.daemon.state.folder import StateFolder

from api_rig import Client, Rig

MARK = "s3cr3t-mark"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = Rig(tmp_path_factory.mktemp("operating"), seconds=900.0, part=0.55)
    assert made.live.watched.active()
    yield made
    made.close()


def test_an_acknowledgement_is_shown_and_kept(rig: Rig) -> None:
    name = rig.live.watched.active()[0].id

    async def ask(client: Client) -> tuple[Any, Any]:
        status, _ = await client.json("POST", f"/alarms/{name}/acknowledge", json={"by": "tower"})
        assert status == 200
        _, life = await client.json("GET", f"/alarms/{name}")
        await client.json("POST", f"/alarms/{name}/acknowledge", json={"by": "tower", "on": False})
        _, after = await client.json("GET", f"/alarms/{name}")
        return life, after

    life, after = rig.visit(ask)
    assert life["alarm"]["acknowledged"]["by"] == "tower"
    assert after["alarm"]["acknowledged"] is None
    assert [ack["given"] for ack in after["acknowledgements"]] == [True, False]


@pytest.mark.parametrize("what", ["alarm", "subjects", "vehicle", "kind"])
def test_a_shelved_alarm_is_shown_as_shelved_until_the_shelf_is_taken_down(rig: Rig, what: str) -> None:
    shown = rig.live.watched.active()[0]

    async def ask(client: Client) -> tuple[Any, Any, Any, Any]:
        wish = {"minutes": 5, "what": what, "reason": "known", "by": "tower"}
        status, shelf = await client.json("POST", f"/alarms/{shown.id}/shelve", json=wish)
        assert status == 201
        _, during = await client.json("GET", "/alarms?active=true")
        _, hidden = await client.json("GET", "/alarms?shelved=true")
        status, _ = await client.json("DELETE", f"/shelves/{shelf['id']}")
        assert status == 204
        _, after = await client.json("GET", "/alarms?active=true")
        return shelf, during, hidden, after

    shelf, during, hidden, after = rig.visit(ask)
    assert {row["shelved"] for row in during["alarms"] if row["id"] == shown.id} == {shelf["id"]}
    assert during["shelved"] >= 1
    assert shown.id in {row["id"] for row in hidden["alarms"]}
    assert after["shelved"] == 0
    # detection has not noticed
    assert shown.id in {active.id for active in rig.live.watched.active()}


def test_a_shelf_names_something_and_expires(rig: Rig) -> None:
    now = [1000.0]
    shelves = ShelfList(lambda _name: (48.0, 11.0), now=lambda: now[0])
    rule = Shelf(id="", t_wall=0.0, t_expires_wall=0.0, area=Area(48.0, 11.0, 1000.0))
    made = shelves.add(rule, 1.0)
    assert shelves.of(event("a", "raised", 1.0, kind="los")) == made.id
    now[0] += 61.0
    assert shelves.of(event("a", "raised", 1.0, kind="los")) is None

    async def ask(client: Client) -> tuple[int, Any]:
        return await client.json("POST", "/shelves", json={"minutes": 5})

    assert rig.visit(ask)[0] == 400


def test_an_area_holds_alarms_about_a_place_in_it_and_no_other() -> None:
    shelves = ShelfList(lambda _name: None)
    rule = Shelf(id="", t_wall=0.0, t_expires_wall=0.0, area=Area(48.0, 11.0, 20_000.0))
    made = shelves.add(rule, 1.0)
    jammed = event("a", "raised", 1.0, kind="gnss_interference")
    here = msgspec.structs.replace(jammed, evidence={"lat": 48.1, "lon": 11.0, "radius_km": 30.0})
    there = msgspec.structs.replace(jammed, evidence={"lat": 49.0, "lon": 11.0, "radius_km": 30.0})
    assert [shelves.of(each) for each in (here, there, jammed)] == [made.id, None, None]


def test_shelves_are_there_after_a_restart_while_they_hold(tmp_path: Path) -> None:
    now = [1000.0]
    rule = Shelf(id="", t_wall=0.0, t_expires_wall=0.0, kind="los")
    state = StateFolder(tmp_path)
    shelves = ShelfList(lambda _name: None, state, lambda: now[0])
    shelves.add(msgspec.structs.replace(rule, reason="short"), 1.0)
    shelves.add(msgspec.structs.replace(rule, reason="long"), 60.0)
    asyncio.run(shelves.written())
    now[0] += 90.0
    again = ShelfList(lambda _name: None, state, lambda: now[0])
    assert [shelf.reason for shelf in again.current()] == ["long"]
    state.release()


# -- settings ---------------------------------------------------------------------------------------------------


def every_setting() -> Iterator[Setting]:
    for setting in SETTINGS.values():
        yield setting
        if setting.table is not None:
            sections = setting.variants().values() if setting.variants is not None else [setting.table]
            yield from (column for section in sections for column in columns(section))


def test_no_secret_of_the_configuration_is_shown() -> None:
    values = values_of(default())
    for key, setting in SETTINGS.items():
        if setting.secret:
            values[key] = MARK
    values["alertmanager.url"] = f"http://user:{MARK}@127.0.0.1:9093"
    values["webhooks"] = ({"name": "x", "url": f"https://hooks.example/services?token={MARK}"},)
    shown = without_secrets(build(values))
    assert MARK not in msgspec.json.encode(shown).decode()
    assert "broker.password" in shown.hidden
    assert set(shown.config) == {key.partition(".")[0] for key in SETTINGS}
    assert load(None, env={}) is not None


def test_a_setting_that_is_called_like_a_secret_says_that_it_is_one() -> None:
    named = re.compile(r"password|passwd|secret|token|credential|api_?key", re.IGNORECASE)
    for setting in every_setting():
        name = setting.path[-1]
        if setting.kind is str and named.search(name) and not name.endswith(("_file", "_env")):
            assert setting.secret, setting.key
