"""Minima between kinds of vehicles: what two gliders, two ships or a drone and an aircraft keep between them.

preset     between                     horizontal  vertical  where from
gliders    two gliders                 0.05 NM     100 ft    chosen: in one thermal they circle 100 to 200 m apart
drones     a drone and an aircraft     0.33 NM     250 ft    ASTM F3442: 2,000 ft and 250 ft
           two drones                  0.05 NM     100 ft    chosen: some times what Remote ID may be off by
ships      two ships                   0.25 NM     -         chosen: twice to four times the length of most

A vehicle is what its `category` says (docs/messages.md); without one it is an aircraft. Of the tables of the
configuration, then of the presets, the first that is about both kinds counts, and goes before the minima of zones. A
ship is in conflict with nobody unless a table is about it: who flies does not keep clear of what is on the water.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from watchkeeper.config.detectors.volumes import VOLUMES
from watchkeeper.config.section import Name, Section, about, texts

What = Literal["aircraft", "rotorcraft", "glider", "balloon", "drone", "ship"]
WHATS: tuple[What, ...] = get_args(What)
KindPreset = Literal["gliders", "drones", "ships"]


class KindMinima(Section, frozen=True, kw_only=True):
    """Other minima between two kinds of vehicles, everywhere or in some zones."""

    between: Annotated[tuple[What, ...], about("", "the two kinds; of one kind twice, or of two")] = ()
    zones: Annotated[
        tuple[Name, ...],
        texts("names of zones: both must be in the same one of them; none: everywhere", form="names", at_most=100),
    ] = ()
    separation_nm: Annotated[float, about("NM", "horizontal minimum; 0: never in conflict", ge=0, le=50)]
    vertical_ft: Annotated[float, about("ft", "vertical minimum", ge=10, le=10_000)] = 1000.0
    tau_s: Annotated[
        float, about("s", "closing in, the modified tau to the horizontal minimum must be longer", ge=0, le=300)
    ] = 0.0

    def clashes(self) -> Iterator[tuple[str, str]]:
        """Not two kinds, or two aircraft."""
        if len(self.between) != 2:
            yield "between", "not two kinds"
        elif set(self.between) == {"aircraft"}:
            yield "between", "two aircraft have the minima of their zone, or of [detectors.conflict]"


_DRONES = VOLUMES["drones"]
KIND_PRESETS: dict[KindPreset, tuple[KindMinima, ...]] = {
    "gliders": (KindMinima(between=("glider", "glider"), separation_nm=0.05, vertical_ft=100.0),),
    "drones": (
        KindMinima(between=("drone", "drone"), separation_nm=0.05, vertical_ft=100.0),
        *(
            KindMinima(between=("drone", what), separation_nm=_DRONES.separation_nm, vertical_ft=_DRONES.vertical_ft)
            for what in WHATS
            if what not in ("drone", "ship")
        ),
    ),
    "ships": (KindMinima(between=("ship", "ship"), separation_nm=0.25),),
}


def unknown_zones(
    kinds: Sequence[Mapping[str, Any]], zones: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """Zones that tables name and nobody has written: value, message, what is allowed."""
    known = {zone.get("name") for zone in zones}
    for i, table in enumerate(kinds):
        for name in table.get("zones", ()):
            if name not in known:
                yield str(name), f"kinds[{i}] is about a zone that there is none of", "a name of [[…conflict.zones]]"
