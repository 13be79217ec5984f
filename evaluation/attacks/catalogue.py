"""The attack catalogue (config/attacks.json) and how one of its entries is put into a flight. Pure and seeded.

`inject(attack, flight, repeat)` draws onset and directions from dice that depend on the attack's name and seed, the
flight's id and the repeat only, so the same call gives the same bytes anywhere and in any order. It changes nothing but
the samples in the window: before the onset an attacked flight is the clean one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from hashlib import blake2b
from importlib import resources

import msgspec
import numpy as np

from watchkeeper.evaluation.attacks import gps as attacks_gps
from watchkeeper.evaluation.attacks import imu as attacks_imu
from watchkeeper.evaluation.attacks.closed_loop import closed_loop
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import Scene
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.foreign.decode import from_json

EFFECTS = attacks_gps.EFFECTS | attacks_imu.EFFECTS | {"closed_loop": closed_loop}


class AttackError(Exception):
    """An attack that is not in the catalogue, or does not fit into a flight."""


class Onset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When an attack begins: at a random time of those that leave room for it, while the vehicle moves."""

    rule: str
    earliest_s: float
    """Not before this time after the first sample: detectors may still be learning."""
    tail_s: float
    """At least this much flight after the end."""
    min_speed_mps: float
    """Mean speed over the window; a flight that is never as fast has its onsets anywhere."""
    lasting_s: float
    """An attack until the end of the flight has at least this much of it, where the flight is long enough."""


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Attacks that differ in magnitude only."""

    unit: str
    description: str
    stream: str
    search: tuple[float, float] | None = None
    """Smallest and largest magnitude of the search for what is just detectable; none: no magnitude to vary."""
    stronger: str = "larger"
    """Whether `larger` or `smaller` magnitudes are the stronger attacks."""


class Attack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the catalogue."""

    name: str
    family: str
    magnitude: float
    seed: int
    duration_s: float = 30.0
    onset_s: float | None = None
    """When it begins, in seconds after the flight's first sample; random where this is None."""


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """config/attacks.json."""

    version: int
    onset: Onset
    families: dict[str, Family]
    attacks: list[Attack]

    def find(self, name: str) -> Attack:
        """The entry of this name. Raises AttackError, which names the nearest."""
        return find(self.attacks, name)

    def sized(self, family: str, magnitude: float) -> Attack:
        """An attack of any magnitude: seed and duration are those of the family's first entry."""
        first = next(attack for attack in self.attacks if attack.family == family)
        return msgspec.structs.replace(first, name=f"{family} {magnitude:.6g}", magnitude=magnitude)


def find(attacks: Sequence[Attack], name: str) -> Attack:
    """The attack of this name. Raises AttackError, which names the nearest."""
    for attack in attacks:
        if attack.name == name:
            return attack
    near = get_close_matches(name, [attack.name for attack in attacks], 1, 0.0)[0]
    raise AttackError(f"no attack {name!r} in the catalogue; did you mean {near!r}?")


@cache
def catalogue() -> Catalogue:
    """The catalogue that is shipped."""
    text = resources.files("watchkeeper.config").joinpath("attacks.json").read_bytes()
    return from_json(text, Catalogue)


@dataclass(frozen=True, slots=True)
class Injection:
    """An attack in one flight: what the sensors say in its window instead.

    `gps` and `imu` have one column per clean sample in `gps_rows` and `imu_rows`; `*_lost` marks those that never
    arrive.
    """

    attack: Attack
    flight: Flight
    t_start: float
    t_end: float
    gps_rows: slice
    imu_rows: slice
    gps: Stream
    imu: Stream
    gps_lost: Bool
    imu_lost: Bool

    @property
    def touched(self) -> bool:
        """Whether any sample differs from the clean flight's: a limit that is never reached saturates nothing."""
        if self.gps_lost.any() or self.imu_lost.any():
            return True
        clean_gps, clean_imu = self.flight.gps, self.flight.imu
        return not (
            np.array_equal(self.gps.t, clean_gps.t[self.gps_rows])
            and np.array_equal(self.gps.data, clean_gps.data[:, self.gps_rows], equal_nan=True)
            and np.array_equal(self.imu.data, clean_imu.data[:, self.imu_rows], equal_nan=True)
        )

    def attacked_flight(self) -> Flight:
        """The whole flight with the attack in it, in order of time stamps."""
        return replace(
            self.flight,
            gps=_splice(self.flight.gps, self.gps_rows, self.gps, self.gps_lost),
            imu=_splice(self.flight.imu, self.imu_rows, self.imu, self.imu_lost),
        )


