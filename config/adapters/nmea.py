"""Settings of `type = "nmea"`: NMEA 0183 of a satellite receiver."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Nmea(Source, frozen=True, kw_only=True, tag="nmea"):
    """NMEA 0183 of a satellite receiver."""

    url: StreamUrl
    id: Annotated[str, text("the vehicle that the receiver is on")] = "gps"
