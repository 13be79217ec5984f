"""Settings of `type = "mavlink"`: a vehicle or a ground station."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import Name, texts


class Mavlink(Source, frozen=True, kw_only=True, tag="mavlink"):
    """MAVLink of a vehicle or a ground station."""

    url: StreamUrl
    signals: Annotated[
        tuple[Name, ...],
        texts("numbers of autopilots that are signals: names or patterns", form="names or patterns", at_most=1000),
    ] = ("*",)
