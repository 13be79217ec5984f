"""Settings of `type = "gdl90"`: GDL 90 of a cockpit receiver."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Gdl90(Source, frozen=True, kw_only=True, tag="gdl90"):
    """GDL 90 of a cockpit receiver such as Stratux, usually UDP port 4000."""

    url: StreamUrl
