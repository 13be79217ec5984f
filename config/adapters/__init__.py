"""One file per type of live source: its address and its other keys, each with default, range, unit and reason.

`source_types` has the project's own and those of other installed packages, so that `[[sources]]` of either is checked,
documented and listed alike. Nobody has to announce them first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from watchkeeper.config.adapters.ais import Ais
from watchkeeper.config.adapters.asterix import Asterix
from watchkeeper.config.adapters.avr import Avr
from watchkeeper.config.adapters.base import Source, type_of
from watchkeeper.config.adapters.beast import Beast
from watchkeeper.config.adapters.bluesky import BlueSky
from watchkeeper.config.adapters.can import Can
from watchkeeper.config.adapters.gdl90 import Gdl90
from watchkeeper.config.adapters.gpsd import Gpsd
from watchkeeper.config.adapters.mavlink import Mavlink
from watchkeeper.config.adapters.messages import Messages
from watchkeeper.config.adapters.nmea import Nmea
from watchkeeper.config.adapters.ogn import Ogn
from watchkeeper.config.adapters.opensky import OpenSky
from watchkeeper.config.adapters.readsb import Readsb
from watchkeeper.config.adapters.remoteid import RemoteId
from watchkeeper.config.adapters.sbs import Sbs
from watchkeeper.config.adapters.ubx import Ubx
from watchkeeper.config.installed import installed
from watchkeeper.config.section import columns

# Entry points of this group name an AdapterDeclaration (streams/adapters/base.py).
GROUP = "watchkeeper.adapters"
BUILT_IN: tuple[type[Source], ...] = (
    Messages,
    Sbs,
    Beast,
    Avr,
    Readsb,
    Gdl90,
    Asterix,
    Ogn,
    Ais,
    RemoteId,
    Nmea,
    Gpsd,
    Ubx,
    OpenSky,
    Mavlink,
    Can,
    BlueSky,
)


@cache
def source_types() -> Mapping[str, type[Source]]:
    """Every type of live source by its name. Raises GuestError for a package that cannot be used."""
    found: dict[str, type[Source]] = {type_of(section): section for section in BUILT_IN}
    for component in installed(GROUP):
        section = getattr(component.value, "settings", None)
        if section is None and hasattr(component.value, "formats"):
            continue  # it reads files only
        if not (isinstance(section, type) and issubclass(section, Source)):
            raise component.refused("its settings are no subclass of watchkeeper.config.adapters.base.Source")
        if (name := type_of(section)) in found:
            raise component.refused(f'there is another type of source called "{name}"')
        try:
            columns(section)
        except TypeError as error:
            raise component.refused(f"its settings: {error}") from error
        found[name] = section
    return MappingProxyType(found)
