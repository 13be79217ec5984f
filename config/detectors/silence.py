"""Settings of the detector `silence`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.detectors.streams import Stream
from watchkeeper.config.section import Flag, Section, about


class Silence(Section, frozen=True):
    """A stream that stopped."""

    enabled: Flag = True
    streams: Annotated[
        tuple[Stream, ...],
        about("", "kinds watched; adsb is left out because aircraft leave coverage all the time", live=True),
    ] = ("gps", "imu")
    min_silence_s: Annotated[float, about("s", "never alarm before this long", ge=0.1, le=3600, live=True)] = 3.0
    factor: Annotated[
        float, about("intervals", "alarm after this many learned intervals between samples", ge=2, le=1000, live=True)
    ] = 10.0
    min_samples: Annotated[
        int,
        about(
            "samples", "a stream must have spoken this often before silence means anything", ge=2, le=10_000, live=True
        ),
    ] = 5
    debounce: Debounce = field(default_factory=lambda: Debounce(n=1, m=1, clear_n=1, min_on_s=0.0, lost_s=3600.0))
