"""Options of `evaluate tracks` that mean something together: where the grid lies, and how to slice. For command.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from watchkeeper.evaluation.shared.arguments import number, whole
from watchkeeper.evaluation.tracks.pairs import GRID_SIZE_DEG, Grid, grid_within
from watchkeeper.evaluation.tracks.slices import DAY_H, PLACE, TIME, Slicing

HOURS = Slicing(()).hours


class UsageError(ValueError):
    """Options that do not go together; the message says which."""


def add_grid(parser: argparse.ArgumentParser) -> None:
    """The cells in which ends are the same."""
    parser.add_argument(
        "--grid-size", type=number("degrees", 0.0, 180.0, open_at_lo=True), default=GRID_SIZE_DEG, metavar="DEG",
        help=f"size of the cells in which origins and destinations are the same (default {GRID_SIZE_DEG:g})",
    )  # fmt: skip
    parser.add_argument(
        "--bounds", type=float, nargs=4, metavar=("SOUTH", "WEST", "NORTH", "EAST"),
        help="the area of the grid in degrees (default: that of the road network or, without one, of the real ones)",
    )  # fmt: skip
    parser.add_argument(
        "--roads", type=Path, metavar="ROADMAP.geo",
        help="the road network: needed for trajectories that are lists of roads, and the area of the grid",
    )  # fmt: skip


def add_slices(parser: argparse.ArgumentParser) -> None:
    """Figures for parts of the data."""
    parser.add_argument(
        "--slice", nargs="+", choices=(TIME, PLACE), default=(),
        help="all figures also by time of day, or by place, at which a trajectory begins",
    )  # fmt: skip
    parser.add_argument(
        "--slice-hours", type=whole(1, DAY_H), default=HOURS, metavar="H",
        help=f"length of a slice of the day; {DAY_H} is a multiple of it (default {HOURS})",
    )  # fmt: skip
    parser.add_argument(
        "--utc-offset", type=number("hours", -14.0, 14.0), default=0.0, metavar="H", help="local time minus UTC"
    )
    parser.add_argument(
        "--centre", type=float, nargs=3, metavar=("LAT", "LON", "KM"),
        help="slice places by this circle: within, into, out of, elsewhere (default: quarters of the grid)",
    )  # fmt: skip


def bounds_in(args: argparse.Namespace) -> Grid | None:
    """The grid of --bounds. Raises UsageError."""
    try:
        return None if args.bounds is None else grid_within(args.bounds, args.grid_size)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def slicing_in(args: argparse.Namespace) -> Slicing | None:
    """What --slice and the options next to it ask for. Raises UsageError."""
    if args.centre is not None:
        lat, lon, radius_km = args.centre
        if not (-90.0 <= lat <= 90.0 and -180.0 <= lon <= 360.0 and 0.0 < radius_km < 20_100.0):
            raise UsageError(f"--centre {lat:g} {lon:g} {radius_km:g}: expected LAT, LON in degrees and KM above 0")
        if PLACE not in args.slice:
            raise UsageError("--centre is for --slice place")
    if DAY_H % args.slice_hours:
        raise UsageError(f"--slice-hours {args.slice_hours}: {DAY_H} hours are no multiple of it")
    if not args.slice:
        return None
    centre = None if args.centre is None else tuple(args.centre)
    return Slicing(tuple(dict.fromkeys(args.slice)), args.slice_hours, args.utc_offset, centre)
