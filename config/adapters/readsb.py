"""Settings of `type = "readsb"`: the aircraft.json of a receiver."""

from __future__ import annotations

from watchkeeper.config.adapters.base import Document


class Readsb(Document, frozen=True, kw_only=True, tag="readsb"):
    """The `aircraft.json` of readsb, tar1090 or dump1090."""
