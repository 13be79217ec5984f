"""What is written for whom: which sources, which settings with which values, and what had to be assumed.

A variant names keys of the configuration; their defaults, ranges, units and reasons come from where they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shutil import which
from typing import Any, Literal, get_args

import msgspec

from watchkeeper.config.adapters import source_types
from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.daemon.init.airports import airports
from watchkeeper.daemon.init.airspace import propose
from watchkeeper.daemon.init.probe import HOST, Found, place_words
from watchkeeper.streams.adapters.catalog import make_feed

Variant = Literal["receiver", "drone", "simulator", "fleet"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
TITLES: dict[Variant, str] = {
    "receiver": "an ADS-B receiver: aircraft, their conflicts, spoofed tracks, interference",
    "drone": "drones over MAVLink, or their logs: GPS against IMU",
    "simulator": "a simulation of traffic or vehicles",
    "fleet": "vehicles and gateways that publish to a broker",
}
# Keys that are written for everybody, and those for one variant; in the order of the schema.
COMMON = (
    "profile", "broker.url", "broker.username", "topics.telemetry", "topics.output", "sinks.state_dir",
    "http.host", "http.port",
)  # fmt: skip
_CONFLICT = ("detectors.conflict.separation_nm", "detectors.conflict.vertical_ft", "detectors.conflict.horizon_s")
_VEHICLES = ("frames.local", "frames.body", "detectors.gps_imu.threshold", "detectors.silence.min_silence_s")
OWN: dict[Variant, tuple[str, ...]] = {
    "receiver": (*_CONFLICT, "detectors.gnss_interference.enabled", "detectors.silence.streams"),
    "drone": (*_VEHICLES, "detectors.silence.streams", "detectors.watch.reasons"),
    "simulator": ("time.wall_tolerance_s", *_VEHICLES, *_CONFLICT, "detectors.intent.enabled"),
    "fleet": ("topology.wait_s", *_VEHICLES, *_CONFLICT, "detectors.silence.streams", "diagnosis.enabled"),
}
# Where vehicles send to when nothing was heard, and where a ground station may forward to.
MAVLINK_PORT, FORWARDED_PORT = 14_550, 14_551


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One `[[sources]]` table; `off` says why it is written as a comment."""

    keys: Mapping[str, Any]
    off: str = ""


@dataclass(slots=True)
class Plan:
    """What to write: values that differ from the defaults, keys that are shown, sources, and what was assumed."""

    variant: Variant
    why: str
    values: dict[str, Any] = field(default_factory=dict)
    sources: list[SourceTable] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    zones: list[Zone] = field(default_factory=list)

    @property
    def keys(self) -> frozenset[str]:
        """The keys that the file shows."""
        return frozenset((*COMMON, *OWN[self.variant], *self.values))


def decide(found: Found) -> tuple[Variant, str]:
    """For whom, by what was found; and why, in words."""
    if found.log is not None:
        kinds = set(found.kinds)
        variant: Variant = "drone" if kinds & {"gps", "imu"} else "receiver"
        return variant, f"the log has {', '.join(found.kinds) or 'no samples'}"
    if found.document is not None or found.sbs or found.beast:
        return "receiver", "a receiver runs here"
    if found.mavlink:
        return "drone", "MAVLink comes in here"
    if found.bluesky:
        return "simulator", "BlueSky runs here"
    return "fleet", "a broker runs here" if found.mqtt or found.mqtts else "nothing was found that says otherwise"


def plan(found: Found, asked: Variant | None = None, at: tuple[float, float] | None = None) -> Plan:
    """What to write for what was found, and for what was asked; `at` is where the receiver is, if its owner says so."""
    variant, why = decide(found)
    made = Plan(asked or variant, "you asked for it" if asked else why)
    _broker(made, found)
    every = [*_receivers(made, found), *_vehicles(made, found), *_simulators(made, found)]
    made.sources = [_installed(source) for source in every]
    _zones(made, at or found.place)
    return made


