"""Messages to people, by real servers on this machine: ntfy's own form, e-mail, and Apprise's JSON."""

from __future__ import annotations

import asyncio
import email
import email.policy
import io
import logging
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from made_events import event
from waiting import PATIENCE_S, until

from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.outputs import Notify
from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.daemon.outputs.base import Context
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.notify.sink import NotifySink, make
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.sentence import said

from where import DOCS

WORD = "sesame4711"


class Phone:
    """A web server that remembers what it is sent, and answers with these statuses, then 200."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.pause_s = 0.0
        self.address = ""

    async def take(self, request: web.Request) -> web.Response:
        status = self.answers.pop(0) if self.answers else 200
        sent = await request.json()
        if status == 200:
            self.got.append(sent)
        await asyncio.sleep(self.pause_s)
        return web.Response(status=status)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Phone]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.address = f"127.0.0.1:{runner.addresses[0][1]}"
        yield self
        await runner.cleanup()


def context(folder: Path | None = None, **changes: Any) -> Context:
    plain: Context = Context(
        version="0", client_id="c", output="o", state_dir=folder, past=Past(), transport=None,  # type: ignore[arg-type]
        max_active=100, vehicles=lambda: 0, callsigns=dict, watched=None,  # type: ignore[arg-type]
        link=lambda e: f"http://watch:9108/#alarm={e.id}&t={e.t}",
    )  # fmt: skip
    return replace(plain, **changes)


def asked(url: str, **changes: Any) -> Notify:
    return Notify(**{"name": "phone", "url": url, "retry_min_s": 0.05, "retry_max_s": 0.05, **changes})


def alarm(subject: str, state: str = "raised", severity: str = "caution", t: float = 1.0, **more: Any) -> AlarmEvent:
    return msgspec.structs.replace(event(subject, state, t), severity=severity, **more)


@asynccontextmanager
async def sending(sink: NotifySink) -> AsyncIterator[NotifySink]:
    task = asyncio.create_task(sink.run())
    yield sink
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def taken(sink: NotifySink) -> None:
    await until(lambda: not sink.waiting)


def scene(play: Callable[[Phone], Any]) -> Phone:
    phone = Phone()

    async def main() -> None:
        async with phone.listening(), asyncio.timeout(PATIENCE_S):
            await play(phone)

    asyncio.run(main())
    return phone


def told(phone: Phone) -> list[str]:
    return [sent["title"] for sent in phone.got]


def test_a_phone_with_ntfy_gets_title_sentence_and_link() -> None:
    called = alarm("4ca7b3", "raised", "warning")

    async def play(phone: Phone) -> None:
        names = context(callsigns=lambda: {"4ca7b3": "EIN12"})
        async with sending(make(asked(f"ntfy://{phone.address}/flights"), names)) as sink:
            sink.put(called)
            await taken(sink)

    (sent,) = scene(play).got
    assert sent["topic"] == "flights"
    assert sent["title"] == "Warning: silence EIN12"
    assert sent["message"] == f"{said(called)}\nhttp://watch:9108/#alarm={called.id}&t=1.0"


def test_a_mail_has_the_title_as_subject_and_a_name_with_a_line_break_adds_no_header() -> None:
    mails: list[Any] = []

    class Keep:
        async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
            mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
            return "250 OK"

    def check(_server: Any, _session: Any, _envelope: Any, _how: str, data: Any) -> AuthResult:
        return AuthResult(success=data.password == WORD.encode())

    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    server = Controller(Keep(), hostname="127.0.0.1", port=port, authenticator=check, auth_require_tls=False)
    server.start()
    try:
        url = f"mailto://watch:{WORD}@127.0.0.1:{port}?smtp=127.0.0.1&mode=insecure&format=text"
        url += "&from=watch@example.org&to=ops@example.org"
        bad = alarm("d1\nBcc: x@example.org")

        async def main() -> None:
            async with sending(make(asked(url), context())) as sink, asyncio.timeout(PATIENCE_S):
                sink.put(bad)
                await taken(sink)

        asyncio.run(main())
    finally:
        server.stop()
    (mail,) = mails
    assert mail["Subject"] == "Caution: silence d1?Bcc: x@example.org"
    assert (mail["To"], mail["Bcc"]) == ("ops@example.org", None)
    assert mail.get_content().splitlines() == [said(bad), f"http://watch:9108/#alarm={bad.id}&t=1.0"]


def test_only_what_was_asked_for_is_sent_and_an_end_only_of_what_was() -> None:
    async def play(phone: Phone) -> None:
        settings = asked(f"json://{phone.address}", kinds=("silence",), burst_messages=100)
        shelved = context(shelved=lambda e: e.subjects == ("shelved",))
        async with sending(make(settings, shelved)) as sink:
            for each in (
                alarm("low", severity="advisory"),
                alarm("low", "cleared", "advisory", 9.0),
                alarm("other", kind="conflict"),
                alarm("shelved"),
                alarm("shelved", "cleared", t=9.0),
                alarm("rises", severity="advisory"),
                alarm("rises", "updated", "caution", 2.0),  # for this person it begins here
                alarm("rises", "updated", "caution", 3.0),
                alarm("rises", "updated", "warning", 4.0),
                alarm("rises", "updated", "caution", 5.0),
                alarm("rises", "updated", "warning", 6.0),
                alarm("rises", "cleared", "warning", 9.0),
            ):
                sink.put(each)
                await taken(sink)
            assert (sink.delivered, sink.dropped, sink.refused) == (3, 0, 0)

    assert told(scene(play)) == ["Caution: silence rises", "Warning: silence rises", "Warning is over: silence rises"]


@pytest.mark.parametrize("states", [(), ("raised",), ("risen",), ("cleared",), ("risen", "cleared")])
def test_each_state_can_be_chosen_alone(states: tuple[str, ...]) -> None:
    async def play(phone: Phone) -> None:
        async with sending(make(asked(f"json://{phone.address}", states=states), context())) as sink:
            for each in (alarm("d"), alarm("d", "updated", "warning", 2.0), alarm("d", "cleared", "warning", 3.0)):
                sink.put(each)
                await taken(sink)

    begins = {"raised": "Caution:", "risen": "Warning:", "cleared": "Warning is over:"}
    assert told(scene(play)) == [f"{begins[state]} silence d" for state in states]


def test_a_flood_is_four_messages_and_a_summary_that_counts_all_the_others() -> None:
    async def play(phone: Phone) -> None:
        settings = asked(f"json://{phone.address}", burst_messages=5, pause_s=3600.0)
        async with sending(make(settings, context())) as sink:
            for n in range(200):
                sink.put(alarm(f"d{n}", severity="warning" if n == 150 else "caution"))
            await until(lambda: sink.delivered == 200)
            # what comes now waits for the next hour, and is not lost
            sink.put(alarm("late"))
            sink.put(alarm("late", "cleared", t=2.0))
            sink.put(alarm("d150", "cleared", "warning", 2.0))
            await asyncio.sleep(0.1)
            assert (len(phone.got), sink.waiting, sink.delivered) == (5, 3, 200)
            # an orderly stop does not wait for it
            await sink.flush()
            assert (sink.waiting, sink.delivered) == (0, 203)

    phone = scene(play)
    assert told(phone)[:4] == [f"Caution: silence d{n}" for n in range(4)]
    assert told(phone)[4:] == ["196 alarms: 1 warning, 195 caution", "2 alarms: 2 over"]
    lines = phone.got[4]["message"].splitlines()
    assert lines[0] == f"- {said(alarm('d150', severity='warning'))}"
    assert lines[8:] == ["- and 188 more: 188 silence", f"http://watch:9108/#alarm={alarm('d150').id}&t=1.0"]


def test_a_service_that_is_away_is_said_and_all_that_waited_comes_in_one_message() -> None:
    async def play(phone: Phone) -> None:
        phone.answers = [500, 403, 429]
        async with sending(make(asked(f"json://{phone.address}/{WORD}", burst_messages=100), context())) as sink:
            sink.put(alarm("d1"))
            await until(sink.health)
            assert WORD not in str(sink.health())
            assert "500" in str(sink.health())
            sink.put(alarm("d2"))
            await taken(sink)
            await until(lambda: not sink.health())
            assert (sink.failures, sink.delivered) == (3, 2)

    assert told(scene(play)) == ["2 alarms: 2 caution"]


def test_a_service_that_does_not_answer_holds_up_nobody() -> None:
    async def play(phone: Phone) -> None:
        phone.pause_s = 1.0
        async with sending(make(asked(f"json://{phone.address}", timeout_s=0.3), context())) as sink:
            sink.put(alarm("d1"))
            longest, last = 0.0, time.perf_counter()
            while not sink.health():
                await asyncio.sleep(0.005)
                now = time.perf_counter()
                longest, last = max(longest, now - last), now
            assert "no answer within 0.3 s" in str(sink.health())
            # a request that blocked the loop would take all of it
            assert longest < 0.25
            assert sink.waiting == 1

    scene(play)


def test_after_a_restart_only_what_was_missed_is_sent(tmp_path: Path) -> None:
    async def play(phone: Phone) -> None:
        settings = asked(f"json://{phone.address}")
        async with sending(make(settings, context(tmp_path))) as sink:
            sink.put(alarm("stays"))
            sink.put(alarm("ends"))
            await taken(sink)
        past = Past(
            active=[alarm("stays"), alarm("new")], ended=[alarm("ends", "cleared", t=5.0), alarm("x", "cleared")]
        )
        async with sending(make(settings, context(tmp_path, past=past))) as sink:
            await until(lambda: sink.delivered == 2)
            sink.put(alarm("stays", "cleared", t=6.0))
            await taken(sink)

    phone = scene(play)
    assert told(phone)[2:] == [
        "Caution is over: silence ends",
        "Caution: silence new",
        "Caution is over: silence stays",
    ]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", "exactly one of url, url_file and url_env"),
        (f'url = "ntfy://{WORD}"\nurl_env = "X"', "exactly one of url, url_file and url_env"),
        (f'url = "ntfy://{WORD}"\nseverity = "bad"', "severity"),
        (f'url = "ntfy://{WORD}"\n[[webhooks]]\nname = "phone"\nurl = "http://h/"', "one name"),
    ],
)
def test_settings_that_cannot_be_are_refused_without_showing_the_address(
    lines: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "w.toml"
    path.write_text(f'[[notify]]\nname = "phone"\n{lines}\n')
    with pytest.raises(ConfigError, match=problem) as refused:
        load(path, env={})
    assert WORD not in str(refused.value)


def test_the_address_is_shown_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "w.toml"
    path.write_text(f'[[notify]]\nname = "phone"\nurl = "ntfy://{WORD}"\n')
    assert watchkeeper(["check-config", str(path), "--show"]) == 0
    path.write_text(f'[[notify]]\nname = "phone"\nurl = "nothing://{WORD}"\n')
    assert watchkeeper(["check-config", str(path)]) == 1
    shown = capsys.readouterr()
    assert "Apprise does not know this kind of address" in shown.out + shown.err
    assert WORD not in shown.out + shown.err


def test_no_line_of_the_log_has_the_address() -> None:
    lines = io.StringIO()
    # pytest's own capture also takes what goes nowhere
    ours = logging.StreamHandler(lines)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(ours)
    root.setLevel(logging.DEBUG)
    try:
        scene(lambda phone: failing(f"json://me:{WORD}@{phone.address}/?-X-Key={WORD}", phone))
    finally:
        root.removeHandler(ours)
        root.setLevel(level)
    assert "messages are not taken" in lines.getvalue()
    assert WORD not in lines.getvalue()


async def failing(url: str, phone: Phone) -> None:
    phone.answers = [500]
    async with sending(make(asked(url), context())) as sink:
        sink.put(alarm("d1"))
        await until(lambda: sink.failures and sink.delivered)


def test_a_misspelt_kind_and_an_empty_file_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such kind of alarm: conflct"):
        make(asked("ntfy://x", kinds=("conflct",)), context())
    (tmp_path / "url").write_text("\n")
    with pytest.raises(OSError, match="holds no address"):
        make(asked("", url_file=str(tmp_path / "url")), context())
    (tmp_path / "url").write_text("ntfy://topic\n")
    make(asked("", url_file=str(tmp_path / "url")), context())


def documented() -> list[str]:
    """The addresses of the table in docs/outputs/sinks.md."""
    page = (DOCS / "outputs" / "sinks.md").read_text().partition("| service | address |")[2].partition("\n\n")[0]
    return re.findall(r"`(\w+://[^`]+)`", page)


def test_apprise_takes_every_address_of_the_documentation() -> None:
    assert {url.partition(":")[0] for url in documented()} == {"ntfy", "ntfys", "tgram", "mailtos", "mailto"}
    for url in documented():
        make(asked(url), context())
