"""What must stay free around an aircraft, by airspace: presets that a zone of `conflict` chooses by name.

name              horizontal   vertical   where from
en-route          5 NM         1,000 ft   ICAO Doc 4444, 8.7.3 and 5.3.2: surveillance separation, levels to FL 410
terminal          3 NM         1,000 ft   the same: where the surveillance system allows it, near the antenna
airport           0.5 NM       500 ft     chosen: circuits, visual and parallel approaches keep less than 3 NM on
                                          purpose; half a mile and half the level between two is worth a look
drones            0.33 NM      250 ft     ASTM F3442: 2,000 ft and 250 ft between a small drone and an aircraft
daa-well-clear    0.66 NM      450 ft     RTCA DO-365B: DMOD and HMD 4,000 ft, ZTHR 450 ft, tau_mod 35 s
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Preset = Literal["en-route", "terminal", "airport", "drones", "daa-well-clear"]


class Volume(NamedTuple):
    """Minima of one preset. `tau_s`: closing in, the time to the horizontal minimum (tau_mod) must be longer too."""

    separation_nm: float
    vertical_ft: float
    tau_s: float = 0.0


# 4,000 ft and 2,000 ft, in NM.
_DMOD_NM, _SMALL_NM = 4000.0 * 0.3048 / 1852.0, 2000.0 * 0.3048 / 1852.0
VOLUMES: dict[Preset, Volume] = {
    "en-route": Volume(5.0, 1000.0),
    "terminal": Volume(3.0, 1000.0),
    "airport": Volume(0.5, 500.0),
    "drones": Volume(_SMALL_NM, 250.0),
    "daa-well-clear": Volume(_DMOD_NM, 450.0, 35.0),
}
PRESETS: tuple[Preset, ...] = get_args(Preset)
# What a zone without a preset has where it says nothing.
PLAIN = VOLUMES["en-route"]
