"""Settings of `type = "ogn"`: APRS lines of the Open Glider Network."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Ogn(Source, frozen=True, kw_only=True, tag="ogn"):
    """A server of the Open Glider Network, usually aprs.glidernet.org port 14580, or a receiver of one's own."""

    url: StreamUrl
    login: Annotated[
        str, text("the name given to the server; any will do", pattern="^[A-Za-z0-9-]{1,9}$", form="1 to 9 letters")
    ] = "N0CALL"
    filter: Annotated[
        str,
        text(
            "what the server sends, such as r/LAT/LON/KM; port 14580 sends nothing without one",
            pattern=r"^[ -~]{0,200}$",
            form="a filter of APRS-IS in one line",
        ),
    ] = ""
