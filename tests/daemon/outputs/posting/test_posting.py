"""What webhooks post in the forms of public standards, read and checked by the standards' own packages."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from made_events import event
from standardwebhooks.webhooks import Webhook as Oracle
from standardwebhooks.webhooks import WebhookVerificationError
from waiting import PATIENCE_S

from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.outputs import Webhook
from watchkeeper.daemon.outputs.posting.cloud_events import attributes, binary, structured
from watchkeeper.daemon.outputs.posting.signature import signer, standard
from watchkeeper.daemon.outputs.webhook import WebhookSink
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event

SECRET = "whsec_" + base64.b64encode(b"twenty-four bytes or more").decode()
T = 1_700_000_042.5
LINK = "http://watch:9108/#alarm=a&t=1700000042.5"


def posted(form: str, folder: Path, *answers: int) -> list[tuple[dict[str, str], bytes]]:
    """The requests for one event to a receiver that gives these answers, then 204."""
    got: list[tuple[dict[str, str], bytes]] = []
    left = list(answers)

    async def take(request: web.Request) -> web.Response:
        got.append((dict(request.headers), await request.read()))
        return web.Response(status=left.pop(0) if left else 204)

    @asynccontextmanager
    async def receiver() -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        await runner.cleanup()

    async def main() -> None:
        async with receiver() as url:
            asked = made(folder, url=url, form=form)
            sink = WebhookSink(asked, None, link=lambda _event: LINK, client_id="tower 1")
            task = asyncio.create_task(sink.run())
            sink.put(event("dröhne", "raised", T))
            async with asyncio.timeout(PATIENCE_S):
                await sink.flush()
            task.cancel()

    asyncio.run(main())
    return got


def made(folder: Path, **changes: Any) -> Webhook:
    key = folder / "key"
    key.write_text(SECRET + "\n")
    plain = {"name": "x", "url": "http://127.0.0.1:1/", "signature": "standard", "secret_file": str(key)}
    return Webhook(**{**plain, "retry_min_s": 0.05, "retry_max_s": 0.05, **changes})


@pytest.mark.parametrize("form", ["event", "cloudevents", "cloudevents-binary"])
def test_standard_webhooks_own_package_takes_the_signature(form: str, tmp_path: Path) -> None:
    ((headers, body),) = posted(form, tmp_path)
    assert Oracle(SECRET).verify(body, headers) == json.loads(body)
    with pytest.raises(WebhookVerificationError):
        Oracle(SECRET).verify(body.replace(b"caution", b"warning"), headers)
    with pytest.raises(WebhookVerificationError):
        Oracle(SECRET).verify(body, {**headers, "webhook-id": "another"})


def test_a_repetition_has_the_same_id_and_body(tmp_path: Path) -> None:
    requests = posted("cloudevents", tmp_path, 503, 429)
    assert len(requests) == 3
    expected = event("dröhne", "raised", T)
    assert {headers["webhook-id"] for headers, _ in requests} == {f"{expected.id}-raised-{T}"}
    assert len({body for _, body in requests}) == 1


@settings(max_examples=200)
@given(st.binary(min_size=1, max_size=64), st.text("abc-.0123456789", min_size=1), st.binary())
def test_any_key_id_and_body_sign_as_the_package_signs(key: bytes, message_id: str, body: bytes) -> None:
    oracle = Oracle(base64.b64encode(key).decode())
    text = body.decode("latin-1")
    ours = standard(key, message_id, 1_700_000_000, text.encode())
    theirs = oracle.sign(message_id, datetime.fromtimestamp(1_700_000_000, UTC), text)
    assert ours["webhook-signature"] == theirs


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_not base64!"])
def test_a_key_that_cannot_sign_stops_the_start(key: str, tmp_path: Path) -> None:
    asked = made(tmp_path)
    Path(asked.secret_file).write_text(key)
    with pytest.raises(OSError, match="key"):
        signer(asked)


def test_a_standard_signature_without_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text('[[webhooks]]\nname = "x"\nurl = "http://h/"\nsignature = "standard"\n')
    with pytest.raises(ConfigError, match="no key to sign with"):
        load(path, env={})


@pytest.mark.parametrize("form", ["cloudevents", "cloudevents-binary"])
def test_the_cloudevents_package_reads_the_event(form: str, tmp_path: Path) -> None:
    ((headers, body),) = posted(form, tmp_path)
    read = from_http_event(HTTPMessage(headers, body), JSONFormat())
    expected = event("dröhne", "raised", T)
    assert read.get_data() == json.loads(encode_event(expected))
    assert read.get_id() == f"{expected.id}-raised-{T}"
    assert read.get_source() == "/watchkeeper/tower%201"
    assert read.get_type() == "watchkeeper.alarm.raised"
    assert read.get_subject() == "silence/dröhne"
    assert read.get_time() == datetime.fromtimestamp(T, UTC)
    assert read.get_specversion() == "1.0"
    assert read.get_extension("link") == LINK


@settings(max_examples=200)
@given(st.text(min_size=1), st.text(min_size=1), st.floats(0, 1e18))
def test_any_name_and_time_survives_both_forms(subject: str, client_id: str, t: float) -> None:
    # names are UTF-8 wherever they come from
    subject, client_id = (name.encode("utf-8", "replace").decode() for name in (subject, client_id))
    told: AlarmEvent = event(subject, "raised", t)
    body = encode_event(told)
    for form in (structured, binary):
        envelope = attributes(told, "1", client_id, "")
        headers, sent = form(envelope, body)
        assert all(value.isascii() and value.isprintable() for value in headers.values())
        read = from_http_event(HTTPMessage(headers, sent), JSONFormat())
        assert (read.get_subject(), read.get_data()) == (f"silence/{subject}", json.loads(body))
        # the last second of the year 9999; the package itself says "now" where there is none
        assert ("time" in envelope) == (1e9 <= t < 253_402_300_799.5)
        assert "time" not in envelope or read.get_time() == datetime.fromisoformat(envelope["time"])


def test_the_link_is_in_a_header_and_the_body_stays_what_mqtt_has(tmp_path: Path) -> None:
    ((headers, body),) = posted("event", tmp_path)
    assert body == encode_event(event("dröhne", "raised", T))
    assert headers["Link"] == f'<{LINK}>; rel="alternate"'
