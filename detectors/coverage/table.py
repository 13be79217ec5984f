"""Per detector and vehicle: watched or why not, since when. Columns over the fleet's slots; the engine fills them.

    table.update(codes, t)          what each detector says of every slot, about once a second of event time
    table.code, since_t, judged     [detector, slot]

`trying_s` is how long a detector has tried to judge a vehicle without success: beyond `never_s` it never aligns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import CODE_OF, JUDGED, NAMES, NOT_YET, PARTLY, VOID, Code
from watchkeeper.streams.batch import F8, I4, U1, Bool
from watchkeeper.streams.kernels import njit

# A step of `trying_s` counts at most this much: time that nobody saw is no trying.
STEP_MAX_S = 2.0
# Names that a tally keeps for each reason.
EXAMPLES = 5
# Time spent on learning counts less: a receiver that has just been switched on settles for a minute.
LEARNING_PART = 0.5
# Codes as the kernel takes them.
WATCHED, NOT_APPLICABLE, NEVER_ALIGNS = int(Code.WATCHED), int(Code.NOT_APPLICABLE), int(Code.NEVER_ALIGNS)
UNCONFIRMED, LIMITS_ONLY = int(Code.UNCONFIRMED), int(Code.LIMITS_ONLY)
ALIGNING, LEARNING, UNALIGNED = int(Code.ALIGNING), int(Code.LEARNING), int(Code.UNALIGNED)
TOO_SHORT = np.uint8(Code.TOO_SHORT)
# By code.
IS_JUDGED, IS_VOID, IS_NOT_YET, IS_PARTLY = (
    np.isin(np.arange(len(NAMES)), codes) for codes in (JUDGED, VOID, NOT_YET, PARTLY)
)


@dataclass(slots=True)
class Tally:
    """What became of vehicles: how many were judged, how many not for each reason, and the names of a few of these.

    `partly` are those of the judged ones who were not judged in every way at the end.
    """

    judged: int = 0
    not_judged: dict[str, int] = field(default_factory=dict)
    partly: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def vehicles(self) -> int:
        """All that the detector should have judged."""
        return self.judged + sum(self.not_judged.values())

    def copy(self) -> Tally:
        """One that can go on by itself."""
        examples = {why: list(names) for why, names in self.examples.items()}
        return Tally(self.judged, dict(self.not_judged), dict(self.partly), examples)

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        found = self.copy()
        found.judged += other.judged
        for mine, theirs in ((found.not_judged, other.not_judged), (found.partly, other.partly)):
            for why, n in theirs.items():
                mine[why] = mine.get(why, 0) + n
        for why, names in other.examples.items():
            found.examples[why] = [*found.examples.get(why, []), *names][:EXAMPLES]
        return found

    def words(self) -> str:
        """For a person: `3 of 5, 1 of them partly (no_imu 2: wing-2, wing-3; unaligned 1: quad-4)`."""
        why = "; ".join(
            f"{reason} {n}: {', '.join(self.examples[reason])}{', …' if n > len(self.examples[reason]) else ''}"
            for reason, n in (*sorted(self.not_judged.items()), *sorted(self.partly.items()))
        )
        partly = f", {n} of them partly" if (n := sum(self.partly.values())) else ""
        return f"{self.judged} of {self.vehicles}{partly}" + (f" ({why})" if why else "")


class Table:
    """The coverage of one fleet by these detectors."""

    def __init__(self, detectors: Sequence[str], fleet: Fleet) -> None:
        self.detectors = tuple(detectors)
        self._fleet = fleet
        shape = (len(self.detectors), fleet.capacity)
        self.code: U1 = np.full(shape, Code.NOT_APPLICABLE, np.uint8)
        self.since_t: F8 = np.full(shape, np.nan)
        self.judged: Bool = np.zeros(shape, bool)
        self.trying_s: F8 = np.zeros(shape)
        # what became of the vehicles that were forgotten
        self._gone = [Tally() for _ in self.detectors]

    def update(self, codes: U1, t: float, step_s: float, never_s: float) -> None:
        """Take over what the detectors say at t: `codes[detector, slot]`, of the slots in use."""
        step_s = min(max(step_s, 0.0), STEP_MAX_S)
        _update(codes, t, step_s, never_s, self.code, self.since_t, self.judged, self.trying_s)

    def forget(self, slots: I4) -> None:
        """These slots have no vehicle any more."""
        for d, tally in enumerate(self._gone):
            self._count(d, slots, tally)
        self.code[:, slots] = Code.NOT_APPLICABLE
        self.since_t[:, slots] = np.nan
        self.judged[:, slots] = False
        self.trying_s[:, slots] = 0.0

    def counts(self) -> dict[str, dict[str, int]]:
        """How many vehicles are watched, and not for which reason, by detector."""
        used = np.array([name != "" for name in self._fleet.ids[: self._fleet.high]], bool)
        found: dict[str, dict[str, int]] = {}
        for d, name in enumerate(self.detectors):
            numbers = np.bincount(self.code[d, : self._fleet.high][used], minlength=len(NAMES)).tolist()
            found[name] = {reason: n for reason, n in zip(NAMES, numbers, strict=True) if n}
        return found

    def tallies(self) -> dict[str, Tally]:
        """By detector: how many vehicles were judged so far, and not for which reason, those that are gone included."""
        slots = np.fromiter(self._fleet.slot_of.values(), np.int32, len(self._fleet.slot_of))
        found = {}
        for d, name in enumerate(self.detectors):
            found[name] = tally = self._gone[d].copy()
            self._count(d, slots, tally)
        return found

    def _count(self, d: int, slots: I4, tally: Tally) -> None:
        code, judged = self.code[d, slots], self.judged[d, slots]
        good = judged & ~IS_VOID[code]
        tally.judged += int(good.sum())
        # what was not judged by the end had not enough time
        why = np.where(IS_NOT_YET[code], TOO_SHORT, code)
        rest = ~good & (code != NOT_APPLICABLE)
        for found, counts in ((rest, tally.not_judged), (good & IS_PARTLY[code], tally.partly)):
            if not found.any():
                continue
            for reason in np.unique(why[found]).tolist():
                among = slots[found & (why == reason)]
                counts[NAMES[reason]] = counts.get(NAMES[reason], 0) + len(among)
                names = tally.examples.setdefault(NAMES[reason], [])
                names += sorted(self._fleet.ids[slot] for slot in among[:EXAMPLES].tolist())[: EXAMPLES - len(names)]

    def of(self, slot: int, *, final: bool = False) -> dict[str, dict[str, Any]]:
        """One vehicle: by detector whether it is watched, since when, and why not; `final`: nothing more will come."""
        found = {}
        for d, name in enumerate(self.detectors):
            code, since_t = int(self.code[d, slot]), float(self.since_t[d, slot])
            if final and code in NOT_YET:
                code = Code.WATCHED if self.judged[d, slot] else Code.TOO_SHORT
            found[name] = {
                "watched": code in JUDGED,
                "since_t": None if np.isnan(since_t) else round(since_t, 3),
                "reason": NAMES[code],
            }
        return found

    def snapshot(self) -> dict[str, Any]:
        """All columns, by the names of detectors and reasons."""
        n = self._fleet.high
        columns: dict[str, NDArray[Any]] = {
            "code": self.code,
            "since_t": self.since_t,
            "judged": self.judged,
            "trying_s": self.trying_s,
        }
        return {
            "detectors": list(self.detectors),
            "reasons": list(NAMES),
            "gone": [asdict(tally) for tally in self._gone],
            **{name: column[:, :n].copy() for name, column in columns.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot: the rows of detectors that are still there."""
        known = np.array([CODE_OF.get(name, Code.WAITING) for name in state["reasons"]], np.uint8)
        for row, name in enumerate(state["detectors"]):
            if name in self.detectors:
                d, n = self.detectors.index(name), state["code"].shape[1]
                self.code[d, :n] = known[state["code"][row]]
                self.since_t[d, :n] = state["since_t"][row]
                self.judged[d, :n] = state["judged"][row]
                self.trying_s[d, :n] = state["trying_s"][row]
                self._gone[d] = Tally(**state["gone"][row])


@njit(cache=True)
def _update(
    codes: U1, t: float, step_s: float, never_s: float, code: U1, since_t: F8, judged: Bool, trying_s: F8
) -> None:
    for d in range(codes.shape[0]):
        for s in range(codes.shape[1]):
            now = codes[d, s]
            trying = trying_s[d, s]
            if now == ALIGNING:
                trying += step_s
            elif now == LEARNING:
                trying += step_s * LEARNING_PART
            elif now == UNALIGNED:
                trying = max(trying - step_s, 0.0)
            elif now in (WATCHED, UNCONFIRMED, LIMITS_ONLY, NOT_APPLICABLE):
                trying = 0.0
            # not above the limit: as much time of being judged takes it back
            trying_s[d, s] = trying = min(trying, 2.0 * never_s)
            if now in (ALIGNING, LEARNING, UNALIGNED) and trying >= never_s:
                now = NEVER_ALIGNS
            # event time that went on by itself and came back leaves no time in the future
            if now != code[d, s] or since_t[d, s] > t:
                since_t[d, s] = t
            code[d, s] = now
            judged[d, s] |= IS_JUDGED[now]
