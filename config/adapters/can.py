"""Settings of `type = "can"`: a CAN bus."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.section import text


class Can(Source, frozen=True, kw_only=True, tag="can"):
    """A CAN bus, through any interface of python-can."""

    url: Annotated[
        str,
        text(
            "where it is",
            pattern=r"^can://\S+$",
            form="a bus: can://INTERFACE/CHANNEL?bitrate=500000, the interface being one of python-can's",
        ),
    ]
    map: Annotated[str, text("the file that says what the messages mean, see docs/adapters/can.md")] = "can.toml"
