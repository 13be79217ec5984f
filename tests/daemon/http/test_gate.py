"""From another machine nobody comes in without a token, and a token that may look changes nothing."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from watchkeeper.config.schema import Http
from watchkeeper.config.tokens import Token
from watchkeeper.daemon.http.api.routes import all_routes
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.gate import TRIES, Gate

from api_rig import Rig

VIEW, OPERATE = "looks-at-everything-1", "changes-something-22"
EVERYWHERE = ("/", "/page/main.js", "/live", "/metrics", "/api/v1/alarms", "/api/v1/openapi.json", "/api/v1/config")


def other_address() -> str:
    """An address of this machine that is not loopback; a request to it comes from it, as one from elsewhere would."""
    listed = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=False).stdout
    found = [address for address in re.findall(r"inet ([\d.]+)", listed) if not address.startswith("127.")]
    if not found:
        pytest.skip("this machine has no address but loopback")
    return found[0]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = Rig(tmp_path_factory.mktemp("gate"), seconds=120.0)
    yield made
    made.close()


@pytest.fixture
def tokens(tmp_path: Path) -> tuple[Token, ...]:
    (tmp_path / "view").write_text(f"{VIEW}\n")
    (tmp_path / "operate").write_text(OPERATE)
    return (
        Token(name="wall", role="view", token_file=str(tmp_path / "view")),
        Token(name="tower", role="operate", token_file=str(tmp_path / "operate")),
    )


Visit = Callable[[aiohttp.ClientSession, str], Awaitable[Any]]


def visit(rig: Rig, http: Http, what: Visit, *, address: str | None = None, **session: Any) -> Any:
    """Ask a server with these settings, from another address than loopback."""
    rig.config = msgspec.structs.replace(rig.config, http=http)

    async def main() -> Any:
        async with rig.site() as site, aiohttp.ClientSession(**session) as client:
            return await what(client, f"http://{address or other_address()}:{site.port}")

    return asyncio.run(main())


async def statuses(client: aiohttp.ClientSession, url: str, **more: Any) -> dict[str, int]:
    found = {}
    for path in EVERYWHERE:
        async with client.get(url + path, **more) as answer:
            found[path] = answer.status
    return found


def test_without_a_token_another_address_gets_401_everywhere(rig: Rig, tokens: tuple[Token, ...]) -> None:
    for http in (Http(host="0.0.0.0", port=0), Http(host="0.0.0.0", port=0, tokens=tokens)):
        assert set(visit(rig, http, statuses).values()) == {401}


def test_on_this_machine_no_token_is_needed_unless_it_is_asked_for(rig: Rig, tokens: tuple[Token, ...]) -> None:
    http = Http(port=0, tokens=tokens)
    assert visit(rig, http, statuses, address="127.0.0.1")["/api/v1/alarms"] == 200
    strict = Http(port=0, tokens=tokens, require_token=True)
    assert set(visit(rig, strict, statuses, address="127.0.0.1").values()) == {401}


def test_a_proxy_on_this_machine_does_not_make_everybody_local(rig: Rig) -> None:
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        found = visit(rig, Http(port=0), statuses, address="127.0.0.1", headers={name: "203.0.113.9"})
        assert set(found.values()) == {401}


def test_the_sentence_says_how_to_set_a_token(rig: Rig) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> tuple[Any, str]:
        async with client.get(f"{url}/api/v1/alarms") as answer:
            problem = await answer.json()
        async with client.get(url, headers={"Accept": "text/html"}) as answer:
            return problem, await answer.text()

    problem, page = visit(rig, Http(host="0.0.0.0", port=0), ask)
    assert problem["code"] == "no_token"
    assert "[[http.tokens]]" in problem["message"]
    assert "<form" in page
    assert "http: listens on 0.0.0.0 without a token" in Gate(Http(host="0.0.0.0")).warnings()[0]


def test_a_token_that_may_look_changes_nothing(rig: Rig, tokens: tuple[Token, ...]) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> list[int]:
        found = []
        for token in (VIEW, OPERATE):
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get(f"{url}/api/v1/alarms", headers=headers) as answer:
                found.append(answer.status)
            body = {"minutes": 1, "kind": "los"}
            async with client.post(f"{url}/api/v1/shelves", headers=headers, json=body) as answer:
                found.append(answer.status)
            async with client.post(f"{url}/alarms/none/acknowledge", headers=headers, json={}) as answer:
                found.append(answer.status)
        return found

    assert visit(rig, Http(host="0.0.0.0", port=0, tokens=tokens), ask) == [200, 403, 403, 200, 201, 404]


def test_every_route_that_changes_something_is_for_operators(rig: Rig) -> None:
    for route in all_routes(Served(rig.live, lambda: rig.config, rig.history)):
        assert (route.role == "operate") is (route.method != "GET"), route.path


def test_the_login_gives_a_cookie_that_only_this_site_sends(rig: Rig, tokens: tuple[Token, ...]) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> tuple[str, int, int, int]:
        async with client.post(f"{url}/login", data={"token": VIEW}, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
        jar = {"Cookie": cookie.partition(";")[0]}
        async with client.get(url, headers=jar) as answer:
            page = answer.status
        async with client.ws_connect(f"{url}/live", headers=jar) as line:
            opened = 0 if line.closed else 101
        await client.post(f"{url}/logout", headers=jar, allow_redirects=False)
        async with client.get(url, headers=jar) as answer:
            return cookie, page, opened, answer.status

    cookie, page, opened, after = visit(rig, Http(host="0.0.0.0", port=0, tokens=tokens), ask)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert (page, opened, after) == (200, 101, 401)


def test_wrong_tokens_are_limited(rig: Rig, tokens: tuple[Token, ...]) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> list[int]:
        found = []
        for token in ["wrong"] * (TRIES + 1) + [VIEW]:
            async with client.get(f"{url}/api/v1/alarms", headers={"Authorization": f"Bearer {token}"}) as answer:
                found.append(answer.status)
        return found

    assert visit(rig, Http(host="0.0.0.0", port=0, tokens=tokens), ask) == [401] * TRIES + [429, 429]


def test_the_form_stays_where_it_is_when_a_login_has_to_wait(rig: Rig, tokens: tuple[Token, ...]) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> tuple[int, str, str]:
        for _ in range(TRIES):
            await client.post(f"{url}/login", data={"token": "wrong"})
        async with client.post(f"{url}/login", data={"token": VIEW}) as answer:
            return answer.status, answer.content_type, await answer.text()

    status, kind, body = visit(rig, Http(host="0.0.0.0", port=0, tokens=tokens), ask)
    assert (status, kind) == (429, "text/html")
    assert "Too many wrong tokens: wait a minute." in body
    assert '<form method="post" action="/login">' in body


def test_the_page_is_told_what_its_reader_may_do(rig: Rig, tokens: tuple[Token, ...]) -> None:
    async def ask(client: aiohttp.ClientSession, url: str) -> list[tuple[str, bool]]:
        found = []
        for token in (VIEW, OPERATE):
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get(f"{url}/page/settings.json", headers=headers) as answer:
                told = await answer.json()
                found.append((told["token"], told["may_operate"]))
        return found

    names = {token.role: token.name for token in tokens}
    told = visit(rig, Http(host="0.0.0.0", port=0, tokens=tokens), ask)
    assert told == [(names["view"], False), (names["operate"], True)]


def test_trusted_networks_are_as_this_machine(rig: Rig) -> None:
    http = Http(host="0.0.0.0", port=0, trusted=(f"{other_address()}/32",))
    assert visit(rig, http, statuses)["/api/v1/alarms"] == 200


def test_a_token_that_is_too_short_or_not_there_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("abc")
    with pytest.raises(OSError, match="less than 16"):
        Gate(Http(tokens=(Token(name="a", token_file=str(tmp_path / "short")),)))
    with pytest.raises(FileNotFoundError):
        Gate(Http(tokens=(Token(name="a", token_file=str(tmp_path / "none")),)))
