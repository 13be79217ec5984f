"""Alerts read from the commands: large enough, not navigation, and with a threat; then debounced and widened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from second.geometry import State, drift_deg, tcpa_dcpa, vertically_apart
from second.log import Log


@dataclass(frozen=True, slots=True)
class Alert:
    """A command of one aircraft that counts as an alert, and the threat that it answers."""

    step: int
    name: str
    tcpa_s: float
    dcpa_nm: float
    # Distance of closest approach with the same intruder, had the command been carried out at once.
    commanded_dcpa_nm: float


def above_threshold(command: tuple[float, float], log: Log) -> bool:
    heading_deg, speed_kt = command
    settings = log.settings
    return abs(heading_deg) >= settings.heading_threshold_deg or abs(speed_kt) >= settings.speed_threshold_kt


def navigates(log: Log, name: str, state: State, turn_deg: float) -> bool:
    """Whether the turn brings the nose nearer to the waypoint by more than the limit."""
    waypoint = log.waypoint(name)
    if waypoint is None:
        return False
    before_deg = drift_deg(state.heading_deg, state.lat, state.lon, waypoint)
    after_deg = drift_deg(state.heading_deg + turn_deg, state.lat, state.lon, waypoint)
    return before_deg - after_deg > log.settings.navigation_deg


def worst_intruder(log: Log, name: str, states: dict[str, State]) -> tuple[float, float, State] | None:
    """TCPA (s), DCPA (NM) and state of the aircraft with the smallest DCPA; the first by name wins a tie."""
    settings = log.settings
    worst: tuple[float, float, State] | None = None
    for other_name, other in states.items():
        if other_name == name:
            continue
        if "threat" in settings.vertical_for and vertically_apart(states[name], other, settings.vertical_ft):
            continue
        tcpa_s, dcpa_nm = tcpa_dcpa(states[name], other, settings.horizon_s, settings.earth_radius_km)
        if worst is None or dcpa_nm < worst[1]:
            worst = (tcpa_s, dcpa_nm, other)
    return worst


def counted_alerts(log: Log) -> list[Alert]:
    """Every command that counts, before debounce."""
    settings = log.settings
    counted = []
    for t in range(log.steps):
        states = log.states(t)
        for name, command in log.commands(t).items():
            if name not in states or not above_threshold(command, log):
                continue
            own = states[name]
            if navigates(log, name, own, command[0]):
                continue
            worst = worst_intruder(log, name, states)
            if worst is None or worst[1] > max(settings.separation_nm, settings.threat_nm):
                continue
            tcpa_s, dcpa_nm, intruder = worst
            turned = replace(own, heading_deg=own.heading_deg + command[0], speed_kt=own.speed_kt + command[1])
            _, commanded = tcpa_dcpa(turned, intruder, settings.horizon_s, settings.earth_radius_km)
            counted.append(Alert(t, name, tcpa_s, dcpa_nm, commanded))
    return counted


def alert_steps(log: Log, counted: list[Alert]) -> list[bool]:
    """`a`: the steps in alert, after debounce and widening."""
    if log.settings.debounce_per_agent:
        debounced = [False] * log.steps
        for name in log.names:
            own = debounce(_flags(log, [a for a in counted if a.name == name]), log)
            debounced = [one or other for one, other in zip(debounced, own, strict=True)]
    else:
        debounced = debounce(_flags(log, counted), log)
    return widen(debounced, log)


def _flags(log: Log, counted: list[Alert]) -> list[bool]:
    steps = {alert.step for alert in counted}
    return [t in steps for t in range(log.steps)]


def debounce(flags: list[bool], log: Log) -> list[bool]:
    """True where at least n of the last m steps are; the step itself is one of the m."""
    n, m = log.settings.debounce_n, log.settings.debounce_m
    return [sum(flags[max(0, t - m + 1) : t + 1]) >= n for t in range(len(flags))]


def widen(flags: list[bool], log: Log) -> list[bool]:
    """A true step makes those before and after it true: `lag_pre_steps` and `lag_post_steps` of them."""
    pre, post = log.settings.lag_pre_steps, log.settings.lag_post_steps
    return [any(flags[max(0, t - post) : t + pre + 1]) for t in range(len(flags))]
