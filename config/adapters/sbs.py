"""Settings of `type = "sbs"`: BaseStation text of an ADS-B receiver."""

from __future__ import annotations

from typing import Annotated, Literal

from watchkeeper.config.adapters.base import Source, StreamUrl
from watchkeeper.config.section import text


class Sbs(Source, frozen=True, kw_only=True, tag="sbs"):
    """BaseStation text (SBS-1) of an ADS-B receiver, usually TCP port 30003."""

    url: StreamUrl
    times: Annotated[
        Literal["arrival", "message"],
        text("whose clock stamps the samples: ours at arrival, or the receiver's, which must be UTC"),
    ] = "arrival"
