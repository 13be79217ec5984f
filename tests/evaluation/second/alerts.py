"""Alerts read from the commands: large enough, not navigation, and with a threat; then debounced and widened."""

from __future__ import annotations

from dataclasses import dataclass

from second.geometry import State, drift_deg, tcpa_dcpa, vertically_apart
from second.log import Log


@dataclass(frozen=True, slots=True)
class Alert:
    """A command of one aircraft that counts as an alert, and the threat that it answers."""

    step: int
    name: str
    intruder: str
    tcpa_s: float
    dcpa_nm: float


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


def worst_intruder(log: Log, name: str, states: dict[str, State]) -> tuple[float, float, str] | None:
    """TCPA (s), DCPA (NM) and name of the aircraft with the smallest DCPA; the first by name wins a tie."""
    settings = log.settings
    worst: tuple[float, float, str] | None = None
    for other_name, other in states.items():
        if other_name == name:
            continue
        if "threat" in settings.vertical_for and vertically_apart(states[name], other, settings.vertical_ft):
            continue
        tcpa_s, dcpa_nm = tcpa_dcpa(states[name], other, settings.horizon_s, settings.plane_radius_km)
        if worst is None or dcpa_nm < worst[1]:
            worst = (tcpa_s, dcpa_nm, other_name)
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
            if navigates(log, name, states[name], command[0]):
                continue
            worst = worst_intruder(log, name, states)
            if worst is None or worst[1] > max(settings.separation_nm, settings.threat_nm):
                continue
            tcpa_s, dcpa_nm, intruder = worst
            counted.append(Alert(t, name, intruder, tcpa_s, dcpa_nm))
    return counted


def causes(log: Log, counted: list[Alert]) -> dict[int, Alert]:
    """By step, the command that counts as its cause: that of the aircraft which the episode names first."""
    order = {name: place for place, name in enumerate(dict.fromkeys(name for step in log.positions for name in step))}
    found: dict[int, Alert] = {}
    for alert in sorted(counted, key=lambda alert: order[alert.name]):
        found.setdefault(alert.step, alert)
    return found


def escapes(log: Log, alert: Alert) -> bool:
    """Whether the closest approach to the same intruder is wider by more than the limit one step later."""
    if alert.step + 1 >= log.steps:
        return False
    states = log.states(alert.step + 1)
    if alert.name not in states or alert.intruder not in states:
        return False
    settings = log.settings
    own, other = states[alert.name], states[alert.intruder]
    _, later_nm = tcpa_dcpa(own, other, settings.horizon_s, settings.plane_radius_km)
    return later_nm - alert.dcpa_nm > settings.escape_nm


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
