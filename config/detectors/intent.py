"""Settings of the detector `intent`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Section, about, text


class Intent(Section, frozen=True):
    """A controller that acts with no conflict ("ghost") or leaves one alone ("missed"); needs the action stream.

    Horizon, minima and `max_age_s` are those of `[detectors.conflict]`; its zones do not apply.
    """

    enabled: Flag = True
    step_s: Annotated[
        float, about("s", "how often commands are judged; a controller's own period", ge=1, le=300, live=True)
    ] = 10.0
    turn_deg: Annotated[float, about("deg", "smaller commanded turns are trimming", ge=0.1, le=180, live=True)] = 3.0
    speed_kt: Annotated[
        float, about("kt", "smaller commanded speed changes are trimming", ge=0.1, le=500, live=True)
    ] = 5.0
    ghost_needs_threat: Annotated[
        bool,
        text(
            "a deliberate command is a ghost only if an aircraft passes within 6 NM, as the evaluation counts it",
            live=True,
        ),
    ] = False
    response_s: Annotated[
        float, about("s", "a conflict without a command for this long is missed", ge=1, le=1800, live=True)
    ] = 30.0
    alert_n: Annotated[
        int, about("steps", "of the running tally: an alert is this many of alert_m", ge=1, le=64, live=True)
    ] = 2
    alert_m: Annotated[int, about("steps", "window for alert_n", ge=1, le=64, live=True)] = 3
    lag_steps: Annotated[
        int, about("steps", "of the tally: an alert counts this much longer at both ends", ge=0, le=64, live=True)
    ] = 1
    iou: Annotated[
        float,
        about(
            "ratio", "of the tally: overlap over union that makes an alert answer a conflict", ge=0.01, le=1, live=True
        ),
    ] = 0.1
    # the epochs are steps: two of three, as an alert is counted
    debounce: Debounce = field(default_factory=lambda: Debounce(n=2, m=3, clear_n=2, bridge_s=60.0, lost_s=120.0))
