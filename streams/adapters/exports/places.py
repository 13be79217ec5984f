"""Where alarms were raised: for each vehicle of an alarm the position of its that is nearest in time.

Fed with positions as a log is read; alarms are few and positions many, so each position is compared with the alarms
of its own vehicle only. A position counts when it is at most NEAR_S away from the moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from watchkeeper.streams.adapters.exports.alarms import Alarm
from watchkeeper.streams.adapters.exports.positions import Positions
from watchkeeper.streams.batch import F8

# A vehicle that was last heard longer ago than this was somewhere else.
NEAR_S = 60.0


class _Moments:
    """The moments of one vehicle's alarms, in order of time, and the position that is nearest to each so far."""

    def __init__(self, t: F8) -> None:
        self.t = t
        self.off_s = np.full(len(t), np.inf)
        self.where = np.full((len(t), 4), np.nan)

    def see(self, where: F8) -> None:
        where = where[np.argsort(where[:, 0], kind="stable")]
        after = np.searchsorted(where[:, 0], self.t)
        for at in (np.maximum(after - 1, 0), np.minimum(after, len(where) - 1)):
            off_s = np.abs(where[at, 0] - self.t)
            nearer = off_s < self.off_s
            self.off_s[nearer], self.where[nearer] = off_s[nearer], where[at[nearer]]


class Places:
    """The places of these alarms."""

    def __init__(self, alarms: Sequence[Alarm]) -> None:
        times: dict[str, set[float]] = {}
        for alarm in alarms:
            for name in alarm.last.subjects:
                times.setdefault(name, set()).add(alarm.last.t_raised)
        self._moments = {name: _Moments(np.array(sorted(t))) for name, t in times.items()}

    def see(self, ids: Sequence[str], found: Positions) -> None:
        """Positions of vehicles that `ids` names."""
        for vid in np.unique(found.vid).tolist():
            if (moments := self._moments.get(ids[vid])) is not None:
                moments.see(found.where[found.vid == vid])

    def of(self, alarm: Alarm) -> list[F8]:
        """(t, lon, lat, alt_m) of each vehicle of the alarm that has a position near its moment."""
        found = []
        for name in alarm.last.subjects:
            moments = self._moments[name]
            i = int(np.searchsorted(moments.t, alarm.last.t_raised))
            if moments.off_s[i] <= NEAR_S:
                found.append(moments.where[i])
        return found
