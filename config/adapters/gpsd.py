"""Settings of `type = "gpsd"`: JSON of gpsd, usually TCP port 2947."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Gpsd(Source, frozen=True, kw_only=True, tag="gpsd"):
    """JSON of gpsd, usually TCP port 2947."""

    url: StreamUrl
    id: Annotated[str, text("the vehicle that the receiver is on")] = "gps"
