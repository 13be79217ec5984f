"""Settings of the detector `gnss_interference`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Section, about


class GnssInterference(Section, frozen=True):
    """Many aircraft in one area whose own accuracy reports collapse together: jamming, or spoofing that they notice."""

    enabled: Flag = True
    nacp_min: Annotated[
        int,
        about(
            "category",
            "NACp below this is poor: 8 is 93 m (95 %), the least that airspace rules ask",
            ge=1,
            le=11,
            live=True,
        ),
    ] = 8
    nic_min: Annotated[
        int,
        about(
            "category", "NIC below this is poor: 7 is 370 m, the least that airspace rules ask", ge=1, le=11, live=True
        ),
    ] = 7
    drop: Annotated[
        float,
        about(
            "categories", "a collapse is at least this much worse than the aircraft's own past", ge=1, le=11, live=True
        ),
    ] = 3.0
    past_s: Annotated[
        float,
        about(
            "s",
            "memory of what an aircraft reports while it is well; a longer break ends it",
            ge=10,
            le=7200,
            live=True,
        ),
    ] = 600.0
    min_past_s: Annotated[
        float, about("s", "an aircraft heard for less than this has no past to compare with", ge=0, le=3600, live=True)
    ] = 60.0
    accept_s: Annotated[
        float,
        about("s", "a collapse of one aircraft that lasts longer becomes its new normal", ge=60, le=86_400, live=True),
    ] = 3600.0
    max_age_s: Annotated[
        float, about("s", "an accuracy report older than this says nothing about now", ge=1, le=300, live=True)
    ] = 30.0
    resolution: Annotated[
        int,
        about("", "H3 resolution of the cells: 3 has edges of 69 km, 4 of 26 km, 5 of 10 km", ge=2, le=7, live=True),
    ] = 4
    min_aircraft: Annotated[
        int,
        about(
            "aircraft",
            "fewer collapsed than this in a cell and its neighbours are no interference",
            ge=2,
            le=1000,
            live=True,
        ),
    ] = 3
    share: Annotated[
        float,
        about(
            "ratio",
            "collapsed aircraft over all that could tell, in a cell and its neighbours",
            ge=0.05,
            le=1,
            live=True,
        ),
    ] = 0.5
    hold_s: Annotated[
        float,
        about("s", "a cell stays part of its area for this long after it was last affected", ge=0, le=3600, live=True),
    ] = 60.0
    caution_aircraft: Annotated[
        int, about("aircraft", "collapsed aircraft at which an advisory becomes a caution", ge=2, le=100_000, live=True)
    ] = 6
    warning_aircraft: Annotated[
        int, about("aircraft", "collapsed aircraft at which it becomes a warning", ge=2, le=100_000, live=True)
    ] = 15
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=5, clear_n=10, min_on_s=30.0, lost_s=120.0))
