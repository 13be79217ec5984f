"""The network as the user declares it: which vehicles are behind which gateway, and what each of them sends.

Everything here may be left out: a network is also learned from its streams (docs/detectors/incidents.md).
`clashes_between` are the rules between the tables, for the loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from watchkeeper.config.section import Name, Section, about, tables, text, texts

# Streams of which a vehicle has a sensor; the other kinds are commands and reports.
Sensor = Literal["adsb", "gps", "imu"]
WILDCARDS = "*?["


def is_pattern(name: str) -> bool:
    """Whether a declared name stands for any number of vehicles.

    >>> [is_pattern(name) for name in ("uav-1", "uav-*", "uav-?")]
    [False, True, True]
    """
    return any(mark in name for mark in WILDCARDS)


class DeclaredVehicles(Section, frozen=True, kw_only=True):
    """Vehicles that are expected, the gateway that they are behind and the streams that they send.

    A name without `*`, `?` or `[...]` is one vehicle, which is known before it was ever heard and is missed when it is
    not. A pattern applies to those that are heard; a vehicle's own name counts before any pattern, and of patterns the
    first.
    """

    names: Annotated[
        tuple[Name, ...],
        texts(
            "ids of vehicles, or patterns such as `uav-*`", form="ids or patterns, none of them blank", at_most=10_000
        ),
    ] = ()
    gateway: Annotated[str, text("the `via` of their samples; empty: not said, or straight to the broker")] = ""
    sensors: Annotated[tuple[Sensor, ...], about("", "streams that each of them sends")] = ("gps", "imu")

    def clashes(self) -> Iterator[tuple[str, str]]:
        """Nobody declared, or a gateway behind itself."""
        if not self.names:
            yield "names", "empty: a table declares one vehicle or pattern at least"
        if self.gateway and self.gateway in self.names:
            yield "gateway", "one of its own vehicles"


class Topology(Section, frozen=True):
    """The network as declared. Streams add to it, and where they contradict it they are believed, and counted."""

    wait_s: Annotated[
        float,
        about(
            "s",
            "a declared stream unheard for this long since the start is silent; 0: never",
            ge=0,
            le=86_400,
            live=True,
        ),
    ] = 60.0
    vehicles: Annotated[
        tuple[DeclaredVehicles, ...],
        tables("vehicles that are expected; see docs/detectors/incidents.md", at_most=1000, live=True),
    ] = ()


UNDECLARED = Topology()


def clashes_between(
    declared: Sequence[Mapping[str, Any]], max_vehicles: int, max_gateways: int
) -> Iterator[tuple[str, str, str]]:
    """What is wrong between tables that are each good by themselves: value, message, what is allowed."""
    place: dict[str, int] = {}
    for i, table in enumerate(declared):
        for name in table.get("names", ()):
            if not is_pattern(name) and place.setdefault(name, i) != i:
                yield (
                    name,
                    f"declared twice, in vehicles[{place[name]}] and vehicles[{i}]",
                    "one table for each vehicle",
                )
    gateways = dict.fromkeys(table["gateway"] for table in declared if table.get("gateway"))
    for gateway in gateways:
        if gateway in place:
            yield gateway, f"a gateway, and a vehicle in vehicles[{place[gateway]}]", "different names"
    if len(place) > max_vehicles:
        yield f"{len(place)} vehicles", "too many", f"up to fleet.max_vehicles, which is {max_vehicles:_}"
    if len(gateways) > max_gateways:
        yield f"{len(gateways)} gateways", "too many", f"up to limits.max_gateways, which is {max_gateways:_}"
