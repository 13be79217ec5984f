"""Settings of the history: how often it samples, how long and how much it keeps."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.section import Flag, Section, about


class History(Section, frozen=True):
    """Alarms, tracks, scores and residuals of the last hours, in the state directory; the page and the API read it."""

    enabled: Flag = True
    period_s: Annotated[
        float,
        about("s", "each vehicle is sampled this often; aircraft fly 1.2 km in 5 s, which a track shows", ge=1, le=600),
    ] = 5.0
    alarm_period_s: Annotated[
        float, about("s", "the same while a vehicle has an alarm, where every measurement counts", ge=1, le=600)
    ] = 1.0
    hours: Annotated[
        float,
        about("h", "what is older than this is removed; a day shows what happened since yesterday", ge=0.1, le=8760),
    ] = 24.0
    max_mb: Annotated[
        int,
        about("MB", "disk; when full, the oldest goes. 2,000 aircraft fill some 20 MB an hour", ge=16, le=1_000_000),
    ] = 1024
