"""The service that carries messages to a person, as Apprise knows it by its address. Needs the extra `notify`.

The address is a secret: for most services it is all that somebody else needs to write to that person. It is shown
nowhere; what Apprise logs about it is not passed on, except for the reason of a failure with the address left out.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from watchkeeper.config.masking import HIDDEN, masked
from watchkeeper.config.outputs import Notify
from watchkeeper.daemon.outputs.notify.message import Message

# A reason is one line in /readyz.
REASON_LENGTH = 200
# Parts of an address that are shorter are words, hosts or ports rather than secrets.
SECRET_LENGTH = 6


class Service:
    """One address. `send` returns why a message was not taken, or nothing when it was."""

    def __init__(self, settings: Notify) -> None:
        """ModuleNotFoundError: no Apprise; OSError, ValueError: the address is not there, or is none."""
        url = _url(settings)
        try:
            import apprise  # noqa: PLC0415  large, and an extra
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError('messages need apprise: pip install "watchkeeper[notify]"') from error
        _hush()
        # without its icons, which phones would fetch from elsewhere
        asset = apprise.AppriseAsset(app_id="Watchkeeper", app_desc="Watchkeeper", app_url="", image_url_mask="")
        found = apprise.Apprise.instantiate(url, asset=asset)
        if found is None:
            raise ValueError(f"notify {settings.name}: Apprise does not know this kind of address, or it is incomplete")
        self._service = apprise.Apprise(asset=asset)
        self._service.add(found)
        self._secrets = _parts(url)

    async def send(self, message: Message) -> str:
        """Why it was not taken; empty when it was. Waits without holding up the event loop."""
        result = await self._service.async_notify(
            title=message.title, body=message.body, notify_type=message.type, body_format="text"
        )
        return "" if result else self._reason(result)

    def _reason(self, result: Any) -> str:
        """What the service answered, as far as Apprise says so."""
        lines = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR")]
        words = " ".join(lines[-1].split()) if lines else "it was not taken"
        for part in self._secrets:
            words = words.replace(part, HIDDEN)
        return masked(words)[:REASON_LENGTH]


def _hush() -> None:
    """No lines of the libraries: addresses are in them, in those for debugging whole ones."""
    ours = logging.getLogger("apprise")
    ours.propagate = False
    if not ours.handlers:
        ours.addHandler(logging.NullHandler())
    logging.getLogger("urllib3.connectionpool").setLevel(logging.WARNING)


def _url(settings: Notify) -> str:
    if settings.url_file:
        url = Path(settings.url_file).read_text().strip()
    else:
        url = settings.url or os.environ.get(settings.url_env, "").strip()
    if not url:
        raise OSError(f"notify {settings.name}: {settings.url_file or settings.url_env} holds no address")
    return url


def _parts(url: str) -> list[str]:
    """The longest first, so that none is left in pieces."""
    parts = [part for part in re.split(r"[/:@?&=\s]", url.partition("://")[2]) if len(part) >= SECRET_LENGTH]
    return sorted({url, *parts, *map(unquote, parts)}, key=len, reverse=True)
