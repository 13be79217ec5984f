"""Every adapter: the project's own, one line each, and those of other installed packages.

A package adds one by an entry point in the group `watchkeeper.adapters` whose object is an AdapterDeclaration. Its type
of `[[sources]]` and its file formats are then known everywhere, and nothing has to be called first: `make_feed` and
`formats` look by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType

from watchkeeper.config.adapters import GROUP, source_types
from watchkeeper.config.adapters.base import Source
from watchkeeper.config.installed import installed
from watchkeeper.streams.adapters.base import AdapterDeclaration, Feed, resolve
from watchkeeper.streams.logs.base import COLUMNS, Format, Target

_LOGS = "watchkeeper.streams.logs"
WKLOG = AdapterDeclaration(
    name="wklog",
    help="recordings of `watchkeeper record`",
    docs="logs.md",
    # every version of a .wklog starts like this, so that a newer one is told apart from "not a log"
    formats=(Format("wklog", f"{_LOGS}.wklog:LogReader", (".wklog",), b"WKLOG"),),
    targets=(
        Target(
            name="wklog", help="small, exact, fast to read", writer=f"{_LOGS}.wklog:LogWriter", suffixes=(".wklog",)
        ),
    ),
)
CSV = AdapterDeclaration(
    name="csv",
    help="tables with one sample per row",
    docs="logs.md",
    formats=(Format("csv", f"{_LOGS}.csv:CsvLog", (".csv", ".csv.gz")),),
    targets=(
        Target(
            name="csv",
            help="a row per sample, for everything that reads tables",
            writer=f"{_LOGS}.csv_write:CsvWriter",
            suffixes=(".csv", ".csv.gz"),
            takes=(COLUMNS,),
        ),
    ),
)

_HERE = "watchkeeper.streams.adapters"
BUILT_IN: tuple[str, ...] = (
    f"{_HERE}.catalog:WKLOG",
    f"{_HERE}.catalog:CSV",
    f"{_HERE}.messages.adapter:MESSAGES",
    f"{_HERE}.receivers.sbs:SBS",
    f"{_HERE}.receivers.modes:BEAST",
    f"{_HERE}.receivers.modes:AVR",
    f"{_HERE}.receivers.readsb:READSB",
    f"{_HERE}.receivers.gdl90:GDL90",
    f"{_HERE}.receivers.asterix:ASTERIX",
    f"{_HERE}.receivers.ogn:OGN",
    f"{_HERE}.receivers.ais:AIS",
    f"{_HERE}.receivers.remoteid:REMOTEID",
    f"{_HERE}.navigation.nmea:NMEA",
    f"{_HERE}.navigation.gpsd:GPSD",
    f"{_HERE}.navigation.ubx:UBX",
    f"{_HERE}.tables.opensky:OPENSKY",
    f"{_HERE}.tables.parquet:PARQUET",
    f"{_HERE}.vehicles.mavlink:MAVLINK",
    f"{_HERE}.vehicles.ulog:ULOG",
    f"{_HERE}.vehicles.rosbag:ROS",
    f"{_HERE}.vehicles.can:CAN",
    f"{_HERE}.vehicles.dataflash:DATAFLASH",
    f"{_HERE}.bluesky.adapter:BLUESKY",
    f"{_HERE}.tables.traffic:TRAFFIC",
    f"{_HERE}.exports.mcap:MCAP",
    f"{_HERE}.exports.geojson:GEOJSON",
    f"{_HERE}.exports.kml:KML",
)


@cache
def discover() -> Mapping[str, AdapterDeclaration]:
    """Every adapter by name. Raises GuestError for a package whose adapter cannot be used."""
    found: dict[str, AdapterDeclaration] = {}
    for where in BUILT_IN:
        declaration: AdapterDeclaration = resolve(where)
        found[declaration.name] = declaration
    for component in installed(GROUP):
        guest = component.value
        if not isinstance(guest, AdapterDeclaration):
            raise component.refused(f"expected an AdapterDeclaration, got a {type(guest).__name__}")
        if guest.name in found:
            raise component.refused(f'there is another adapter called "{guest.name}"')
        known = [known for declaration in found.values() for known in declaration.formats]
        for new in guest.formats:
            if other := _hidden_by(new, known):
                raise component.refused(f"its files {new.name!r} would be read as {other.name!r}; see `holds`")
        written = [target for declaration in found.values() for target in declaration.targets]
        for new_target in guest.targets:
            if taken := _taken_by(new_target, written):
                raise component.refused(f"its target {new_target.name!r} has the name or an ending of {taken.name!r}")
        found[guest.name] = guest
    source_types()  # the configuration knows the same packages, and finds what is wrong with their settings
    return MappingProxyType(found)


@cache
def formats() -> tuple[Format, ...]:
    """Every format in the order in which they are tried: those that look into the file first."""
    every = [known for declaration in discover().values() for known in declaration.formats]
    return tuple(sorted(every, key=lambda known: not known.holds))


@cache
def targets() -> tuple[Target, ...]:
    """Every kind of file that can be written."""
    return tuple(target for declaration in discover().values() for target in declaration.targets)


def make_feed(source: Source) -> Feed:
    """A fresh feed for a connection to this source. Raises ModuleNotFoundError, saying what to install."""
    adapter = discover()[source.type]
    make: Callable[..., Feed] = resolve(adapter.feed)
    try:
        if missing := [package for module, package in adapter.needs.items() if find_spec(module) is None]:
            raise ModuleNotFoundError(f"no {missing[0]}", name=missing[0])
        return make(**{key: getattr(source, key) for key in adapter.takes})
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'a source of type "{source.type}" needs {error.name}: pip install "{adapter.extra}"'
        ) from error


def rehearse(source: Source) -> None:
    """Put the adapter's own sample through a feed, so that what it compiles and imports is ready before bytes come."""
    sample = discover()[source.type].sample
    assert sample is not None
    feed = make_feed(source)
    feed.push(sample.data, 0.0)
    feed.take()


def _hidden_by(new: Format, known: Iterable[Format]) -> Format | None:
    """A format that reads every file of the new one before that is asked, or that has its name."""
    for other in known:
        if other.name == new.name:
            return other
        told = new.magic.startswith(other.magic) if other.magic else not new.magic and _ends_alike(new, other)
        if told and bool(other.holds) >= bool(new.holds) and set(other.holds) <= set(new.holds):
            return other
    return None


def _ends_alike(new: Format, other: Format) -> bool:
    return any(suffix.endswith(other.suffixes) for suffix in new.suffixes)


def _taken_by(new: Target, known: Iterable[Target]) -> Target | None:
    """A target with the same name, or with an ending of the new one."""
    return next((other for other in known if other.name == new.name or set(other.suffixes) & set(new.suffixes)), None)