def inject(
    attack: Attack, flight: Flight, *, repeat: int = 0, onset_s: float | None = None, until_end: bool = False
) -> Injection:
    """Put an attack into a flight; `onset_s` (since the flight's start) instead of the attack's own onset.

    With `until_end` it does not end before the flight does.
    """
    rng = _dice(attack, flight, repeat)
    at_s = attack.onset_s if onset_s is None else onset_s
    least_s = _lasting_s(attack, flight) if until_end else attack.duration_s
    t_start = _onset(attack, flight, rng, least_s) if at_s is None else flight.start + at_s
    t_end = float(np.nextafter(flight.end, np.inf)) if until_end else t_start + attack.duration_s
    gps_rows, imu_rows = flight.gps.between(t_start, t_end), flight.imu.between(t_start, t_end)
    gps_t, imu_t = flight.gps.t[gps_rows].copy(), flight.imu.t[imu_rows]
    if not len(gps_t) or not len(imu_t):
        raise AttackError(f"flight {flight.id}: no GPS or no IMU samples from {t_start:g} to {t_end:g} s")
    scene = Scene(
        flight=flight, gps_rows=gps_rows, imu_rows=imu_rows,
        gps_t=gps_t, gps=flight.gps.data[:, gps_rows].copy(), gps_lost=np.zeros(len(gps_t), bool),
        gps_s=gps_t - t_start, imu=flight.imu.data[:, imu_rows].copy(), imu_lost=np.zeros(len(imu_t), bool),
        imu_s=imu_t - t_start, seconds=attack.duration_s, rng=rng,
    )  # fmt: skip
    EFFECTS[attack.family](scene, attack.magnitude)
    return Injection(
        attack, flight, t_start, t_end, gps_rows, imu_rows,
        Stream(scene.gps_t, scene.gps), Stream(imu_t, _shared(flight.imu.data[:, imu_rows], scene.imu)),
        scene.gps_lost, scene.imu_lost,
    )  # fmt: skip


def _shared(clean: F8, window: F8) -> F8:
    """The clean samples themselves where nothing was changed: minutes of an IMU are megabytes."""
    return clean if np.array_equal(clean, window, equal_nan=True) else window


def _lasting_s(attack: Attack, flight: Flight) -> float:
    rule = catalogue().onset
    # a short flight gives three quarters of what it has, so that there is a choice of onsets
    room_s = 0.75 * (flight.end - flight.start - rule.earliest_s - rule.tail_s)
    return max(attack.duration_s, min(rule.lasting_s, room_s))


def _dice(attack: Attack, flight: Flight, repeat: int) -> np.random.Generator:
    # the family, not the name: all magnitudes of a family meet the same moments and directions, so that they compare
    key = msgspec.json.encode([attack.family, attack.seed, attack.duration_s, flight.id, repeat])
    return np.random.Generator(np.random.PCG64(int.from_bytes(blake2b(key, digest_size=16).digest())))


def check_room(attack: Attack, flight: Flight) -> None:
    """Raise AttackError where the attack has no room in the flight."""
    _onsets(attack, flight, attack.duration_s)


def _onset(attack: Attack, flight: Flight, rng: np.random.Generator, seconds: float) -> float:
    # between two fixes, not on one: the first attacked fix comes a random part of an interval after the onset
    choice = _onsets(attack, flight, seconds)
    return float(rng.choice(choice) - rng.uniform(0.0, float(np.median(np.diff(flight.gps.t)))))


def _onsets(attack: Attack, flight: Flight, seconds: float) -> F8:
    """The fixes at which it may begin and last for so long."""
    rule, fixes = catalogue().onset, flight.gps.t
    low, high = flight.start + rule.earliest_s, flight.end - rule.tail_s - seconds
    if attack.onset_s is not None:
        low = flight.start + attack.onset_s
    least = low - flight.start + rule.tail_s + seconds
    if low >= high:
        raise AttackError(f"flight {flight.id} is {flight.end - flight.start:.0f} s long; an attack needs {least:.0f}")
    room = (fixes >= low) & (fixes < high)
    if not room.any():
        raise AttackError(f"flight {flight.id} has no fix from {low - flight.start:g} s on that leaves {least:.0f} s")
    speed = np.nan_to_num(flight.speed)
    # mean speed over the window that begins at each fix
    travelled = np.append(0.0, np.cumsum(speed))
    last = np.searchsorted(fixes, fixes + seconds)
    first = np.arange(len(fixes))
    mean = (travelled[last] - travelled[first]) / np.maximum(last - first, 1)
    moving = room & (mean >= rule.min_speed_mps)
    chosen: F8 = fixes[moving if moving.any() else room]
    return chosen


def _splice(clean: Stream, rows: slice, window: Stream, lost: Bool) -> Stream:
    t = np.concatenate((clean.t[: rows.start], window.t[~lost], clean.t[rows.stop :]))
    parts = (clean.data[:, : rows.start], window.data[:, ~lost], clean.data[:, rows.stop :])
    data = np.concatenate(parts, axis=1)
    order = np.argsort(t, kind="stable")
    return Stream(t[order], np.ascontiguousarray(data[:, order]))
