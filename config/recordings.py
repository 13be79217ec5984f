"""Settings of recorded flight logs and bags."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.section import Name, Section, texts

_FORM = "names or patterns, none blank"


class Recordings(Section, frozen=True):
    """Which numbers of flight logs (PX4, ArduPilot) and ROS bags are signals."""

    signals: Annotated[
        tuple[Name, ...],
        texts(
            'besides the usual ones: `topic.field` by name or pattern, `sensor_baro.*`, `BARO.Temp`; `"*"`: everything',
            form=_FORM,
            at_most=1000,
        ),
    ] = ()
    without: Annotated[
        tuple[Name, ...], texts("not these, usual or not: names or patterns", form=_FORM, at_most=1000)
    ] = ()
