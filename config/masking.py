"""Secrets that stand inside addresses, hidden wherever an address is shown: logs, errors, pages, metrics, listings.

    masked("mqtt://name:word@host:1883")         mqtt://(hidden)@host:1883
    masked("https://host/x?token=abc&n=1")       https://host/x?token=(hidden)&n=1
    masked("https://host/services/T0/XyZ…24")    https://host/services/T0/(hidden)

Hidden are the login before the host, the values of query parameters that are called like a secret, and long parts of a
web address' path that have letters and digits mixed, as in the addresses of webhooks. Hiding too much does no harm.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_SCHEME = re.compile(r"\W?[A-Za-z][A-Za-z0-9+.-]*:/*")
_LOGIN = re.compile(r"://.*@")
_NAMED = re.compile(r"([?&;#][^=&;#]*(?:token|key|secret|pass|pwd|auth|sig|credential|session)[^=&;#]*=)[^&;#]+", re.I)
_PART = re.compile(r"(?<=/)(?=[^/?#]*\d)(?=[^/?#]*[A-Za-z])[\w:~-]{20,}(?=[/?#]|$)", re.ASCII)


def masked(text: str) -> str:
    """Any text, with the secrets of the addresses in it hidden."""
    return _URL.sub(_hide, text) if "://" in text else text


def masked_value(text: str) -> str:
    """One value of a setting: as `masked`, and a login in an address that is misspelt or has blanks in it too."""
    before, at, host = text.rpartition("@")
    scheme = _SCHEME.match(before)
    return masked(f"{scheme[0] if scheme else ''}{HIDDEN}@{host}" if at else text)


def _hide(found: re.Match[str]) -> str:
    url = _LOGIN.sub(f"://{HIDDEN}@", found[0])
    url = _NAMED.sub(rf"\1{HIDDEN}", url)
    return _PART.sub(HIDDEN, url) if url.startswith("http") else url
