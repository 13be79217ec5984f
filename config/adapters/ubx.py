"""Settings of `type = "ubx"`: UBX of a u-blox receiver."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Ubx(Source, frozen=True, kw_only=True, tag="ubx"):
    """UBX of a u-blox receiver."""

    url: StreamUrl
    id: Annotated[str, text("the vehicle that the receiver is on")] = "gps"
