"""Settings of `type = "ais"`: AIS of ships."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Ais(Source, frozen=True, kw_only=True, tag="ais"):
    """AIVDM sentences of an AIS receiver or a service."""

    url: StreamUrl
