"""Settings of `type = "mavlink"`: a vehicle or a ground station."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Mavlink(Source, frozen=True, kw_only=True, tag="mavlink"):
    """MAVLink of a vehicle or a ground station."""

    url: StreamUrl
