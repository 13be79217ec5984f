"""Shared by the tests of the evaluation: aircraft that fly a straight line, and reports that go wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.geo import KT_MS, NM_M, direct_many
from watchkeeper.streams.messages import Kind

T0 = 1_700_000_000.0


@dataclass(frozen=True)
class Track:
    """Reports of one aircraft as columns; `t` counts from T0."""

    name: str
    t: np.ndarray
    lat: np.ndarray
    lon: np.ndarray
    alt_ft: np.ndarray
    gs_kt: np.ndarray
    trk_deg: np.ndarray
    vs_fpm: np.ndarray
    on_ground: np.ndarray

    def without(self, mask: np.ndarray) -> Track:
        """Less the reports that the mask names."""
        return Track(self.name, *(getattr(self, name)[~mask] for name in COLUMNS))

    def at(self, mask: np.ndarray, **values: float) -> Track:
        """With other values where the mask says so."""
        return replace(self, **{name: np.where(mask, value, getattr(self, name)) for name, value in values.items()})


COLUMNS = ("t", "lat", "lon", "alt_ft", "gs_kt", "trk_deg", "vs_fpm", "on_ground")


def straight(
    name: str, lat: float, lon: float, trk_deg: float, *, gs_kt: float = 450.0, alt_ft: float = 35_000.0,
    seconds: int = 400, every_s: int = 1,
) -> Track:  # fmt: skip
    """Along a geodesic from lat, lon, level, at constant speed."""
    t = np.arange(0.0, seconds + 1.0, every_s)
    start = np.ones_like(t)
    lats, lons, azimuth = direct_many(lat * start, lon * start, trk_deg * start, gs_kt * KT_MS * t)
    flat = {"alt_ft": alt_ft, "gs_kt": gs_kt, "vs_fpm": 0.0, "on_ground": 0.0}
    columns = {column: value * start for column, value in flat.items()}
    return Track(name, t, lats, lons, trk_deg=azimuth % 360.0, **columns)


def facing(distance_nm: float, *, alt_ft: float = 35_000.0, seconds: int = 400, every_s: int = 1) -> list[Track]:
    """Two aircraft on the same line towards each other: 900 kt, a quarter of a mile a second."""
    lat, lon, azimuth = direct_many(np.array([50.0]), np.array([8.0]), np.array([60.0]), np.array([distance_nm * NM_M]))
    keep = {"alt_ft": alt_ft, "seconds": seconds, "every_s": every_s}
    return [
        straight("aa0001", 50.0, 8.0, 60.0, **keep),
        straight("bb0002", float(lat[0]), float(lon[0]), float(azimuth[0]) + 180.0, **keep),
    ]


def abreast(distance_nm: float, *, seconds: int = 400, every_s: int = 1) -> list[Track]:
    """Two aircraft along the equator and beside it, always the same distance apart."""
    lat, _, _ = direct_many(np.zeros(1), np.array([8.0]), np.zeros(1), np.array([distance_nm * NM_M]))
    first = straight("aa0001", 0.0, 8.0, 90.0, seconds=seconds, every_s=every_s)
    return [first, replace(first, name="bb0002", lat=np.full_like(first.lat, lat[0]))]


def batch_of(tracks: Iterable[Track]) -> Batch:
    """All reports in order of time."""
    tracks = list(tracks)
    vid = np.concatenate([np.full(len(track.t), i) for i, track in enumerate(tracks)])
    columns = {name: np.concatenate([getattr(track, name) for track in tracks]) for name in COLUMNS}
    order = np.lexsort((vid, columns["t"]))
    values = {name: column[order] for name, column in columns.items() if name != "t"}
    adsb = columns_of(Kind.ADSB, vid[order].astype(np.int32), T0 + columns["t"][order], values)
    return Batch([track.name for track in tracks], {Kind.ADSB: adsb})


@pytest.fixture(scope="session")
def scenes() -> SimpleNamespace:
    """Aircraft to make a log of."""
    return SimpleNamespace(t0=T0, straight=straight, facing=facing, abreast=abreast, batch_of=batch_of)
