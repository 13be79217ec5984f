"""What the configuration declares about vehicles, by slot: the gateway that each is behind and the streams it sends.

Vehicles that are declared by name have a slot from the start and keep it, heard or not. A pattern is held against
every vehicle when it is first heard. Belongs to the fleet, which calls it; detectors read the arrays. Without a
declaration all of it stays empty and costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

import numpy as np

from watchkeeper.config.topology import DeclaredVehicles, Topology, is_pattern
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.messages import KIND_OF_WORD, Kind

# Kinds that only vehicles send: gateways and sensors have samples of the stream `link`.
SENT_BY_VEHICLES = (Kind.ADSB, Kind.GPS, Kind.IMU, Kind.SIGNAL)


class Declared:
    """The declaration of one configuration.

    `streams[kind, slot]` are the declared ones, `gateway[slot]` is a number in `gateways` (-1: not said), `named` are
    the slots that a table applies to, `kept` those that it calls by name, and `since_t` when each was first expected
    (NaN: not yet).
    """

    def __init__(self, topology: Topology, capacity: int) -> None:
        self.streams: Bool = np.zeros((len(Kind), capacity), bool)
        self.gateway: I4 = np.full(capacity, -1, np.int32)
        self.named: Bool = np.zeros(capacity, bool)
        self.kept: Bool = np.zeros(capacity, bool)
        self.since_t: F8 = np.full(capacity, np.nan)
        self._met: Bool = np.zeros(capacity, bool)
        self.gateways: list[str] = list(dict.fromkeys(v.gateway for v in topology.vehicles if v.gateway))
        self.wait_s = topology.wait_s or np.inf
        self.by_name: dict[str, DeclaredVehicles] = {
            name: table for table in topology.vehicles for name in table.names if not is_pattern(name)
        }
        self._patterns = [
            (re.compile(translate(name)), table)
            for table in topology.vehicles
            for name in table.names
            if is_pattern(name)
        ]

    @property
    def any(self) -> bool:
        """Whether anything is declared at all."""
        return bool(self.by_name or self._patterns)

    def table_for(self, name: str) -> DeclaredVehicles | None:
        """What is declared about a vehicle: by its own name, or else by the first pattern that it fits."""
        if name in self.by_name:
            return self.by_name[name]
        if name in self.gateways:
            return None
        return next((table for pattern, table in self._patterns if pattern.match(name)), None)

    def gateway_of(self, slot: int) -> str:
        """The declared gateway's name, empty when not said."""
        number = int(self.gateway[slot])
        return self.gateways[number] if number >= 0 else ""

    def numbers(self, known: Mapping[str, int]) -> I4:
        """The declared gateway of every slot by the numbers of `known`, -1 where not said."""
        of_own: I4 = np.array([*(known.get(name, -1) for name in self.gateways), -1], np.int32)
        found: I4 = of_own[self.gateway]
        return found

    # -- the fleet's slots ----------------------------------------------------------------------------------

    def meet(self, slot: int, name: str) -> None:
        """A vehicle has this slot from now on."""
        self._met[slot] = True
        table = self.table_for(name)
        if table is None:
            return
        self.named[slot] = True
        self.kept[slot] = name in self.by_name
        self.gateway[slot] = self.gateways.index(table.gateway) if table.gateway else -1
        for word in table.sensors:
            self.streams[KIND_OF_WORD[word], slot] = True

    def strangers(self, slots: I4) -> list[int]:
        """Those of these slots whose vehicle has not been met."""
        return np.unique(slots[~self._met[slots]]).tolist()  # type: ignore[no-any-return]

    def expect(self, t: float, high: int) -> None:
        """A tick at time t: who is declared and was not expected before is so from now on."""
        new = self.named[:high] & np.isnan(self.since_t[:high])
        self.since_t[:high][new] = t

    def forget(self, slots: I4) -> None:
        """These slots have no vehicle any more."""
        self.streams[:, slots] = False
        self.gateway[slots] = -1
        self.named[slots] = self.kept[slots] = self._met[slots] = False
        self.since_t[slots] = np.nan
