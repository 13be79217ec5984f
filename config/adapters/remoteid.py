"""Settings of `type = "remoteid"`: decoded Remote ID of drones."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class RemoteId(Source, frozen=True, kw_only=True, tag="remoteid"):
    """JSON lines of a receiver that decodes Remote ID."""

    url: StreamUrl
