"""The table of signals: a row for each (vehicle, name), given out on first sight, given back when its vehicle goes.

Bounded twice: by `max_per_vehicle`, and by `max_signals` of all vehicles. As the table fills, one vehicle may hold at
most a sixteenth of the rows that are left, so that nobody can take them all; names that find no room are counted and
not judged. Known limits are looked up by name when a row is given out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.detectors.signal import NO_LIMIT, Signal, SignalLimit
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.detectors.signal import state
from watchkeeper.detectors.signal.presets import PRESETS
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import SIGNAL
from watchkeeper.streams.signals import as_name, matcher, names_in

# Every vehicle may have so many signals while there is room at all.
FEW = 8
SHARE = 16


def _first() -> NDArray[Any]:
    row = blank(state.Signal, 1)
    row["quantile"][:] = state.Q_FIRST
    return row


class Table:
    """Signals by row, vehicles by slot."""

    def __init__(self, cfg: Signal, fleet: Fleet) -> None:
        self._growing = Growing(cfg.max_signals)
        self.signals: NDArray[Any] = self._growing.rows(_first())
        self.vehicles: NDArray[Any] = fleet.growing.rows(blank(state.Vehicle, 1))
        self.counts: NDArray[Any] = blank(state.Counts, 1)
        self._fleet = fleet
        self.high = 0
        self.free: list[int] = []
        self.retune(cfg)

    def retune(self, cfg: Signal) -> None:
        """Take new limits, for signals that are new."""
        self._most = cfg.max_per_vehicle
        known = [*cfg.limits, *(limit for word in cfg.presets for limit in PRESETS[word])]
        self._limits = [(matcher(limit.names), limit) for limit in known]
        self._unjudged = matcher(cfg.limits_only)

    def __len__(self) -> int:
        return self.high - len(self.free)

    def add(self, slot: I4, data: F8, rows: I4) -> None:
        """Give rows to the names that have none (rows -1), as far as there is room; the others stay at -1 or -2."""
        self.counts["refused"] += int((rows == -2).sum())
        new = np.flatnonzero(rows == -1)
        names = data[SIGNAL.name_0 :, new]
        known: dict[tuple[int, tuple[float, ...]], int] = {}
        for i, key in zip(new.tolist(), map(tuple, names.T.tolist()), strict=True):
            place = int(slot[i]), key
            if place not in known:
                known[place] = self._row(*place)
            rows[i] = known[place]
            if rows[i] < 0:
                self.counts["refused"] += 1

    def _row(self, slot: int, key: tuple[float, ...]) -> int:
        vehicle, free = self.vehicles[slot], len(self.free) + self._growing.capacity - self.high
        if not free or vehicle["signals"] >= min(self._most, max(FEW, free // SHARE)):
            return -1
        if self.free:
            row = self.free.pop()
        else:
            row, self.high = self.high, self.high + 1
            self._growing.reach(self.high)
        self.signals[row] = _first()[0]
        signal = self.signals[row]
        signal["name"], signal["slot"] = key, slot
        if vehicle["first"] < 0:
            vehicle["first"] = row
            signal["after"] = row
        else:
            signal["after"] = self.signals[vehicle["at"]]["after"]
            self.signals[vehicle["at"]]["after"] = row
        vehicle["at"] = row
        vehicle["signals"] += 1
        self._know(signal, self.name(row))
        return row

    def _know(self, signal: Any, name: str) -> None:
        signal["role"] = {"armed": state.ARMED, "mode": state.MODE}.get(name, 0)
        signal["judged"] = not signal["role"] and not self._unjudged.match(name)
        found: SignalLimit | None = next((limit for pattern, limit in self._limits if pattern.match(name)), None)
        if found is not None:
            signal["low"] = found.low if found.low > -NO_LIMIT else -np.inf
            signal["high"] = found.high if found.high < NO_LIMIT else np.inf
            signal["group"] = [limit for _, limit in self._limits].index(found) if found.others else -1
            signal["armed_only"], signal["grade"] = found.armed, SEVERITIES.index(found.severity)

    def name(self, row: int) -> str:
        """The name of a signal."""
        return as_name(names_in(np.array(self.signals[row]["name"]).reshape(-1, 1))[0]) if row >= 0 else ""

    def rows_of(self, slot: int) -> list[int]:
        """The rows of a vehicle, in the order in which its signals come."""
        found, row = [], int(self.vehicles[slot]["first"])
        for _ in range(int(self.vehicles[slot]["signals"])):
            found.append(row)
            row = int(self.signals[row]["after"])
        return found

    def forget(self, slots: I4) -> None:
        """Give back the rows of these vehicles."""
        for slot in slots[self.vehicles["signals"][slots] > 0].tolist():
            rows = self.rows_of(slot)
            self.signals[rows] = _first()[0]
            self.free += rows
        self.vehicles[slots] = blank(state.Vehicle, 1)

    def snapshot(self) -> dict[str, Any]:
        """Everything, by row."""
        free = np.array(self.free, np.int32)
        tables = {"signals": self.signals[: self.high], "vehicles": self.vehicles[: self._fleet.high]}
        return {"high": self.high, "free": free, **tables, "counts": self.counts}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError: it has another layout, or more rows than there is room for."""
        if saved["high"] > self._growing.capacity:
            raise ValueError(f"{saved['high']:,} signals, max_signals is {self._growing.capacity:,}")
        _sound(saved)
        self.high, self.free = saved["high"], saved["free"].tolist()
        self._growing.reach(self.high)
        for rows, name in ((self.signals, "signals"), (self.vehicles, "vehicles"), (self.counts, "counts")):
            take_over(rows, saved[name])


def _sound(saved: dict[str, Any]) -> None:
    """ValueError where a row points beyond the table: a kernel would follow it."""
    places = [saved["signals"][name] for name in ("after", "partner", "tried")]
    places += [saved["vehicles"][name] for name in ("first", "at", "lead", "last")] + [saved["free"]]
    for numbers in places:
        if len(numbers) and not (numbers.min() >= -1 and numbers.max() < saved["high"] == len(saved["signals"])):
            raise ValueError("signals that point beyond their table")
    some = saved["vehicles"]["signals"] > 0
    if (saved["vehicles"]["signals"] < 0).any() or (saved["vehicles"]["first"][some] < 0).any():
        raise ValueError("vehicles with signals that are nowhere")
    used = saved["signals"]["slot"] >= 0
    if (saved["signals"]["after"][used] < 0).any() or (saved["vehicles"]["at"][some] < 0).any():
        raise ValueError("signals without a ring")
