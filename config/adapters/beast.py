"""Settings of `type = "beast"`: raw Mode S frames of an ADS-B receiver, binary."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Beast(Source, frozen=True, kw_only=True, tag="beast"):
    """Beast binary of an ADS-B receiver, usually TCP port 30005."""

    url: StreamUrl
