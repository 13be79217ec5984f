"""Settings of the alarm `clock`. What counts as off is `time.clock_tolerance_s`."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.section import Flag, Section, about


class Clock(Section, frozen=True):
    """A sender whose time is off."""

    enabled: Flag = True
    clear_s: Annotated[
        float, about("s", "a clock is right again when it has agreed for this long", ge=1, le=3600, live=True)
    ] = 10.0
    lost_s: Annotated[
        float,
        about(
            "s", "an alarm about a sender that is not heard any more ends after this long", ge=1, le=86_400, live=True
        ),
    ] = 60.0
