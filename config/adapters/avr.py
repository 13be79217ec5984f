"""Settings of `type = "avr"`: raw Mode S frames of an ADS-B receiver, as text."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Avr(Source, frozen=True, kw_only=True, tag="avr"):
    """AVR text of an ADS-B receiver, usually TCP port 30002."""

    url: StreamUrl
