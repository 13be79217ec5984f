"""What the detector `signal` declares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.signal import Signal
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, Scenario, fact
from watchkeeper.detectors.words import WHEN, listed, span
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

CAUSES: dict[str, str] = {
    "out_of_range": "beyond limits that are known beforehand (`limits`, `presets`)",
    "jump": "far from the forecast of its own level and trend, and stays there",
    "stuck": "the same to the last bit for much longer than ever before",
    "drift": "its mean moves away from its slow mean farther than usual",
    "noisier": "its steps from value to value are larger than usual",
    "rhythm": "its messages are missing while the vehicle's other signals go on",
    "disagrees": "it no longer follows the signal that it used to follow",
}
# Of each cause what the signal does, and did.
_WORDS = {
    "out_of_range": ("is out of range", "was out of range"),
    "jump": ("jumped", "jumped"),
    "stuck": ("is stuck", "was stuck"),
    "drift": ("drifts", "drifted"),
    "noisier": ("is noisier than usual", "was noisier than usual"),
    "rhythm": ("is missing", "was missing"),
    "disagrees": ("no longer agrees with", "did not agree with"),
}

# Units that names of signals usually end with.
_UNITS = {"v": "V", "a": "A", "c": "°C", "rpm": "rpm", "m": "m", "dbm": "dBm", "mah": "mAh", "w": "W"}
SECONDS = 120
# Behind a signal's name: what a forecast of its season leaves of it.
SUFFIX = ":season"
# Other signals that the sentence names.
SAID = 2


class SignalFacts(Facts, frozen=True, kw_only=True):
    """The signal that an alarm is about, against its own past."""

    signal: Annotated[str, fact("", "its name")] = ""
    value: Annotated[float | None, fact("own", "its newest value, in the sender's own unit")] = None
    expected: Annotated[float | None, fact("own", "what its past, or its partner, says that it should be")] = None
    usual: Annotated[float | None, fact("own", "how far off it usually is")] = None
    missing_s: Annotated[float | None, fact("s", "how long it has been missing")] = None
    partner: Annotated[str, fact("", "the signal that it used to follow")] = ""
    mode: Annotated[str, fact("", "the vehicle's flight mode, if it says so")] = ""
    armed: Annotated[bool | None, fact("", "whether the vehicle was armed, if it says so")] = None
    also: Annotated[tuple[str, ...], fact("", "other signals of the vehicle that are anomalous, at most four")] = ()


def _sized(name: str, value: float) -> str:
    """A number with the unit that the signal's name ends with; without one, in the sender's own."""
    unit = _UNITS.get(name.rpartition("_")[2].rpartition(".")[2])
    return f"{value:.4g}" + (f" {unit}" if unit else "")


def _say(subjects: Sequence[str], facts: SignalFacts, *, over: bool = False) -> str:
    # limits that are known tell more than what else is odd
    if not facts.causes and not over:
        return ""
    cause = facts.causes[0] if facts.causes else ""
    words = _WORDS.get(cause, ("is not what it used to be", "was not what it used to be"))[over]
    if cause == "drift" and facts.value is not None and facts.expected is not None:
        words += " down" if facts.value < facts.expected else " up"
    if cause == "disagrees":
        words += f" {facts.partner or 'its partner'}"
    name, season = facts.signal.removesuffix(SUFFIX), facts.signal.endswith(SUFFIX)
    if season:
        words = "did not follow its season" if over else "does not follow its season"
    figures = []
    if season and facts.value is not None and facts.missing_s is None:
        figures.append(f"{_sized(name, abs(facts.value))} {'above' if facts.value > 0.0 else 'below'} the forecast")
    elif facts.missing_s is not None:
        figures.append(f"for {span(facts.missing_s)}")
    elif facts.value is not None:
        figures.append(_sized(facts.signal, facts.value))
        if facts.expected is not None and cause != "out_of_range":
            figures.append(f"{_sized(facts.signal, facts.expected)} expected")
    size = f" ({', '.join(figures)})" if figures else ""
    state = [f"in mode {facts.mode}"] if facts.mode else []
    if facts.armed is not None:
        state.append("armed" if facts.armed else "disarmed")
    parts = [f"{listed(subjects)}: {name or 'a signal'} {words}{size}{', worst' * over} {WHEN}", *state]
    if facts.also and not over:
        parts.append(f"also {listed(facts.also[:SAID])}")
    return ", ".join(parts)


DECLARATION = Declaration(
    name="signal",
    help="any number that a vehicle sends, against its own past, its limits and its partner",
    settings=Signal,
    subjects="vehicle",
    alone=True,
    scratch=("_found",),
    kinds=(
        AlarmKind(
            name="signal",
            help="a number of a vehicle is not what it used to be: out of range, jumped, stuck, drifting, missing",
            facts=SignalFacts,
            say=_say,
            was=partial(_say, over=True),
            needs=((Kind.SIGNAL,),),
            causes=CAUSES,
        ),
    ),
    gauges=(
        Gauge(name="watched", help="Signals that have a row of the table"),
        Gauge(name="vehicles", help="Vehicles with a signal over its threshold in the last tick, before debouncing"),
        Gauge(name="refused", help="Values that were not judged because the table was full", counter=True),
        Gauge(
            name="seasons_left_out", help="Values that the budget of seasons left out (`season_budget`)", counter=True
        ),
        Gauge(name="duplicates", help="Values that repeat the time of the one before", counter=True),
    ),
    scenario=Scenario(
        SECONDS, lambda: simulate("signals", seed=3, seconds=SECONDS, vehicles=12, rate_hz=2.0).batches()
    ),
)
