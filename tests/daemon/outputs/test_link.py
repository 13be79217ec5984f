"""Links to alarms: the page's address as others know it, and the part that the page reads."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_events import event

from watchkeeper.config.schema import Http
from watchkeeper.daemon.http.asked import is_ours
from watchkeeper.daemon.outputs.link import alarm_link, page_address


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (Http(), "http://127.0.0.1:9108"),
        (Http(host="::1"), "http://[::1]:9108"),
        (Http(public_name="watch.example.org"), "https://watch.example.org"),
        (Http(public_name="a.b", public_url="http://a.b:8443/sky/"), "http://a.b:8443/sky"),
        (Http(page=False), ""),
        (Http(enabled=False, public_url="http://a.b"), ""),
    ],
)
def test_the_address_of_the_page(settings: Http, address: str) -> None:
    assert page_address(settings, 9108) == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_daemon_that_listens_everywhere_is_called_by_a_name_that_the_page_takes(host: str) -> None:
    where = urlsplit(page_address(Http(host=host), 9108))
    assert where.port == 9108
    assert where.hostname not in ("0.0.0.0", "::", None)
    assert is_ours(where.netloc, "")


@given(st.floats(0, 1e10))
def test_the_page_reads_alarm_and_moment_from_the_link(t: float) -> None:
    told = event("d1", "raised", t)
    read = parse_qs(urlsplit(alarm_link("http://h:1/sky", told)).fragment)
    assert read == {"alarm": [told.id], "t": [str(t)]}
    assert float(read["t"][0]) == t
    assert alarm_link("", told) == ""
