"""Settings of the detector `signal`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Name, Section, about, tables, texts

Preset = Literal["battery", "temperature", "motors", "gps", "vibration"]
# Limits that no number reaches.
NO_LIMIT = 1e18


class SignalLimit(Section, frozen=True, kw_only=True):
    """What some signals cannot be while all is well."""

    names: Annotated[
        tuple[Name, ...],
        texts("names of signals, or patterns such as `*cell_v*`", form="names or patterns, none blank", at_most=1000),
    ] = ()
    low: Annotated[float, about("", "the least value that is well", ge=-NO_LIMIT, le=NO_LIMIT)] = -NO_LIMIT
    high: Annotated[float, about("", "the greatest value that is well", ge=-NO_LIMIT, le=NO_LIMIT)] = NO_LIMIT
    armed: Annotated[
        bool,
        about("", "judge only while the vehicle is armed, and only after the value has been inside since then"),
    ] = False
    others: Annotated[
        bool,
        about(
            "", "judge only while another signal of the same table is inside: one motor that stands, not all of them"
        ),
    ] = False
    severity: Annotated[
        Literal["advisory", "caution", "warning"], about("", "how severe a value beyond the limits is")
    ] = "caution"

    def clashes(self) -> Iterator[tuple[str, str]]:
        """Limits for nobody, or that nothing meets."""
        if not self.names:
            yield "names", "empty: a table is about one signal or pattern at least"
        if self.low > self.high:
            yield "low", "above high"


class Season(Section, frozen=True, kw_only=True):
    """Signals that go up and down by themselves, a day or a stroke long."""

    names: Annotated[
        tuple[Name, ...],
        texts(
            "names of signals, or patterns such as `*cabin*temp*`", form="names or patterns, none blank", at_most=1000
        ),
    ] = ()
    period_s: Annotated[float, about("s", "after how long it comes again", ge=1, le=604_800)] = 86_400.0
    steps: Annotated[
        int, about("values", "a period is looked at so many times; a model remembers two periods", ge=4, le=1440)
    ] = 48

    def clashes(self) -> Iterator[tuple[str, str]]:
        """A season of nobody."""
        if not self.names:
            yield "names", "empty: a table is about one signal or pattern at least"


class Signal(Section, frozen=True):
    """A number that is not what it used to be. It costs nothing while no vehicle sends signals."""

    enabled: Flag = True
    presets: Annotated[
        tuple[Preset, ...],
        about("", "known limits of usual signals by name (docs/detectors/signal.md); limits of your own come first"),
    ] = ("battery", "temperature", "motors", "gps", "vibration")
    limits: Annotated[
        tuple[SignalLimit, ...],
        tables("known limits of signals; of several that fit a name the first counts", at_most=1000),
    ] = ()
    seasons: Annotated[
        tuple[Season, ...],
        tables(
            "signals with a season, which a model of the extra `river` forecasts; of several that fit the first counts",
            at_most=100,
        ),
    ] = ()
    season_budget: Annotated[
        int,
        about(
            "values",
            "what the seasons of one vehicle may take a tick, about 0.1 ms each; more are left out and counted",
            ge=1,
            le=1000,
        ),
    ] = 8
    limits_only: Annotated[
        tuple[Name, ...],
        texts(
            "signals of which only known limits are judged: names or patterns",
            form="names or patterns, none blank",
            at_most=1000,
        ),
    ] = ("*_count", "*counter*", "*timestamp*", "*_id", "*seq*")
    max_signals: Annotated[
        int,
        about(
            "signals",
            "of all vehicles together; as the table fills, each vehicle may take at most a sixteenth of what is left",
            ge=100,
            le=10_000_000,
        ),
    ] = 200_000
    max_per_vehicle: Annotated[
        int, about("signals", "of one vehicle; further names are counted and not judged", ge=1, le=10_000)
    ] = 256
    level_s: Annotated[float, about("s", "memory of a signal's level", ge=0.05, le=600)] = 2.0
    fast_s: Annotated[
        float, about("s", "over how long noise, and agreement with the partner, are averaged", ge=0.1, le=600)
    ] = 5.0
    memory_s: Annotated[
        float, about("s", "memory of what is usual: errors, slow level, partners; gaps fade with it", ge=10, le=86_400)
    ] = 120.0
    learn_s: Annotated[
        float, about("s", "a signal heard for less than this is judged by known limits only", ge=1, le=3600)
    ] = 30.0
    settle_s: Annotated[
        float,
        about("s", "after arming, disarming or a new mode only known limits are judged for this long", ge=0, le=600),
    ] = 5.0
    relearn_s: Annotated[
        float, about("s", "a new level that has lasted for this long is taken as normal", ge=1, le=86_400)
    ] = 60.0
    margin: Annotated[
        float,
        about("ratio", "how far beyond its own running 99 % quantile a statistic counts", ge=1, le=100, live=True),
    ] = 2.0
    stuck_s: Annotated[
        float, about("s", "a number that always changes is stuck after this long at the earliest", ge=0.1, le=3600)
    ] = 5.0
    gap_s: Annotated[
        float,
        about("s", "a signal is missed this long after the vehicle's others at the earliest", ge=0.1, le=3600),
    ] = 5.0
    caution_ratio: Annotated[
        float, about("ratio", "score over threshold at which an advisory becomes a caution", ge=1, le=1000, live=True)
    ] = 2.0
    debounce: Debounce = field(
        default_factory=lambda: Debounce(n=5, m=5, least_s=1.0, most_s=8.0, strong=5.0, clear_n=5, lost_s=120.0)
    )