def _zones(made: Plan, place: tuple[float, float] | None) -> None:
    """Terminal areas and airports around a receiver."""
    if made.variant != "receiver":
        return
    if place is None:
        made.assumed.append(
            "en-route minima everywhere: where the receiver is is not known; --at LAT,LON proposes zones for airports"
        )
        return
    made.zones = propose(place, airports())
    made.assumed.append(
        f"{len(made.zones)} zones around {place_words(place)} by a list of airports, not by the real airspace"
    )


def _broker(made: Plan, found: Found) -> None:
    made.values["broker.url"] = f"mqtt://{HOST}:{found.mqtt or 1883}"
    if not found.mqtt and found.mqtts:
        made.values["broker.url"] = f"mqtts://{HOST}:{found.mqtts}"
        made.assumed.append("the broker speaks TLS; its certificate must be for this address, or set broker.ca_file")
    elif not found.mqtt:
        start = "start one: mosquitto -d" if which("mosquitto") else "apt install mosquitto"
        made.assumed.append(f"a broker on port 1883 of this machine, where none answers now ({start})")


def _receivers(made: Plan, found: Found) -> list[SourceTable]:
    """Of one receiver only one format: the best of those that can be read."""
    tables = [
        *([{"type": "beast", "url": f"tcp://{HOST}:{found.beast}"}] if found.beast else []),
        *([{"type": "readsb", "url": found.document.as_uri()}] if found.document is not None else []),
        *([{"type": "sbs", "url": f"tcp://{HOST}:{found.sbs}"}] if found.sbs else []),
    ]
    if made.variant == "receiver" and not tables and found.log is None:
        tables = [{"type": "sbs", "url": f"tcp://{HOST}:30003"}]
        made.assumed.append("a receiver that serves BaseStation text on port 30003, where nothing answers now")
    sources = [SourceTable(keys) for keys in tables]
    usable = [source for source in sources if not _missing(source)]
    first = usable[0] if usable and made.variant == "receiver" else None
    off = "the same receiver again: one of its formats is enough" if first else "found here, and not asked for"
    return [source if source is first or _missing(source) else SourceTable(source.keys, off) for source in sources]


def _vehicles(made: Plan, found: Found) -> list[SourceTable]:
    wanted = made.variant == "drone" and found.log is None
    if not found.mavlink and not wanted:
        return []
    port = found.mavlink or next(port for port in (MAVLINK_PORT, FORWARDED_PORT) if port not in found.taken)
    host = HOST if found.mavlink else "0.0.0.0"  # noqa: S104  vehicles are not on this machine
    if not found.mavlink:
        other = " (a ground station has 14550: let it forward)" if port == FORWARDED_PORT else ""
        made.assumed.append(f"vehicles that send MAVLink to UDP port {port} of this machine{other}")
    off = "" if made.variant in ("drone", "simulator") else "found here, and not asked for"
    return [SourceTable({"type": "mavlink", "url": f"udp://{host}:{port}"}, off)]


def _simulators(made: Plan, found: Found) -> list[SourceTable]:
    if not found.bluesky and made.variant != "simulator":
        return []
    off = "" if found.bluesky and made.variant == "simulator" else "where BlueSky sends, if you run it"
    if made.variant == "simulator" and not found.bluesky and not found.mavlink:
        made.assumed.append("a simulator that publishes to the broker, as `watchkeeper simulate --to-mqtt` does")
    return [SourceTable({"type": "bluesky", "url": f"bluesky://{HOST}:{found.bluesky or 11_000}"}, off)]


def _installed(source: SourceTable) -> SourceTable:
    missing = _missing(source)
    return SourceTable(source.keys, missing) if missing else source


def _missing(source: SourceTable) -> str:
    """What must be installed before a source can be read; empty: nothing."""
    section = source_types()[source.keys["type"]]
    try:
        make_feed(msgspec.convert(dict(source.keys), section))
    except ModuleNotFoundError as error:
        return str(error)
    return ""
