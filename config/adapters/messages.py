"""Settings of `type = "messages"`: telemetry messages on a stream, without a broker."""

from __future__ import annotations

from typing import Annotated, Literal

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Messages(Source, frozen=True, kw_only=True, tag="messages"):
    """MessagePack or JSON lines with the maps and frames of MQTT."""

    url: StreamUrl
    kind: Annotated[
        Literal["", "adsb", "gps", "imu", "action", "route", "link", "signal"],
        text("what a message is that has no `kind` of its own; empty: such a message is refused"),
    ] = ""
