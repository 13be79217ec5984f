"""Settings of the detector `link`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.detectors.streams import Stream
from watchkeeper.config.section import Flag, Section, about


class Link(Section, frozen=True):
    """A link that got slow, lossy or thin, judged by each vehicle's own past."""

    enabled: Flag = True
    streams: Annotated[
        tuple[Stream, ...],
        about("", "kinds watched; adsb is left out because reception comes and goes with range", live=True),
    ] = ("gps", "imu")
    latency_s: Annotated[
        float,
        about(
            "s",
            "latency above (or below) the learned baseline that counts; a radio queue adds more",
            ge=0.01,
            le=60,
            live=True,
        ),
    ] = 0.2
    loss: Annotated[
        float,
        about("share", "missing samples that count; a gap of 2 s in the window is less", ge=0.05, le=0.95, live=True),
    ] = 0.3
    window_s: Annotated[float, about("s", "samples are counted over this long", ge=2, le=60, live=True)] = 10.0
    past_s: Annotated[
        float,
        about(
            "s", "memory of the learned baseline; it learns only while the link is healthy", ge=10, le=7200, live=True
        ),
    ] = 120.0
    min_past_s: Annotated[
        float, about("s", "a vehicle heard for less than this has no past to compare with", ge=1, le=3600, live=True)
    ] = 20.0
    caution_ratio: Annotated[
        float, about("ratio", "score over threshold at which an advisory becomes a caution", ge=1, le=1000, live=True)
    ] = 2.0
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=4, clear_n=5))
