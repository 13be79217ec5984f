"""Episodes made by hand, for the corners of the definitions: two aircraft abreast whose distance a picture gives.

Both fly north at the same speed, so that the closest approach is now, and the distance of each step is what one picture
says: `#` 3 NM (conflict and loss), `t` 5.5 NM (a threat, no conflict), `c` 12 NM, `.` 20 NM. A second picture has the
commands of the western aircraft: `.` none, `R` and `L` 10 degrees, `+` and `-` exactly 2, `r` and `l` exactly 3, `s`
exactly 5 kt.
Aircraft that face each other instead close at 500 kt, 16.7 NM in the horizon: 12 NM is a conflict without a loss.
The eastern one jumps sideways from step to step, which no formula of the metrics minds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from second.episodes import NM_PER_DEG

DISTANCE_NM = {"#": 3.0, "t": 5.5, "c": 12.0, ".": 20.0}
COMMAND = {
    ".": [0.0, 0.0],
    "R": [10.0, 0.0],
    "L": [-10.0, 0.0],
    "+": [2.0, 0.0],
    "-": [-2.0, 0.0],
    "r": [3.0, 0.0],
    "l": [-3.0, 0.0],
    "s": [0.0, 5.0],
}


@dataclass(frozen=True, slots=True)
class Edge:
    """An episode for one corner, and the settings that it is about."""

    trajectory: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


def two_aircraft(
    distances_nm: list[float], commands: list[list[float]], step_s: float = 10.0, *, facing: bool = False
) -> dict[str, Any]:
    """Two aircraft on the equator, at these distances, abreast or facing; commands are those of the western one."""
    steps = len(distances_nm)
    headings_deg = {"A1": 90.0, "A2": 270.0} if facing else {"A1": 0.0, "A2": 0.0}
    return {
        "positions": [{"A1": [0.0, 0.0], "A2": [0.0, nm / NM_PER_DEG]} for nm in distances_nm],
        "actions": [{"A1": list(command)} for command in commands],
        "timestamps": [step_s * t for t in range(steps)],
        "agents": {
            name: {"headings": [heading_deg] * steps, "speeds": [250.0] * steps}
            for name, heading_deg in headings_deg.items()
        },
    }


def pictured(distances: str, commands: str = "", step_s: float = 10.0, *, facing: bool = False) -> dict[str, Any]:
    """The episode of two pictures; without a second one there are no commands."""
    commands = commands or "." * len(distances)
    if len(commands) != len(distances):
        raise ValueError(f"{len(distances)} steps and {len(commands)} commands")
    return two_aircraft(
        [DISTANCE_NM[d] for d in distances], [COMMAND[c] for c in commands], step_s=step_s, facing=facing
    )


def _at_minimum(offset_m: float) -> dict[str, Any]:
    return two_aircraft([5.0 + offset_m / 1852.0] * 8, [COMMAND["R"]] * 8)


def _with_waypoints(trajectory: dict[str, Any], **waypoints: tuple[float, float]) -> dict[str, Any]:
    return {**trajectory, "waypoints": {name: {"lat": lat, "lon": lon} for name, (lat, lon) in waypoints.items()}}


def _vertical(difference_ft: float) -> dict[str, Any]:
    trajectory = pictured("..####..", "..RRRR..")
    for name, alt_ft in (("A1", 30000.0), ("A2", 30000.0 + difference_ft)):
        trajectory["agents"][name]["altitudes"] = [alt_ft] * 8
    return trajectory


def edges() -> dict[str, Edge]:
    """Every corner by name."""
    overlap = pictured("....###...###....", "....RRR...RRR....")
    within_long = "." * 8 + "RR" + "." * 50
    return {
        "conflict to the end": Edge(pictured("........####", "........RRRR")),
        "conflict up to 30 s before the end": Edge(pictured("......###...", "......RRR...")),
        "conflict predicted to the end, no loss": Edge(pictured("cccccccc", "RRRRRRRR", facing=True)),
        "conflict to the end, the loss before the last minute": Edge(pictured("##cccccccc", "RRRRRRRRRR", facing=True)),
        "short window after the conflict": Edge(pictured("####..........", "RRRR.........."), {"res_window_s": 30.0}),
        "conflict in every step": Edge(pictured("#####", "RRRRR")),
        "one step": Edge(pictured("#", "R")),
        "two steps": Edge(pictured("##", "RR")),
        "no conflict, no command": Edge(pictured("..........")),
        "alert without conflict": Edge(pictured("tttttttttt", "..RRR.....")),
        "command without threat": Edge(pictured("..........", "..RRR.....")),
        "dead zone exactly": Edge(pictured("..........", "+-+-+-+...")),
        "thresholds exactly": Edge(pictured("##########", "rr..ll..ss")),
        "one command in three is no alert": Edge(pictured("#########", "R..R..R..")),
        "two commands in three are one": Edge(pictured("#########", "R.R......")),
        "expansions overlap": Edge(overlap),
        "expansions overlap and are merged": Edge(overlap, {"merge_overlapping": True}),
        "expansions touch": Edge(pictured("..##......##......", "..RR......RR......"), {"merge_overlapping": True}),
        "two alerts, the same IoU": Edge(pictured("....." + "#" * 20 + ".....", "......RR........RR............")),
        "IoU exactly the threshold": Edge(pictured("..." + "#" * 54 + "...", within_long)),
        "IoU just below the threshold": Edge(pictured("..." + "#" * 55 + "...", within_long + ".")),
        "two conflicts, one alert": Edge(pictured("tt#ttttttt#ttt", "..RRRRRRRRRR..")),
        "closest approach just inside": Edge(_at_minimum(-5.0)),
        "closest approach just outside": Edge(_at_minimum(5.0)),
        "vertical minimum exactly": Edge(_vertical(1000.0)),
        "just below the vertical minimum": Edge(_vertical(975.0)),
        "arrived from the start": Edge(_with_waypoints(pictured("####....", "RRRR...."), A1=(0.0, 0.0), A2=(1.0, 0.0))),
        "waypoint of one only": Edge(_with_waypoints(pictured("####....", "RRRR...."), A1=(1.0, 0.0))),
        "navigation is no alert": Edge(_with_waypoints(pictured("########", "RRRRRRRR"), A1=(0.0, 1.0))),
        "step of 30 s": Edge(pictured("..###.....", "..RRR.....", step_s=30.0)),
        "step of 7 s": Edge(pictured("......###.............", "......RRR.............", step_s=7.0)),
        "no timestamps": Edge({k: v for k, v in overlap.items() if k != "timestamps"}),
    }
