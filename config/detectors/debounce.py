"""How scores become alarms: N of M measurement epochs, with hysteresis. Every kind of alarm has one such rule.

N epochs of a feed that reports every 5 s are five times as long as those of one that reports every second. So a rule
has a least and a most time as well, and between them a sequential test: strong evidence counts for several epochs.
"""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.section import Section, about


class Debounce(Section, frozen=True):
    """From scores to alarms. Everything counts measurement epochs: new evidence, never one reading used twice."""

    n: Annotated[
        int, about("epochs", "how many of the last m must be over the threshold to raise", ge=1, le=64, live=True)
    ] = 5
    m: Annotated[int, about("epochs", "window for n; n = m means n in a row", ge=1, le=64, live=True)] = 5
    least_s: Annotated[
        float,
        about(
            "s", "no alarm sooner than this after the first epoch that counts, however strong", ge=0, le=600, live=True
        ),
    ] = 0.0
    most_s: Annotated[
        float,
        about(
            "s",
            "evidence that has lasted this long raises an alarm, if there were two epochs or more of it; 0: never",
            ge=0,
            le=600,
            live=True,
        ),
    ] = 0.0
    strong: Annotated[
        float,
        about(
            "ratio",
            "a score this many times the threshold counts as n epochs, one at the threshold as 1, between them in "
            "proportion; 0: every epoch counts as 1",
            ge=0,
            le=1000,
            live=True,
        ),
    ] = 0.0
    clear_n: Annotated[
        int, about("epochs", "this many in a row under the clearing level to clear", ge=1, le=64, live=True)
    ] = 5
    clear_ratio: Annotated[
        float, about("ratio", "clearing level over raising threshold: the hysteresis", ge=0.05, le=1.0, live=True)
    ] = 0.8
    min_on_s: Annotated[
        float, about("s", "an alarm stays up at least this long, so that people can see it", ge=0, le=3600, live=True)
    ] = 5.0
    rise_s: Annotated[
        float,
        about(
            "s",
            "evidence more severe than an active alarm must have lasted this long before the alarm is shown as more "
            "severe; 0: at once",
            ge=0,
            le=60,
            live=True,
        ),
    ] = 0.0
    bridge_s: Annotated[
        float,
        about(
            "s",
            "a gap between epochs up to this long is bridged; a longer one starts the count again",
            ge=0.1,
            le=3600,
            live=True,
        ),
    ] = 15.0
    lost_s: Annotated[
        float,
        about(
            "s", "an active alarm with no new evidence for this long ends as out_of_sight", ge=1, le=86_400, live=True
        ),
    ] = 60.0
