"""Settings of the detector `emergency`: codes and states that a crew declares, and advisories of TCAS."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Section, about

Declared = Literal["unlawful", "no_radio", "general", "minimum_fuel", "downed"]


class Emergency(Section, frozen=True):
    """An emergency that the crew declares by transponder."""

    enabled: Flag = True
    causes: Annotated[
        tuple[Declared, ...],
        about(
            "",
            "what raises an alarm: unlawful (7500), no_radio (7600), general (7700), and minimum_fuel and downed, "
            "which have no code of their own",
            live=True,
        ),
    ] = ("unlawful", "no_radio", "general", "minimum_fuel", "downed")
    # Knobs are turned one after the other, so other codes pass through an emergency code for a second or two: two
    # reports, and 4 s. Where only radars ask for the code it comes with every turn of theirs, 4 to 12 s apart.
    debounce: Debounce = field(
        default_factory=lambda: Debounce(n=2, m=2, least_s=4.0, clear_n=2, min_on_s=0.0, bridge_s=60.0, lost_s=120.0)
    )


class TcasRa(Section, frozen=True):
    """A resolution advisory of an aircraft's collision avoidance system."""

    enabled: Flag = True
    # A lone one may be another register that looks alike; an advisory lasts a quarter of a minute or longer.
    debounce: Debounce = field(
        default_factory=lambda: Debounce(n=2, m=3, clear_n=2, min_on_s=0.0, bridge_s=30.0, lost_s=60.0)
    )
