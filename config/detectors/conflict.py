"""Settings of the detector `conflict`, which gives evidence for the kinds `conflict` and `los`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.detectors.kinds import KindMinima, KindPreset
from watchkeeper.config.detectors.volumes import PLAIN, VOLUMES, Preset, Volume
from watchkeeper.config.section import Flag, Section, about, spell, tables, text


class Zone(Section, frozen=True, kw_only=True):
    """Other minima in an area, in an altitude band, or in both.

    Without `lat`, `lon` and `radius_nm` a zone is everywhere, without `floor_ft` and `ceiling_ft` at every level. The
    first zone in the file that holds an aircraft applies to it; in none, the minima of `[detectors.conflict]` do. Of a
    pair the larger minima count: 3 NM is enough only where both may have it. An aircraft of unknown altitude is in no
    zone that has a floor or a ceiling.
    """

    name: Annotated[str, text("for people", pattern=r"\S", form="text that is not blank")]
    lat: Annotated[float, about("deg", "latitude of the centre, north", ge=-90, le=90)] | None = None
    lon: Annotated[float, about("deg", "longitude of the centre, east", ge=-180, le=180)] | None = None
    radius_nm: Annotated[float, about("NM", "distance from the centre; 0: everywhere", ge=0, le=2000)] = 0.0
    # the ranges of the two leave room for each other's default: only two written values can clash
    floor_ft: Annotated[float, about("ft", "from this altitude on; -2000: no floor", ge=-2000, le=99_900)] = -2000.0
    ceiling_ft: Annotated[float, about("ft", "below this altitude; 100_000: no ceiling", ge=-1900, le=100_000)] = (
        100_000.0
    )
    preset: (
        Annotated[Preset, text("minima by the name of the airspace (docs/detectors/conflict.md); keys below go first")]
        | None
    ) = None
    separation_nm: (
        Annotated[float, about("NM", "horizontal minimum in the zone; needed without a preset", ge=0.01, le=50)] | None
    ) = None
    vertical_ft: (
        Annotated[float, about("ft", "vertical minimum in the zone; without it and a preset 1000", ge=10, le=10_000)]
        | None
    ) = None
    tau_s: (
        Annotated[
            float,
            about("s", "closing in, the modified tau to the horizontal minimum must be longer than this", ge=0, le=300),
        ]
        | None
    ) = None

    @property
    def volume(self) -> Volume:
        """The minima that hold in the zone: what is written, then those of the preset."""
        preset = PLAIN if self.preset is None else VOLUMES[self.preset]
        written = (self.separation_nm, self.vertical_ft, self.tau_s)
        return Volume(*(one if one is not None else other for one, other in zip(written, preset, strict=True)))

    def clashes(self) -> Iterator[tuple[str, str]]:
        """No minimum, a band upside down, or half a place."""
        if self.separation_nm is None and self.preset is None:
            yield "separation_nm", "missing: a zone has a separation_nm or a preset"
        if self.floor_ft >= self.ceiling_ft:
            yield "floor_ft", f"not below ceiling_ft, which is {spell(self.ceiling_ft)}"
        for name, angle_deg in (("lat", self.lat), ("lon", self.lon)):
            if self.radius_nm > 0 and angle_deg is None:
                yield name, "missing: a zone with a radius_nm has a centre"
        if self.radius_nm == 0 and (self.lat, self.lon) != (None, None):
            yield "radius_nm", "missing: with lat and lon it must be more than 0 (leave all three out for everywhere)"


class Conflict(Section, frozen=True):
    """Predicted loss of separation between two aircraft."""

    enabled: Flag = True
    horizon_s: Annotated[
        float, about("s", "how far ahead we look; straight-line prediction is poor beyond", ge=1, le=1800, live=True)
    ] = 120.0
    separation_nm: Annotated[
        float,
        about(
            "NM",
            "horizontal minimum; exactly this much is separated (5 en route, 3 terminal)",
            ge=0.01,
            le=50,
            live=True,
        ),
    ] = 5.0
    vertical_ft: Annotated[
        float, about("ft", "vertical minimum; exactly this much is separated", ge=10, le=10_000, live=True)
    ] = 1000.0
    altitude_step_ft: Annotated[
        float,
        about(
            "ft",
            "altitudes come in steps: one step less than the vertical minimum is still the minimum",
            ge=0,
            le=200,
            live=True,
        ),
    ] = 25.0
    max_age_s: Annotated[
        float,
        about("s", "an aircraft unheard for longer is not extrapolated and cannot conflict", ge=1, le=300, live=True),
    ] = 15.0
    probability: Annotated[
        float,
        about(
            "",
            "probability of losing separation within the horizon that counts as a conflict, when the loss is near",
            ge=0.05,
            le=1,
            live=True,
        ),
    ] = 0.6
    high_ratio: Annotated[
        float,
        about(
            "ratio",
            "from 24,500 ft on so many times `probability` is enough: few pairs there are doubtful",
            ge=0.1,
            le=1,
            live=True,
        ),
    ] = 0.85
    turn_hold_s: Annotated[
        float, about("s", "a turn is expected to go on for this long, then to end", ge=0, le=120, live=True)
    ] = 20.0
    level_off: Annotated[
        float,
        about(
            "",
            "probability that who closes in vertically stops short of the other's level, if nothing says",
            ge=0,
            le=1,
            live=True,
        ),
    ] = 0.2
    act_s: Annotated[
        float,
        about(
            "s",
            "below 24,500 ft a loss so much further ahead must be e times as probable: much happens before it",
            ge=10,
            le=1e6,
            live=True,
        ),
    ] = 180.0
    act_high_s: Annotated[
        float,
        about(
            "s",
            "the same from 24,500 ft on, where flight is straight and waiting tells little",
            ge=10,
            le=1e6,
            live=True,
        ),
    ] = 4000.0
    probability_far: Annotated[
        float,
        about(
            "", "no loss must be more probable than this, or than `probability`, however far", ge=0.05, le=1, live=True
        ),
    ] = 0.85
    caution_s: Annotated[
        float,
        about("s", "time to loss of separation below which an advisory becomes a caution", ge=0, le=1800, live=True),
    ] = 60.0
    warning_s: Annotated[
        float, about("s", "time to loss of separation below which it becomes a warning", ge=0, le=1800, live=True)
    ] = 30.0
    warning_probability: Annotated[
        float,
        about("", "probability of the loss below which it is a caution, however soon", ge=0.05, le=1, live=True),
    ] = 0.8
    min_gs_kt: Annotated[
        float, about("kt", "slower aircraft without an on-ground flag count as parked", ge=0, le=200, live=True)
    ] = 30.0
    assume_same_level: Annotated[
        bool,
        text("take an aircraft of unknown altitude to be at everyone's level, instead of leaving it out", live=True),
    ] = False
    zones: Annotated[
        tuple[Zone, ...],
        tables("other minima in some areas or altitude bands; the first that applies counts", at_most=1000, live=True),
    ] = ()
    kinds: Annotated[
        tuple[KindMinima, ...],
        tables("minima between two kinds of vehicles; the first that fits counts", at_most=1000, live=True),
    ] = ()
    kind_presets: Annotated[
        tuple[KindPreset, ...],
        about("", "such minima by name (docs/detectors/conflict.md); tables of your own come first", live=True),
    ] = ("gliders", "drones", "ships")
    max_pairs: Annotated[
        int, about("pairs", "conflicting pairs followed at once; further ones are counted", ge=10, le=10_000_000)
    ] = 200_000
    debounce: Debounce = field(default_factory=lambda: Debounce(most_s=8.0, strong=1.45, clear_n=10, clear_ratio=0.6))


class Los(Section, frozen=True):
    """Separation lost now (same minima as `conflict`)."""

    enabled: Flag = True
    debounce: Debounce = field(default_factory=lambda: Debounce(n=2, m=3, clear_n=3))
