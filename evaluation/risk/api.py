"""`watchkeeper.evaluate.risk`: how close aircraft come in a log, and how often separation is lost, where and when.

Nothing here comes from a detector. encounters.py has how near pairs came, `evaluate alarms` the losses. The share of
encounters that came closer than x is Kaplan and Meier's estimate: of an encounter that was cut off by the edge of view
only a bound is known. Losses are counted per flight hour, with exact intervals of Poisson. command.py is the same from
a terminal.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from scipy.stats import CensoredData, ecdf

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.evaluation.alarms.flights import Reports, Sky
from watchkeeper.evaluation.alarms.ghosts import ghosts
from watchkeeper.evaluation.alarms.truth import Loss, losses
from watchkeeper.evaluation.risk.encounters import FAR, Encounter, encounters
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.poisson import poisson_95
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.frames.sources import Data, sources_of
from watchkeeper.streams.frames.write import NUMBER, TEXT, Backend, rows_frame
from watchkeeper.streams.geo import WGS84_E2
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import read_logs

HOUR_S, HOURS = 3600, 24
# Between these altitudes figures are put together: circuits, approaches, climbs, cruise.
BANDS_FT = (3_000.0, 10_000.0, 24_500.0)
# Scaled separations at which the curve is given.
POINTS = tuple(round(0.1 * k, 1) for k in range(1, int(10 * FAR) + 1))
RATE = {"by": TEXT, "where": TEXT, "flight_hours": NUMBER, "losses": NUMBER, "per_hour": NUMBER,
        "low": NUMBER, "high": NUMBER}  # fmt: skip


class Point(msgspec.Struct, frozen=True):
    """Of all encounters the share that came closer than `scaled`, its 95 % band, and how many these are an hour."""

    scaled: float
    closer: float
    closer_95: tuple[float, float]
    per_flight_hour: float


class Rate(msgspec.Struct, frozen=True):
    """Losses in one part of the log: flight hours there, how many began there, per flight hour with its interval."""

    where: str
    flight_hours: float
    losses: int
    per_hour: float
    per_hour_95: tuple[float, float]


class Risk(msgspec.Struct, frozen=True):
    """All figures of one log."""

    aircraft: int
    flight_hours: float
    encounters: int
    cut: int
    """Encounters whose least separation is at the edge of view: a bound."""
    curve: list[Point]
    all: Rate
    by_altitude: list[Rate]
    by_area: list[Rate]
    by_hour: list[Rate]

    def to_dict(self) -> dict[str, Any]:
        """All figures, ready for JSON: what `--out` writes."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per rate: all, by altitude, by area, by hour of the day."""
        groups = {"all": [self.all], "altitude": self.by_altitude, "area": self.by_area, "hour": self.by_hour}
        rows = [
            {**msgspec.to_builtins(rate), "by": by, "low": rate.per_hour_95[0], "high": rate.per_hour_95[1]}
            for by, rates in groups.items()
            for rate in rates
        ]
        return rows_frame(rows, RATE, backend)


def risk(data: Data, *, config: Config | None = None, cell_deg: float = 1.0, quiet: bool = False) -> Risk:
    """How close aircraft come in a recording, and how often separation is lost.

    `data` is what `watch` takes. Minima and zones are those of `[detectors.conflict]`; areas are cells of `cell_deg`
    degrees of latitude and longitude, named by their south-western corner; hours are of the day in UTC.

    >>> import watchkeeper as wk
    >>> found = wk.evaluate.risk(wk.simulate("head-on", seed=1, seconds=300))
    >>> found.all.losses, found.encounters > 0
    (1, True)
    """
    config = config or load(None)
    c = config.detectors.conflict
    if timed := [zone.name for zone in c.zones if zone.volume.tau_s > 0.0]:
        raise EvaluationError(f"separation here is a distance, no tau; without the zone {timed[0]!r} it can be told")
    sources = sources_of(data)
    sky = sky_of(shown(read_logs(sources), sources, "reading", hidden=quiet), c.min_gs_kt)
    if not sky.ids:
        raise EvaluationError(f"no ADS-B samples in {', '.join(str(source.info().path) for source in sources)}")
    return measure(sky, c.separation_nm, c.vertical_ft, c.zones, cell_deg)


def sky_of(batches: Iterable[Batch], min_gs_kt: float) -> Sky:
    """Where everyone was."""
    reports = Reports()
    for batch in batches:
        reports.add(batch)
    return reports.sky(min_gs_kt=min_gs_kt)


