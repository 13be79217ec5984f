"""No secret of an address is shown: in text, in values, in the listing, in what a bad configuration is told."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.masking import masked, masked_value
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon import logs
from watchkeeper.daemon.cli import main


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://name:word@host:1883", "mqtt://(hidden)@host:1883"),
        ("lost tcp://a:b@h:1 (refused)", "lost tcp://(hidden)@h:1 (refused)"),
        ("http://u:p@ss@host/x", "http://(hidden)@host/x"),
        ("https://host/x?token=abc&n=1", "https://host/x?token=(hidden)&n=1"),
        ("https://host/x?n=1&api_key=abc", "https://host/x?n=1&api_key=(hidden)"),
        ("https://hooks.host/services/T0/AbCdEfGhIjKlMnOpQrSt12", "https://hooks.host/services/T0/(hidden)"),
        ("https://api.host/bot12345678:AAHdqTcvCH1vGWJxfSeof/send", "https://api.host/(hidden)/send"),
        ("serial:///dev/ttyUSB0?baud=57600", "serial:///dev/ttyUSB0?baud=57600"),
        ("http://192.168.1.21/tar1090/data/aircraft.json", "http://192.168.1.21/tar1090/data/aircraft.json"),
        ("id a1b2@c3, no address", "id a1b2@c3, no address"),
    ],
)
def test_secrets_in_text_are_hidden(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_misspelt_address_hides_its_login_too() -> None:
    assert masked_value("http:/me:pass word@host/") == "http:/(hidden)@host/"
    assert masked_value("me:word@host") == "me:(hidden)@host"


CONFIG = """\
[[sources]]
type = "readsb"
url = "https://me:word1@host/data/aircraft.json?token=word2"
[[webhooks]]
name = "ops"
url = "https://hooks.host/services/T00/B00/word3AbCdEfGhIjKlMnOpQrStUv"
[[notify]]
name = "phone"
url = "tgram://123456789:word5AbCdEf_hijklmnop/4711/"
[broker]
password = "word4"
username = "me"
"""


def test_the_listing_and_the_problems_of_a_configuration_show_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "w.toml"
    path.write_text(CONFIG)
    assert main(["check-config", str(path), "--show"]) == 0
    shown = capsys.readouterr().out
    assert not any(f"word{n}" in shown for n in range(1, 6))
    assert "https://(hidden)@host/data/aircraft.json" in shown
    path.write_text(CONFIG.replace("https://me", "ftp://me") + "[http]\nport = -1\n")
    with pytest.raises(ConfigError) as refused:
        load(path, env={})
    assert "http.port" in str(refused.value)
    assert "word1" not in str(refused.value)


def test_log_lines_and_tracebacks_show_none() -> None:
    for form in ("text", "json"):
        out = io.StringIO()
        logs.set_up(logs.Log(format=form), out)  # type: ignore[arg-type]
        try:
            raise OSError("cannot reach mqtt://me:word@host")
        except OSError:
            logging.getLogger("watchkeeper.x").exception("lost", extra=logs.kv(url="mqtt://me:word@host"))
        assert "lost" in out.getvalue()
        assert "word" not in out.getvalue()
    logs.set_up(DEFAULT.log)
