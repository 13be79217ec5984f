"""Which plots a vehicle has, in the order in which somebody reads them.

A plot is a title, a unit, a meaning, lines (series.py) and a limit if there is one. `group` says where it stands:
score, channel (residuals of gps_imu, and of any other detector with figures in sigmas), motion, receiver, imu, other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.daemon.report.figures import SIGMA
from watchkeeper.daemon.report.gather.collect import SCATTER, SCORE, Collector
from watchkeeper.daemon.report.gather.envelope import Envelope
from watchkeeper.daemon.report.series import line
from watchkeeper.detectors.catalog import kinds, threshold
from watchkeeper.detectors.coverage.declaration import spoken
from watchkeeper.detectors.declaration import fields_of
from watchkeeper.streams.logs.told import Told
from watchkeeper.streams.messages import Kind

# Group, title, unit, meaning, and the columns in one plot.
_READINGS: dict[Kind, tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = {
    Kind.ADSB: (
        ("motion", "altitude", "ft", "pressure altitude", ("alt_ft",)),
        ("motion", "ground speed", "kt", "as it reports it", ("gs_kt",)),
        ("receiver", "accuracy and integrity", "", "NACp and NIC that it claims: higher is better", ("nacp", "nic")),
    ),
    Kind.GPS: (
        ("motion", "altitude", "m", "of the GPS, positive up", ("alt_m",)),
        ("motion", "speed", "m/s", "horizontal, of the GPS", ("speed_mps",)),
        ("receiver", "satellites", "", "used by the receiver", ("sats",)),
        (
            "receiver",
            "accuracy",
            "m",
            "the receiver's own estimate, horizontal (eph) and vertical (epv)",
            ("eph", "epv"),
        ),
        ("receiver", "dilution of precision", "", "horizontal", ("hdop",)),
        ("receiver", "fix type", "", "0-1 none, 2 2-D, 3 3-D, 4 and more differential", ("fix",)),
    ),
    Kind.IMU: (
        ("imu", "specific force", "m/s2", "length of the accelerometer's vector; 9.8 at rest", ("force_mps2",)),
        ("imu", "angular rate", "rad/s", "length of the gyroscope's vector", ("rate_rps",)),
    ),
}
_SCATTER = (
    "imu",
    "scatter of specific force",
    "m/s2",
    "standard deviation within a second: vibration and noise",
    SCATTER[:1],
)


def plots_of(collector: Collector, config: Config, row: int, told: Told | None, bins: int) -> list[dict[str, Any]]:
    """All plots of one vehicle."""
    found = [*_scores(collector, row, bins), *_channels(collector, config, row, bins)]
    for kind, plots in _READINGS.items():
        for plot in plots:
            found += _plot(collector.readings[kind], row, bins, *plot)
    found += _plot(collector.scatter, row, bins, *_SCATTER)
    found += _told(told, bins) if told is not None else []
    found += _others(collector, row, bins)
    return found


def _plot(
    envelope: Envelope, row: int, bins: int, group: str, title: str, unit: str, meaning: str, columns: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    lines = [(name, found) for name in columns if (found := line(envelope, name, row, bins)) is not None]
    # a column of nothing but zeros is one that the sender does not measure
    lines = [(name, found) for name, found in lines if found["min"] or found["max"]]
    if lines:
        names = [name for name, _ in lines] if len(columns) > 1 else [""]
        yield {
            "group": group,
            "title": title,
            "unit": unit,
            "meaning": meaning,
            "lines": [{"name": name, **found} for name, (_, found) in zip(names, lines, strict=True)],
        }


def _scores(collector: Collector, row: int, bins: int) -> Iterator[dict[str, Any]]:
    lines = [
        {"name": spoken(kind), **found}
        for kind, envelope in collector.scores.items()
        if (found := line(envelope, SCORE, row, bins)) is not None
    ]
    if lines:
        meaning = "each detector's score over its threshold: from 1 on it is evidence for an alarm"
        yield {"group": "score", "title": "scores", "unit": "", "meaning": meaning, "limit": 1.0, "lines": lines}


def _channels(collector: Collector, config: Config, row: int, bins: int) -> list[dict[str, Any]]:
    """The channels whose figures are in sigmas, the highest first."""
    found = []
    for kind, envelope, field in _fields(collector):
        plots = _plot(envelope, row, bins, "channel", "", SIGMA, "", (field.name,)) if field.unit == SIGMA else ()
        for plot in plots:
            name = field.name.removesuffix("_sigma")
            limit = threshold(kind, config)
            meaning = kind.causes.get(name, field.meaning)
            peak = plot["lines"][0]["max"]
            found.append(plot | {"title": spoken(name), "meaning": meaning, "limit": limit, "peak": peak})
    return sorted(found, key=lambda plot: -plot["peak"])


def _others(collector: Collector, row: int, bins: int) -> Iterator[dict[str, Any]]:
    """Figures of detectors that are in other units."""
    for kind, envelope, field in _fields(collector):
        # event times are no quantities
        if field.unit != SIGMA and not field.name.endswith("_t"):
            title = f"{spoken(kind.name)}: {field.words}"
            yield from _plot(envelope, row, bins, "other", title, field.unit, field.meaning, (field.name,))


def _fields(collector: Collector) -> Iterator[tuple[Any, Envelope, Any]]:
    known = kinds()
    for name, envelope in collector.scores.items():
        if name in known:
            for field in fields_of(known[name].facts):
                if field.name in envelope.columns:
                    yield known[name], envelope, field


def _told(told: Told, bins: int) -> Iterator[dict[str, Any]]:
    for figure in told.figures:
        envelope = Envelope((figure.name,), 2 * bins)
        order = np.argsort(figure.t, kind="stable")
        envelope.add(np.zeros(len(order), np.int64), figure.t[order], figure.value[order][None])
        for plot in _plot(envelope, 0, bins, "receiver", figure.name, figure.unit, figure.meaning, (figure.name,)):
            yield plot | {"told": True}