def measure(sky: Sky, separation_nm: float, vertical_ft: float, zones: Sequence[Zone], cell_deg: float) -> Risk:
    """All figures of a sky."""
    one_aircraft = ghosts(sky)
    lost = [v for v in losses(sky, separation_nm, vertical_ft, zones) if v.pair not in one_aircraft]
    met = [e for e in encounters(sky, separation_nm, vertical_ft, zones) if e.pair not in one_aircraft]
    names = _names(sky, cell_deg)
    at = _rows_of(sky, lost)
    return Risk(
        aircraft=len(sky.ids),
        flight_hours=sky.hours,
        encounters=len(met),
        cut=sum(e.cut for e in met),
        curve=closer_than(met, sky.hours),
        all=_rate("all", sky.hours, len(lost)),
        **{by: _rates(column, [column[row] for row in at]) for by, column in names.items()},
    )


def closer_than(met: Sequence[Encounter], flight_hours: float) -> list[Point]:
    """The share of encounters that came closer than each of POINTS, with pointwise 95 % bands (Greenwood, log-log)."""
    if not met:
        return []
    # closeness: the larger the closer, so that an encounter that was cut off is censored on the right
    closeness = FAR - np.array([e.least for e in met])
    cut = np.array([e.cut for e in met], bool)
    survival = ecdf(CensoredData.right_censored(closeness, cut)).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no interval where the estimate is 0 or 1
        band = survival.confidence_interval(0.95, method="log-log")
    found = []
    # what has never been seen among n may still happen: 1 - 0.025^(1/n), Clopper and Pearson's end
    never = 1.0 - 0.025 ** (1.0 / len(met))
    for scaled in POINTS:
        # closer than `scaled` is a closeness of more than FAR - scaled
        closer, low, high = (float(curve.evaluate(FAR - scaled)) for curve in (survival, band.low, band.high))
        if closer <= 0.0:
            low, high = 0.0, never
        elif closer >= 1.0:
            low, high = 1.0 - never, 1.0
        found.append(Point(scaled, closer, (low, high), len(met) * closer / flight_hours))
    return found


def _names(sky: Sky, cell_deg: float) -> dict[str, list[str]]:
    """For each row of the sky the altitude band, the cell and the hour of the day that it is in."""
    band = np.searchsorted(BANDS_FT, sky.alt_ft, side="right")
    words = [_band(k) for k in range(len(BANDS_FT) + 1)]
    x_m, y_m, z_m = sky.xyz_m.T  # on the ellipsoid
    lat, lon = np.degrees(np.arctan2(z_m, (1.0 - WGS84_E2) * np.hypot(x_m, y_m))), np.degrees(np.arctan2(y_m, x_m))
    south, west = (np.floor(angle / cell_deg) * cell_deg for angle in (lat, lon))
    hour = sky.second // HOUR_S % HOURS
    return {
        "by_altitude": ["unknown" if np.isnan(alt) else words[k] for alt, k in zip(sky.alt_ft, band, strict=True)],
        "by_area": [f"{s:+.2f} {w:+.2f}" for s, w in zip(south.tolist(), west.tolist(), strict=True)],
        "by_hour": [f"{h:02d}" for h in hour.tolist()],
    }


def _band(k: int) -> str:
    if k == 0:
        return f"below {BANDS_FT[0]:,.0f} ft"
    if k == len(BANDS_FT):
        return f"from {BANDS_FT[-1]:,.0f} ft"
    return f"{BANDS_FT[k - 1]:,.0f} to {BANDS_FT[k]:,.0f} ft"


def _rows_of(sky: Sky, lost: Sequence[Loss]) -> list[int]:
    """For each loss the row of its first aircraft in its first second."""
    number = {name: i for i, name in enumerate(sky.ids)}
    row_of = {key: row for row, key in enumerate(zip(sky.aircraft.tolist(), sky.second.tolist(), strict=True))}
    return [row_of[number[loss.pair[0]], int(loss.t_start)] for loss in lost]


def _rates(where: list[str], lost: list[str]) -> list[Rate]:
    seconds, counts = Counter(where), Counter(lost)
    bands = [_band(k) for k in range(len(BANDS_FT) + 1)]
    names = sorted(seconds, key=lambda name: (bands.index(name) if name in bands else 0, name))
    return [_rate(name, seconds[name] / HOUR_S, counts[name]) for name in names]


def _rate(where: str, flight_hours: float, lost: int) -> Rate:
    low, high = poisson_95(lost)
    hours = max(flight_hours, 1.0 / HOUR_S)
    return Rate(where, flight_hours, lost, lost / hours, (low / hours, high / hours))
