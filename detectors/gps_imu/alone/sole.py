"""Each stream by itself, for the detector: tables of receivers and IMUs, and what they add to the filter's verdict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.alone.axes import ALL_STUCK, ONE_STUCK, SATURATED, SHAKEN, watch_axes
from watchkeeper.detectors.gps_imu.alone.constants import AXES_S
from watchkeeper.detectors.gps_imu.alone.kernel import Seen, blank_seen, watch_receivers
from watchkeeper.detectors.gps_imu.alone.state import Axes, Receiver
from watchkeeper.detectors.gps_imu.constants import FRESH_S
from watchkeeper.detectors.gps_imu.kernel import PATH, Judged, Rows, blank_judged
from watchkeeper.detectors.gps_imu.state import (
    AXIS_STUCK,
    INTERFERENCE,
    REPLAY,
    STUCK,
    VIBRATION,
    Settings,
)
from watchkeeper.detectors.gps_imu.state import SATURATED as IMU_SATURATED
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.messages import GPS

# Channels that count next to the filter's own, of a receiver that is known; and of one that has only begun.
WITH_FILTER = np.array((REPLAY, INTERFERENCE))
AT_ONCE = np.array((INTERFERENCE, AXIS_STUCK, IMU_SATURATED, VIBRATION))
# What is judged of an IMU next to its GPS, and the channels that it fills.
OF_AXES = np.array((ONE_STUCK, SATURATED, SHAKEN))
AXES_CHANNELS = np.array((AXIS_STUCK, IMU_SATURATED, VIBRATION))


class Alone(NamedTuple):
    """What one window showed: of each fix, and the IMU samples with which a second without GPS ended."""

    seen: Seen
    ended: Bool


class Sole:
    """Receivers and IMUs by slot; `watch` takes a window, `add_to` and `of_imu` say what it showed."""

    def __init__(self, capacity: int) -> None:
        self._receivers: NDArray[Any] = blank(Receiver, capacity)
        self._axes: NDArray[Any] = blank(Axes, capacity)

    def watch(self, work: NDArray[Any], par: Settings, imu: Rows, gps: Rows) -> Alone:
        """Take one window of both streams."""
        seen, ended = blank_seen(len(gps.t)), np.zeros(len(imu.t), bool)
        watch_axes(self._axes, imu.slot, imu.t, imu.data, ended)
        watch_receivers(self._receivers, work, par, gps, seen)
        # a second of an IMU is evidence by itself where there has been no GPS for long
        with_gps = np.maximum(self._receivers["heard_t"][imu.slot], self._axes["begin_t"][imu.slot])
        ended &= imu.t - with_gps > FRESH_S
        return Alone(seen, ended)

    def path(self, gps: Rows, seen: Seen) -> F8:
        """What receivers show in the channels of PATH, by [fix, channel]; the filter takes it into its verdict.

        NaN where the receiver is not known yet, or tells no velocity: its path knows less than the filter then.
        """
        known = seen.known & ~np.isnan(gps.data[:, GPS.gps_vx])
        return np.ascontiguousarray(np.where(known[:, None], seen.sigma[:, PATH], np.nan))

    def add_to(self, judged: Judged, gps: Rows, seen: Seen, suspected: Bool, par: Settings) -> None:
        """Add what was seen of the same fixes: to the filter's verdict, or in its place where it has none.

        `suspected` are the fixes of vehicles whose filter has a verdict that it has not taken back: while it finds its
        attitude again, a receiver that agrees with itself is no reason to end the alarm.
        """
        sigma, known = seen.sigma, seen.known
        with_imu = gps.t - self._axes["imu_t"][gps.slot] <= AXES_S
        self._add_axes(sigma, gps.slot, with_imu, par)
        none = ~np.isfinite(judged.score)
        # next to the filter only what does not share its errors
        keep = np.zeros(sigma.shape, bool)
        keep[:, WITH_FILTER] = known[:, None]
        keep[none & known] = True
        keep[:, AT_ONCE] = True
        sigma *= keep
        judged.sigma[none] = 0.0
        np.maximum(judged.sigma, sigma, out=judged.sigma)
        worst = sigma.max(axis=1, initial=0.0)
        judged.off[none] = np.nan
        heard = none & ((known & ~suspected) | (worst >= par.threshold))
        judged.score[:] = np.where(none, np.where(heard, worst, np.nan), np.fmax(judged.score, worst))

    def of_imu(self, slot: I4, par: Settings) -> Judged:
        """The last second of these IMUs, where no fix is there to be judged."""
        rows = blank_judged(len(slot))
        rows.sigma[:, STUCK] = par.threshold * par.weight[STUCK] * self._axes["said"][slot, ALL_STUCK]
        self._add_axes(rows.sigma, slot, np.ones(len(slot), bool), par)
        rows.score[:] = rows.sigma.max(axis=1, initial=0.0)
        rows.away[:], rows.away_t[:], rows.taken[:], rows.off[:] = 0.0, 0.0, False, np.nan
        return rows

    def _add_axes(self, sigma: F8, slot: I4, with_imu: Bool, par: Settings) -> None:
        said = self._axes["said"][slot][:, OF_AXES] * with_imu[:, None]
        sigma[:, AXES_CHANNELS] = par.threshold * np.array(par.weight)[AXES_CHANNELS] * said

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._receivers[slots] = blank(Receiver, 1)
        self._axes[slots] = blank(Axes, 1)

    def snapshot(self, rows: I4) -> dict[str, Any]:
        """The records of these slots."""
        return {"receivers": self._receivers[rows], "axes": self._axes[rows]}

    def restore(self, rows: I4, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError: of another layout."""
        for table, saved in ((self._receivers, state["receivers"]), (self._axes, state["axes"])):
            if saved.dtype != table.dtype:
                raise ValueError("records of another layout")
            table[rows] = saved
