"""Settings of `type = "bluesky"`: a simulation of air traffic."""

from __future__ import annotations

from typing import Annotated, Literal

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.section import about, text


class BlueSky(Source, frozen=True, kw_only=True, tag="bluesky"):
    """BlueSky, the air traffic simulator: one that runs, or one that is started with a scenario."""

    url: Annotated[
        str,
        text(
            "where it is",
            pattern=r"^bluesky://([^\s/:@]+:\d{1,5}/?|/\S*)$",
            form="a simulation: bluesky://HOST:PORT or bluesky:///SCENARIO.scn",
        ),
    ]
    times: Annotated[
        Literal["arrival", "message"],
        text("whose clock stamps the samples: ours at arrival, or the simulation's UTC"),
    ] = "arrival"
    period_s: Annotated[float, about("s", "time between samples", ge=0.1, le=60)] = 1.0
    commands: Annotated[str, text("bluesky:///: commands of its stack to begin with, separated by semicolons")] = ""
    speed: Annotated[float, about("", "bluesky:///: times as fast as real time", ge=0.1, le=1000)] = 1.0
