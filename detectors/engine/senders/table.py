"""Every sender by name and number, the fleet's time that follows from them, and notes about those that are off.

The arrays that the kernels here work on.
"""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.engine.senders.records import ACTIVE_S, PROVEN, Now, Rules, Sender, is_active
from watchkeeper.detectors.engine.senders.strays import STEADY, untaken
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.streams.batch import I4, Bool

# A sender that was off is followed for this long after it is back, so that its alarm can end.
FOLLOW_S = 30.0
# Senders named at one tick; more than this is not a problem of senders.
NOTES_MAX = 200
# A gateway's clock is meant when this share of the vehicles behind it is off, by as much within this.
GATEWAY_SHARE, GATEWAY_S = 0.8, 1.0
# Part of the table that is given back when it is full.
GIVE_BACK = 16


class SenderTable:
    """`senders[number]` and `now` are records."""

    def __init__(self, capacity: int, lateness_s: float) -> None:
        self._capacity = capacity
        self.notes: list[ClockNote] = []
        self.era = -1
        self.begin(lateness_s)

    def begin(self, lateness_s: float) -> None:
        """A new era: nobody was heard yet."""
        self.era += 1
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self.senders: NDArray[Any] = blank(Sender, self._capacity)
        row_usual = self._now[0]["row_usual"] if self.era else 0.0
        self._now: NDArray[Any] = blank(Now, 1)
        self.now["row_usual"] = row_usual
        self.now["wait_s"] = lateness_s

    @property
    def now(self) -> Any:
        """The fleet's time."""
        return self._now[0]

    @property
    def high(self) -> int:
        """Numbers below this are in use, or were."""
        return len(self._names)

    def agree(self, t: float, newer_s: float, older_s: float, number: int) -> Bool:
        """Which senders of the present run of strays are at the time t, among them the one with this number."""
        now = self.now
        if now["run_senders"] == 1:
            found = np.zeros(self.high, bool)
        else:
            senders = self.senders[: self.high]
            before_s = t - senders["held_t"]
            found = (senders["run"] == now["run"]) & (before_s >= -newer_s) & (before_s <= older_s)
            found &= (senders["held_t"] > now["t"]) == (t > now["t"])
        found[number] = True
        return found

    def leave_run(self, names: set[str]) -> None:
        """These senders are no part of the present run of strays any more."""
        for number in map(self.number, names):
            sender = self.senders[number]
            if number >= 0 and sender["run"] == self.now["run"]:
                sender["run"] = 0
                self.now["run_senders"] -= 1

    def votes(self, chosen: Bool) -> tuple[int, int]:
        """How many these are, and how many of them were on the line lately."""
        if chosen.sum() == 1:
            return 1, int(is_active(self.senders[int(np.flatnonzero(chosen)[0])], self.now))
        heard_t, interval_s = self.senders["heard_t"][: self.high], self.senders["interval_s"][: self.high]
        on = (self.senders["n"][: self.high] > 0) & (heard_t >= self.now["t"] - np.maximum(ACTIVE_S, 3.0 * interval_s))
        return int(chosen.sum()), int((chosen & on).sum())

    def names_of(self, chosen: Bool) -> set[str]:
        """Their names."""
        return {self._names[number] for number in np.flatnonzero(chosen).tolist()}

    def number(self, name: str) -> int:
        """The number of a sender; -1 if it was forgotten for want of room."""
        return self._number.get(name, -1)

    def name_of(self, number: int) -> str:
        """The sender with this number."""
        return self._names[number]

    def gauges(self) -> dict[str, float]:
        """Senders heard now, those that are off, and how long ticks wait."""
        named = np.count_nonzero(self.senders["named"][: self.high])
        return {"senders": float(self.now["active"]), "off": float(named), "wait_s": float(self.now["wait_s"])}

    # -- who is off -----------------------------------------------------------------------------------------

    def note(self, rules: Rules) -> None:
        """Note which senders are off, and which are back; those of one gateway together where they agree."""
        now, senders = self.now, self.senders
        single: list[ClockNote] = []
        by_gateway: dict[int, list[ClockNote]] = {}
        for number in np.flatnonzero(senders["named"][: self.high])[:NOTES_MAX].tolist():
            sender = senders[number]
            refused = untaken(sender)
            # refused for its delays, or for times that no delay explains; these may still agree with each other
            late = refused and sender["strays"] < STEADY
            unsteady = bool(sender["unsteady"] or (refused and not late and sender["agreed_n"] < 2))
            off = abs(sender["offset_s"]) > rules.tolerance_s or unsteady or refused
            if off and (is_active(sender, now) or sender["sent_t"] >= now["t"] - ACTIVE_S):
                sender["named_t"] = now["t"]
            elif now["t"] - sender["named_t"] > FOLLOW_S:
                sender["named"] = False
                now["off"] -= 1
                continue
            offset_s = float(sender["agreed_s"] if unsteady or refused else sender["offset_s"]) if off else 0.0
            via = int(sender["via"]) - 1
            note = ClockNote(
                self.era, float(now["t"]), self._names[number], via, offset_s, unsteady, late, 0, rules.tolerance_s
            )
            (single if via < 0 or unsteady or late else by_gateway.setdefault(via, [])).append(note)
        for via, notes in by_gateway.items():
            middle = sorted(note.offset_s for note in notes)[len(notes) // 2]
            agree = [note for note in notes if abs(note.offset_s - middle) <= GATEWAY_S]
            behind = int(np.count_nonzero((senders["via"] == via + 1) & (senders["heard_t"] > now["t"] - FOLLOW_S)))
            together = len(agree) > 1 and len(agree) >= GATEWAY_SHARE * behind
            if together:
                single.append(replace(agree[0], offset_s=middle, vehicles=len(agree)))
            single += [note for note in notes if not (together and note in agree)]
        self.notes += single

    def take_notes(self, era: int, t: float) -> list[ClockNote]:
        """The notes up to t of an era; they are not given twice."""
        if not self.notes:
            return []
        due = [note for note in self.notes if note.era == era and note.t <= t]
        self.notes = [note for note in self.notes if note.era > era or (note.era == era and note.t > t)]
        return due

    # -- the table ------------------------------------------------------------------------------------------

    def numbers(self, names: list[str], who: I4) -> I4:
        """Numbers of the senders with these names; those heard for the first time get one."""
        numbers = np.fromiter(map(self._number.get, names, repeat(-1)), np.int32, len(names))
        if (numbers < 0).any():
            # in order of arrival, so that numbers are the same for any chunking
            for i in dict.fromkeys(who[numbers[who] < 0].tolist()):
                # a name may be there twice
                number = self._number.get(names[i])
                numbers[i] = self._enter(names[i]) if number is None else number
        return numbers

    def _enter(self, name: str) -> int:
        if not self._free and len(self._names) >= self._capacity:
            self._make_room()
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        else:
            number = len(self._names)
            self._names.append(name)
        self._number[name] = number
        return number

    def _make_room(self) -> None:
        """Forget senders that were heard least and longest ago; what is known of wrong clocks stays if it can."""
        table = self.senders
        order = np.lexsort((table["heard_t"], table["n"] >= PROVEN, table["named"]))
        for number in order[: max(1, self._capacity // GIVE_BACK)].tolist():
            if table[number]["named"]:
                self.now["off"] -= 1
            del self._number[self._names[number]]
            table[number] = np.zeros((), table.dtype)
            self._names[number] = ""
            self._free.append(number)

    def forget_gateways(self, numbers: I4) -> None:
        """These numbers may soon be those of other gateways."""
        via = self.senders["via"][: self.high]
        via[np.isin(via, numbers + 1)] = 0

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        return {
            "era": self.era,
            "now": self._now,
            "names": self._names,
            "senders": self.senders[: self.high],
            "free": self._free,
            "notes": [list(astuple(note)) for note in self.notes],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError: of another version."""
        self.begin(0.0)
        take_over(self._now, state["now"])
        take_over(self.senders, state["senders"])
        self._names, self._free = list(state["names"]), list(state["free"])
        self._number = {name: number for number, name in enumerate(self._names) if name}
        self.notes = [ClockNote(*note) for note in state["notes"]]
        self.era = state["era"]
