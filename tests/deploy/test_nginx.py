"""deploy/nginx as it stands, in a real nginx before a real daemon: strangers meet the login, a token lets them in."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from waiting import end_program, wait_for

from watchkeeper.daemon.demo.broker import free_port

NAME, TOKEN = "watch.example.org", "a-token-of-24-characters"


@pytest.fixture(scope="module")
def behind(
    deploy: Path, tool: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HTTPSConnection]:
    """Connections to nginx, as a browser elsewhere would make them."""
    nginx, openssl = tool("nginx", "nginx-light"), tool("openssl", "openssl")
    folder, port, page = tmp_path_factory.mktemp("nginx"), free_port(), free_port()
    key = ("-newkey", "rsa:2048", "-nodes", "-keyout", "privkey.pem", "-out", "fullchain.pem")
    subject = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    subprocess.run([openssl, "req", "-x509", *key, *subject, "-days", "2"], cwd=folder, check=True, capture_output=True)
    text = (deploy / "nginx" / "watchkeeper.conf").read_text().replace("listen 443", f"listen 127.0.0.1:{port}")
    text = text.replace("/etc/ssl/watchkeeper", str(folder)).replace("127.0.0.1:9108", f"127.0.0.1:{page}")
    (folder / "site.conf").write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    (folder / "watchkeeper.toml").write_text(
        f"[broker]\nurl = 'mqtt://127.0.0.1:{free_port()}'\n[sinks]\nstate_dir = ''\nterminal = false\n"
        f"[http]\nport = {page}\npublic_name = '{NAME}'\n"
        f"[[http.tokens]]\nname = 'tower'\nrole = 'operate'\ntoken_file = '{folder}/token'\n"
    )
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "watchkeeper.daemon.cli", "run", "-c", str(folder / "watchkeeper.toml")], stderr=log
        )
        proxy = subprocess.Popen([nginx, "-c", str(folder / "nginx.conf")], stderr=log)
    trust = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))

    class ByName(HTTPSConnection):
        """To nginx on this machine, by the name that is in its certificate."""

        def connect(self) -> None:
            self.host = "127.0.0.1"
            super(HTTPSConnection, self).connect()
            self.sock = trust.wrap_socket(self.sock, server_hostname=NAME)

    connection = ByName("127.0.0.1", port, timeout=10)

    def answers() -> bool:
        assert proxy.poll() is None, (folder / "log").read_text()
        try:
            return ask(connection, "/healthz").status == 200
        except OSError:
            connection.close()
            return False

    wait_for(answers)
    yield connection
    connection.close()
    end_program(proxy)
    daemon.terminate()
    daemon.wait(30)


def ask(connection: HTTPSConnection, path: str, method: str = "GET", body: str = "", **headers: str) -> HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body=body or None, headers={"Host": NAME, **named})
    reply = connection.getresponse()
    reply.text = reply.read().decode(errors="replace")  # type: ignore[attr-defined]
    return reply


def test_a_stranger_meets_the_login_and_nothing_else(behind: HTTPSConnection) -> None:
    page: Any = ask(behind, "/", Accept="text/html")
    assert page.status == 401
    assert 'name="token"' in page.text
    for path in ("/api/v1/alarms", "/metrics", "/api/v1/config"):
        assert ask(behind, path).status == 401, path
    wrong = ask(behind, "/api/v1/alarms", Authorization="Bearer wrong-wrong-wrong-wrong")
    assert wrong.status == 401


def test_with_the_token_the_page_and_the_api_answer(behind: HTTPSConnection) -> None:
    alarms: Any = ask(behind, "/api/v1/alarms", Authorization=f"Bearer {TOKEN}")
    assert alarms.status == 200
    assert json.loads(alarms.text)["total"] == 0
    form = {"Content_Type": "application/x-www-form-urlencoded", "Origin": f"https://{NAME}"}
    entered = ask(behind, "/login", "POST", urlencode({"token": TOKEN}), **form)
    cookie = entered.headers["Set-Cookie"].partition(";")[0]
    page: Any = ask(behind, "/", Cookie=cookie, Accept="text/html")
    assert page.status == 200
    assert "<title>Watchkeeper" in page.text


def test_the_live_channel_passes(behind: HTTPSConnection) -> None:
    behind.close()
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": f"https://{NAME}",
        "Authorization": f"Bearer {TOKEN}",
    }  # fmt: skip
    behind.request("GET", "/live", headers={"Host": NAME, **{k.replace("_", "-"): v for k, v in upgrade.items()}})
    assert behind.getresponse().status == 101
    behind.close()
