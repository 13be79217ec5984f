"""Settings of `type = "opensky"`: state vectors of the OpenSky Network."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Document


class OpenSky(Document, frozen=True, kw_only=True, tag="opensky"):
    """State vectors of the OpenSky Network, from its REST interface."""
