"""Links to alarms on the live page, for messages that leave this machine.

    http://watch:9108/#alarm=5c3d8f0e7a1b2c4d&t=1700000042.5

The part after # is the page's own (daemon/live/page): the alarm, and the moment at which it is shown. The address in
front of it is `http.public_url`, else https and `http.public_name`, else host and port; a daemon that listens on every
address is called by the name of its machine.
"""

from __future__ import annotations

import socket
from urllib.parse import urlencode

from watchkeeper.config.schema import Http
from watchkeeper.detectors.alarms.events import AlarmEvent

EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104


def page_address(settings: Http, port: int) -> str:
    """Where others find the page, without a slash at the end; empty when there is none. `port`: where it is served.

    >>> page_address(Http(), 9108), page_address(Http(public_name="watch.example.org"), 9108)
    ('http://127.0.0.1:9108', 'https://watch.example.org')
    """
    if not (settings.enabled and settings.page):
        return ""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.public_name:
        return f"https://{settings.public_name}"
    # without its domain: the page refuses other names with dots, see http/asked.py
    host = socket.gethostname().partition(".")[0] if settings.host in EVERYWHERE else settings.host
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def alarm_link(page: str, event: AlarmEvent) -> str:
    """An alarm at the moment of this event; empty without a page.

    >>> alarm_link("", None)
    ''
    """
    return f"{page}/#{urlencode({'alarm': event.id, 't': event.t})}" if page else ""
