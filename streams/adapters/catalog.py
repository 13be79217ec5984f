"""Which adapter speaks what, for the live sources of the configuration. A new one is one line here.

Adapters are imported when a source asks for them, so an optional dependency costs nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from watchkeeper.config.schema import Source
from watchkeeper.streams.adapters.base import Feed

_HERE = "watchkeeper.streams.adapters"
# type of the source: its adapter, the settings it takes, and the extra that brings what it needs
ADAPTERS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "sbs": (f"{_HERE}.receivers.sbs:Sbs", ("via", "times"), ""),
    "beast": (f"{_HERE}.receivers.modes:Beast", ("via",), "modes"),
    "avr": (f"{_HERE}.receivers.modes:Avr", ("via",), "modes"),
    "readsb": (f"{_HERE}.receivers.readsb:Readsb", ("via",), ""),
    "opensky": (f"{_HERE}.tables.opensky:OpenSky", ("via",), ""),
    "mavlink": (f"{_HERE}.vehicles.mavlink:Mavlink", ("via",), "mavlink"),
    "can": (f"{_HERE}.vehicles.can:Can", ("via", "map"), "can"),
    "bluesky": (f"{_HERE}.bluesky.adapter:BlueSky", ("via", "times"), "bluesky"),
}


def make_feed(source: Source) -> Feed:
    """A fresh feed for a connection to this source. Raises ModuleNotFoundError, saying what to install."""
    where, keys, extra = ADAPTERS[source.type]
    module, _, name = where.partition(":")
    make: Callable[..., Feed] = getattr(import_module(module), name)
    try:
        return make(**{key: getattr(source, key) for key in keys})
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'a source of type "{source.type}" needs {error.name}: pip install "watchkeeper[{extra}]"'
        ) from error
