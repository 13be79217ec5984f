"""The fleet: one row ("slot") per vehicle in preallocated arrays, and ring buffers of its recent samples.

Written by the pipeline only (`slot_for`, `expect`, `ingest`, `forget`, `declare`), read by every detector. All times
are event time. Memory is reserved for `max_vehicles` at the start but touched only where there are vehicles: slots are
handed out lowest first, so a small fleet stays small.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import FleetLimits
from watchkeeper.config.topology import UNDECLARED, Topology
from watchkeeper.detectors.fleet.callsigns import Callsigns
from watchkeeper.detectors.fleet.crowd import Door
from watchkeeper.detectors.fleet.declared import SENT_BY_VEHICLES, Declared
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.detectors.fleet.tables import zeros
from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool, Columns
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one kind inside one tick's window, sorted by (slot, t), no duplicates."""

    kind: Kind
    slot: I4
    t: F8
    data: F8
    via: I4

    def __len__(self) -> int:
        return len(self.t)

    def col(self, name: str) -> F8:
        """The column of a field, by name."""
        column: F8 = self.data[COLUMN[self.kind][name]]
        return column


class Ring:
    """The last `depth` samples of one kind for every slot.

    `t[slot, i]` and `data[field, slot, i]`; the newest is at `(count[slot] - 1) % depth`.
    """

    def __init__(self, kind: Kind, capacity: int, depth: int) -> None:
        self.kind = kind
        self.depth = depth
        self.t: F8 = zeros((capacity, depth))
        # the fields of a sample lie next to each other, because they are written together
        self.data: F8 = zeros((capacity, depth, len(FIELDS[kind]))).transpose(2, 0, 1)
        self.count: I8 = np.zeros(capacity, np.int64)

    def history(self, slot: int) -> tuple[F8, F8]:
        """Times and fields of one slot, oldest first (a copy; for people and tests, not for the hot path)."""
        n = int(min(self.count[slot], self.depth))
        order = (int(self.count[slot]) - n + np.arange(n)) % self.depth
        return self.t[slot, order], self.data[:, slot, order]

    def forget(self, slots: I4) -> None:
        """Nothing has been heard of these slots."""
        # most vehicles send one kind or two: what was never written takes neither time nor memory
        slots = slots[self.count[slots] > 0]
        self.count[slots] = 0
        self.t[slots] = 0.0
        self.data[:, slots] = 0.0

    def snapshot(self, rows: I4 | slice, fields: I8) -> dict[str, Any]:
        """The samples of these slots. Fields that none of them has ever sent are NaN and left out."""
        data = self.data[:, rows] if len(fields) == len(self.data) else [self.data[f, rows] for f in fields.tolist()]
        return {"t": self.t[rows], "count": self.count[rows], "fields": fields, "data": data}

    def restore(self, rows: I4, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        count = state["count"]
        self.t[rows], self.count[rows] = state["t"], count
        # where there is a sample, a field is absent unless it was sent; where there is none yet, it is zero
        empty = np.arange(self.depth) >= count[:, None]
        sent = dict(zip(state["fields"].tolist(), state["data"], strict=True))
        absent = np.where(empty, 0.0, np.nan)
        for f in range(len(self.data)):
            self.data[f, rows] = sent.get(f, absent)


class Fleet:
    """Vehicles by slot.

    `last_t[kind, slot]` is the newest sample's time (-inf: never), `count[kind, slot]` how many there were.
    `value[kind][field, slot]` is the newest value that was present and `value_t` when it was measured, so a
    report without a speed does not erase the speed known from the report before. `declared` is what the configuration
    says about the slots.
    """

    def __init__(self, limits: FleetLimits) -> None:
        capacity = limits.max_vehicles
        self.capacity = capacity
        # tables with a row for each slot, also those of detectors
        self.growing = grow = Growing(capacity)
        self.evict_idle_s = limits.evict_idle_s
        self.slot_of: dict[str, int] = {}
        self.ids: list[str] = [""] * capacity
        # the first eight bytes of each id as a number, which sorts as the ids do; `id_cut` where there are more bytes
        self.id_key: NDArray[np.uint64] = np.zeros(capacity, np.uint64)
        self.id_cut: Bool = np.zeros(capacity, np.bool_)
        self._callsigns = Callsigns()
        # the last time that we were away, from and to: what nobody heard then is nobody's silence
        self.away: tuple[float, float] = (0.0, 0.0)
        # newest sample on its way to each slot, whether or not a tick has taken it in yet
        self.expected_t: F8 = grow.full(-np.inf)
        self.last_t: F8 = grow.full(-np.inf, len(Kind))
        self.count: I8 = zeros((len(Kind), capacity), np.int64)
        self.value: dict[Kind, F8] = {k: grow.full(np.nan, len(FIELDS[k])) for k in Kind}
        self.value_t: dict[Kind, F8] = {k: grow.full(-np.inf, len(FIELDS[k])) for k in Kind}
        depths = {Kind.ADSB: limits.ring_adsb, Kind.GPS: limits.ring_gps, Kind.IMU: limits.ring_imu}
        self.ring: dict[Kind, Ring] = {k: Ring(k, capacity, d) for k, d in depths.items()}
        # slots below `high` have been used at some time; freed ones wait in a heap so that low slots come first
        self.high = 0
        self._free: list[int] = []
        self.declared = Declared(UNDECLARED, capacity)
        self.door = Door()
        # whether any vehicle here has sent a kind, as far as that was asked since one was forgotten
        self._sent: dict[Kind, bool] = {}
        # nobody will be idle for too long before that: asked when a vehicle comes or goes
        self._stays_t = -np.inf

    def __len__(self) -> int:
        return len(self.slot_of)

    def slot_for(self, name: str, source: int | None = None) -> int:
        """The slot of a vehicle, given out on first sight; -1 when there is none.

        `source` is the gateway that a newcomer came through (-1: none); it has to come twice when few slots are left.
        """
        slot = self.slot_of.get(name)
        if slot is not None:
            return slot
        free = self.capacity - len(self.slot_of)
        if not free:
            return -1
        if source is not None and name not in self.declared.by_name:  # noqa: SIM102  two questions
            if not self.door.opens(name, free, self.capacity, source):
                return -1
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            slot = self.high
            self.high += 1
            self.growing.reach(self.high)
        self.slot_of[name] = slot
        self._stays_t = -np.inf
        self._name(slot, name)
        return slot

    def _name(self, slot: int, name: str) -> None:
        head = name.encode(errors="surrogatepass")
        self.ids[slot] = name
        self.id_key[slot] = int.from_bytes(head[:8].ljust(8, b"\0"), "big")
        self.id_cut[slot] = len(head) > 8 or "\0" in name

    def order_pairs(self, a: I4, b: I4) -> tuple[I4, I4, I8]:
        """Pairs of slots with the smaller id first, sorted by ids, and the rows that they came from."""
        key = self.id_key
        if self.id_cut[a].any() or self.id_cut[b].any():
            # long ids: their heads do not tell, so those involved are ranked by their whole names
            involved = sorted(np.unique(np.concatenate((a, b))).tolist(), key=self.ids.__getitem__)
            key = np.zeros(self.high, np.uint64)
            key[involved] = np.arange(len(involved), dtype=np.uint64)
        swap = key[a] > key[b]
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        rows = np.lexsort((key[second], key[first]))
        return first[rows], second[rows], rows

    @property
    def callsigns(self) -> dict[str, str]:
        """Callsigns by id, of those that have one. They are for people: nothing is judged by them."""
        return self._callsigns.now

    def follow_callsigns(self) -> None:
        """From now on remember which callsigns are new, for `called`."""
        self._callsigns.changed = set()

    def called(self) -> dict[str, str]:
        """The callsigns that are new since this was last asked, of vehicles that are still here."""
        changed, self._callsigns.changed = self._callsigns.changed or set(), set()
        now = self.callsigns
        return {name: now[name] for name in sorted(changed) if name in now}

    def call(self, batch: Batch, cols: Columns, *, moved: bool = False) -> None:
        """Note the callsigns that these samples bring; they are used from their tick on (see Callsigns.note)."""
        self._callsigns.note(batch, cols, self.slot_of, moved=moved)

    def use_callsigns(self, t: float) -> None:
        """The tick that ends at t runs: use the callsigns that came with its samples."""
        self._callsigns.reach(t, self.slot_of)

    def expect(self, slot_of_vid: I4, vid: I4, t: F8) -> I4:
        """The slots of samples that are on their way here, so that their rows are not given away meanwhile."""
        slot = np.empty(len(vid), np.int32)
        _expect(slot_of_vid, vid, t, self.expected_t, slot)
        return slot

    def declare(self, topology: Topology, mine: Callable[[str], bool] = lambda _name: True) -> None:
        """Take a declaration instead of any before: its vehicles get slots, and all that have one are looked at.

        `mine`: which vehicles belong here.
        """
        since_t = self.declared.since_t
        self._stays_t = -np.inf
        self.declared = Declared(topology, self.capacity)
        if not self.declared.any:
            return
        for name in filter(mine, self.declared.by_name):
            self.slot_for(name)
        heard = set(np.flatnonzero(self.count[SENT_BY_VEHICLES, : self.high].any(axis=0)).tolist())
        for name, slot in self.slot_of.items():
            if slot in heard or name in self.declared.by_name:
                self.declared.meet(slot, name)
        self.declared.since_t = np.where(self.declared.named, since_t, np.nan)

    def ingest(self, samples: Samples) -> None:
        """Take in one window of one kind."""
        kind = samples.kind
        self._sent[kind] = True
        ring = self.ring.get(kind)
        # a signal's newest value is known by its name only, to its detector
        data = samples.data[:0] if kind is Kind.SIGNAL else samples.data
        _remember(
            samples.slot, samples.t, data,
            self.last_t[kind], self.count[kind], self.value[kind], self.value_t[kind],
        )  # fmt: skip
        if ring is not None:
            _push(samples.slot, samples.t, samples.data, ring.t, ring.data, ring.count)
        if self.declared.any and kind in SENT_BY_VEHICLES:
            for slot in self.declared.strangers(samples.slot):
                self.declared.meet(slot, self.ids[slot])

    def sends(self, kind: Kind) -> bool:
        """Whether any vehicle that is known has sent this kind."""
        sent = self._sent.get(kind)
        if sent is None:
            sent = self._sent[kind] = bool(self.count[kind, : self.high].any())
        return sent

    def idle(self, t: float) -> I4:
        """Vehicles whose last sample is older than `evict_idle_s` at time t, or that never had one in that time.

        Those declared by name stay: that they are not heard is news.
        """
        slots = np.sort(self._used())
        heard = self.last_t[:, slots].max(axis=0)
        heard = np.where(heard > -np.inf, heard, self.expected_t[slots])
        return slots[~self.declared.kept[slots] & (heard < t - self.evict_idle_s)]

    def _used(self) -> I4:
        """The slots in use, in the order in which their vehicles were met."""
        return np.fromiter(self.slot_of.values(), np.int32, len(self.slot_of))

    def quiet_until(self, t: float, until: float) -> float:
        """When the next vehicle will have been idle for too long, if nothing is heard; `until` if it is not before.

        Whoever is heard stays longer: what was found before still says until when nobody leaves.
        """
        if self._stays_t >= until:
            return until
        slots = self._used()
        leaves = ~self.declared.kept[slots]
        heard = self.last_t[:, slots].max(axis=0)
        # who has not been heard so far has something on the way
        waits = (heard == -np.inf) & (self.expected_t[slots] > t)
        heard = np.where(heard > -np.inf, heard, self.expected_t[slots])
        self._stays_t = float(np.min(heard, where=leaves, initial=np.inf)) + self.evict_idle_s
        idle_t = float(np.min(heard, where=leaves & ~waits, initial=np.inf)) + self.evict_idle_s
        return min(idle_t, until)

    def forget(self, slots: I4, t: float) -> None:
        """Erase what is known of these vehicles; slots with nothing newer than t on the way become free."""
        self._sent.clear()
        self._stays_t = -np.inf
        self.last_t[:, slots] = -np.inf
        self.count[:, slots] = 0
        self.declared.forget(slots)
        for kind in Kind:
            self.value[kind][:, slots] = np.nan
            self.value_t[kind][:, slots] = -np.inf
        for ring in self.ring.values():
            ring.forget(slots)
        for slot in slots[self.expected_t[slots] <= t].tolist():
            del self.slot_of[self.ids[slot]]
            self._callsigns.forget(self.ids[slot])
            self.ids[slot], self.id_key[slot], self.id_cut[slot] = "", 0, False
            self.expected_t[slot] = -np.inf
            heapq.heappush(self._free, slot)

    def snapshot(self) -> dict[str, Any]:
        """All state. Of each kind only the vehicles that have ever sent it, for most send one or two kinds."""
        h = self.high
        kinds: dict[str, Any] = {}
        for kind in Kind:
            rows = np.flatnonzero(self.count[kind, :h]).astype(np.int32)
            # where that is everybody, views will do: the encoder copies anyway
            pick = slice(h) if len(rows) == h else rows
            kinds[kind.word] = {
                "rows": rows,
                "last_t": self.last_t[kind, pick],
                "count": self.count[kind, pick],
                "value": self.value[kind][:, pick],
                "value_t": self.value_t[kind][:, pick],
            }
            if (ring := self.ring.get(kind)) is not None:
                sent = np.flatnonzero((self.value_t[kind][:, :h] > -np.inf).any(axis=1))
                kinds[kind.word]["ring"] = ring.snapshot(pick, sent)
        return {
            "high": h,
            # in the order in which they were met
            "ids": list(self.slot_of),
            "slots": self._used(),
            "free": np.array(self._free, np.int32),
            "door": self.door.snapshot(),
            "callsigns": self._callsigns.snapshot(),
            "away": list(self.away),
            "expected_t": self.expected_t[:h],
            "kinds": kinds,
            "since_t": self.declared.since_t[:h] if self.declared.any else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot of a fleet of the same capacity. Declare again after it."""
        self._sent.clear()
        self._stays_t = -np.inf
        h = self.high = state["high"]
        self.growing.reach(h)
        self.slot_of = dict(zip(state["ids"], state["slots"].tolist(), strict=True))
        for name, slot in self.slot_of.items():
            self._name(slot, name)
        self._free = state["free"].tolist()
        self.door.restore(state["door"])
        self._callsigns.restore(state["callsigns"])
        self.away = (state["away"][0], state["away"][1])
        self.expected_t[:h] = state["expected_t"]
        for kind in Kind:
            # a snapshot of a version that did not know this stream has none of it
            if (saved := state["kinds"].get(kind.word)) is None:
                continue
            rows = saved["rows"]
            self.last_t[kind, rows] = saved["last_t"]
            self.count[kind, rows] = saved["count"]
            self.value[kind][:, rows] = saved["value"]
            self.value_t[kind][:, rows] = saved["value_t"]
            if (ring := self.ring.get(kind)) is not None:
                ring.restore(rows, saved["ring"])
        self.declared.since_t[:] = np.nan
        if (since_t := state.get("since_t")) is not None:
            self.declared.since_t[:h] = since_t


@njit(cache=True)
def _expect(slot_of_vid: I4, vid: I4, t: F8, expected_t: F8, slot: I4) -> None:
    for i in range(vid.size):
        s = slot_of_vid[vid[i]]
        slot[i] = s
        if s >= 0 and t[i] > expected_t[s]:
            expected_t[s] = t[i]


@njit(cache=True)
def _remember(slot: I4, t: F8, data: F8, last_t: F8, count: I8, value: F8, value_t: F8) -> None:
    for i in range(slot.size):
        s = slot[i]
        last_t[s] = t[i]
        count[s] += 1
    for f in range(data.shape[0]):
        for i in range(slot.size):
            x = data[f, i]
            if not np.isnan(x):
                value[f, slot[i]] = x
                value_t[f, slot[i]] = t[i]


@njit(cache=True)
def _push(slot: I4, t: F8, data: F8, ring_t: F8, ring: F8, count: I8) -> None:
    depth = ring_t.shape[1]
    for i in range(slot.size):
        s = slot[i]
        at = count[s] % depth
        ring_t[s, at] = t[i]
        for f in range(data.shape[0]):
            ring[f, s, at] = data[f, i]
        count[s] += 1
