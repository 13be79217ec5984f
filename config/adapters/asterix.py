"""Settings of `type = "asterix"`: ASTERIX of surveillance systems."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Source, StreamUrl


class Asterix(Source, frozen=True, kw_only=True, tag="asterix"):
    """ASTERIX categories 021 and 062 of a surveillance system, usually UDP."""

    url: StreamUrl
