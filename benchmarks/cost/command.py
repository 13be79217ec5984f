"""What a fleet costs on 1 to 1,000 workers: processor time, bytes between stages, checkpoints, hot keys, halo copies.

    watchkeeper bench cost [--vehicles 200] [--seconds 40]

What one drone and one aircraft cost in each stage is measured here, in one process on one core. The rest is arithmetic
and two small simulations: how evenly names spread over buckets and workers, and how many copies of aircraft tiles with
a halo would need. docs/beyond-one-machine.md has the arithmetic in words.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from watchkeeper.benchmarks.cost.measured import Cost, measure
from watchkeeper.benchmarks.cost.scanned import Scanned, scanned
from watchkeeper.streams.split import BUCKETS, bucket_of

WORKERS = (1, 2, 4, 16, 64, 256, 1000)
# A core is planned to be this busy at most: what a burst needs is free.
BUSY = 0.7
# Buckets for each worker where more workers are wanted than there are buckets now.
BUCKETS_EACH = 16
# Two aircraft at 650 kt that come within 5 NM in the next 120 s are less than this far apart in 60 s.
HALO_NM = 28.0
IMU_HZ = 100.0
FLEETS = (14_000, 100_000, 200_000, 1_000_000)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench cost", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--vehicles", type=int, default=200, help="drones that are measured (200); aircraft are 5 times, pairs 25 times"
    )
    parser.add_argument("--seconds", type=int, default=40, help="of the scenarios (40)")
    args = parser.parse_args(argv)
    drone = measure("drone", "drones", args.vehicles, args.seconds, rate_hz=IMU_HZ)
    aircraft = measure("aircraft", "random", 5 * args.vehicles, args.seconds)
    for cost in (drone, aircraft):
        _stages(cost)
    _fleets(drone)
    _spread(drone)
    _tiles(aircraft, scanned(25 * args.vehicles, args.seconds))
    return 0


def _stages(cost: Cost) -> None:
    print(f"one {cost.vehicle}, {cost.samples:.0f} samples a second; microseconds of one core per second:")
    print(
        f"  one Pipeline {cost.single_us:.1f}; Front {cost.front_us:.1f}, operators of vehicles "
        f"{cost.operator_us:.1f}, operator of the fleet {cost.fleet_us:.1f}, Merge {cost.merge_us:.1f}"
    )
    print(
        f"  bytes per second to operators {cost.ask_bytes:,.0f}, to the fleet's {cost.fleet_bytes:,.0f}, to Merge "
        f"{cost.answer_bytes:,.0f}; bytes of state {cost.state_bytes:,.0f}"
    )
    print(
        f"  one Pipeline ends at {1e6 / cost.single_us:,.0f}, Front at {1e6 / cost.front_us:,.0f}, Merge at "
        f"{1e6 / cost.merge_us:,.0f}, both in one process at {1e6 / cost.ends_us:,.0f}"
    )


def _fleets(drone: Cost) -> None:
    print(f"fleets of drones, cores {BUSY:.0%} busy:")
    for n in FLEETS:
        full = n * (drone.front_us + drone.operator_us + drone.merge_us) / 1e6
        fronts = math.ceil(n * drone.front_us / 1e6 / BUSY)
        moved = n * (drone.ask_bytes + drone.answer_bytes) / 1e9
        print(
            f"  {n:>9,}: work for {full:.1f} cores, so {full / BUSY:.1f} cores, {fronts} of them Front; "
            f"{moved:.2f} GB/s between stages, {n * drone.state_bytes / 1e9:.1f} GB in a checkpoint"
        )


def _spread(drone: Cost) -> None:
    """How uneven a spread by names is: 100 vehicles for each worker, and as many as one can take."""
    print("hot keys: the fullest worker over the mean, and what that leaves of the speed-up of the operators:")
    names = [f"drone-{i}" for i in range(200_000)]
    bucket = np.fromiter(map(bucket_of, names), np.int64)
    chance = np.random.default_rng(1)
    for workers in WORKERS:
        buckets = BUCKETS if workers <= BUCKETS else BUCKETS_EACH * workers
        of_bucket = bucket if buckets == BUCKETS else chance.integers(0, buckets, len(names))
        load = np.bincount(of_bucket % workers, minlength=workers)
        few = np.bincount(of_bucket[: 100 * workers] % workers, minlength=workers)
        hot, hot_few = load.max() / load.mean(), few.max() / few.mean()
        ideal = drone.single_us / (drone.operator_us / workers * hot)
        ends = drone.single_us / max(drone.operator_us / workers * hot, drone.ends_us)
        note = "" if workers <= BUCKETS else f" (with {buckets:,} buckets; there are {BUCKETS})"
        print(
            f"  {workers:>5} workers: {hot:.2f} of 200,000 vehicles, {hot_few:.2f} of {100 * workers:,}; operators "
            f"alone {ideal:.1f} times one Pipeline, with one Front and Merge in one process {ends:.1f}{note}"
        )


def _tiles(aircraft: Cost, found: Scanned) -> None:
    """What tiles could take from the operator of the fleet, and the copies of aircraft that they would need."""
    ends = 1e6 / aircraft.fleet_us
    print(
        f"the search for pairs is {found.share:.0%} of the operator of the fleet, which ends at {ends:,.0f} aircraft, "
        f"and with tiles at {ends / (1.0 - found.share):,.0f}; they would get and give {found.state_bytes} bytes of "
        f"each aircraft a tick, and whoever follows a pair {found.ring_bytes:,} of each of the two"
    )
    print(
        f"tiles of a conflict search (not built), halo {HALO_NM:g} NM: copies of an aircraft, fullest tile over mean:"
    )
    chance = np.random.default_rng(2)
    side_nm, n = 2000.0, 50_000
    even = chance.uniform(0.0, side_nm, (n, 2))
    hubs = chance.uniform(0.0, side_nm, (40, 2))
    around = (hubs[chance.integers(0, len(hubs), n)] + chance.normal(0.0, 60.0, (n, 2))) % side_nm
    for tile_nm in (60.0, 120.0, 250.0, 500.0):
        words = []
        for title, at in (("even", even), ("hubs", around)):
            copies = np.zeros(n, np.int64)
            tiles = int(side_nm // tile_nm)
            load = np.zeros((tiles + 2, tiles + 2), np.int64)
            low = np.floor((at - HALO_NM) / tile_nm).astype(int).clip(0, tiles)
            high = np.floor((at + HALO_NM) / tile_nm).astype(int).clip(0, tiles)
            for dx in range(int(high[:, 0].max() - low[:, 0].min()) + 1):
                for dy in range(int(high[:, 1].max() - low[:, 1].min()) + 1):
                    x, y = low[:, 0] + dx, low[:, 1] + dy
                    inside = (x <= high[:, 0]) & (y <= high[:, 1])
                    if not inside.any():
                        break
                    copies += inside
                    np.add.at(load, (x[inside], y[inside]), 1)
            used = load[load > 0]
            words.append(f"{title} {copies.mean():.2f} copies, {used.max() / used.mean():.1f}")
        print(f"  {tile_nm:5.0f} NM: {'; '.join(words)}")
