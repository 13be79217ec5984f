"""Callsigns by vehicle id, each from the moment of the sample that brought it.

Alarms name their vehicles by callsign, so a callsign must be known at the same tick however the samples are cut into
batches: it waits, like its sample, for its tick. Owned by the fleet. Times are event time in seconds.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from watchkeeper.streams.batch import Batch, Columns


class Callsigns:
    """Those that are known now, and those on their way."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        # (vehicle, callsign): when it comes into use
        self._waiting: dict[tuple[str, str], float] = {}
        # vehicles whose callsign has changed, for a follower elsewhere; None: there is none
        self.changed: set[str] | None = None

    def note(self, batch: Batch, cols: Columns, vehicles: Container[str], *, moved: bool) -> None:
        """Take the callsigns of a batch, of vehicles with a sample among these columns.

        `moved`: the columns' times are not the batch's any more, so a vehicle's first sample has to do.
        """
        # nearly all of a batch are those that are known, and each batch has them all
        both = zip(batch.callsigns.items(), map(self.now.get, batch.callsigns), strict=True)
        news = dict(given for given, known in both if given[1] != known and given[0] in vehicles)
        if not news or not len(cols):
            return
        vids = {name: vid for vid, name in enumerate(batch.ids) if name in news}
        first_t, last_t = np.full(len(batch.ids), np.inf), np.full(len(batch.ids), -np.inf)
        np.minimum.at(first_t, cols.vid, cols.t)
        np.maximum.at(last_t, cols.vid, cols.t)
        for name, sign in sorted(news.items()):
            vid = vids.get(name, -1)
            t = first_t[vid] if moved else batch.called_t.get(name, first_t[vid])
            # one that a later sample brings comes with that one's columns
            if vid >= 0 and t <= last_t[vid]:
                self._waiting[name, sign] = min(float(t), self._waiting.get((name, sign), np.inf))

    def reach(self, t: float, vehicles: Container[str]) -> None:
        """Use what came until t."""
        if self._waiting:
            due = sorted((at, *names) for names, at in self._waiting.items() if at <= t)
            for _, name, sign in due:
                del self._waiting[name, sign]
                if name in vehicles:
                    self.now[name] = sign
                    if self.changed is not None:
                        self.changed.add(name)

    def forget(self, name: str) -> None:
        """A vehicle is gone."""
        self.now.pop(name, None)

    def snapshot(self) -> dict[str, Any]:
        """All of them."""
        return {"now": self.now, "waiting": [[name, sign, t] for (name, sign), t in self._waiting.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        # the same dictionary: others look into it
        self.now.clear()
        self.now.update(state["now"])
        self._waiting = {(name, sign): t for name, sign, t in state["waiting"]}
