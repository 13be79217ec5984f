"""Small models trained on one kind of encounter and judged on others: something to try the matrix with at once.

Two aircraft meet head-on, cross, or one overtakes the other. A model is a rule with three parameters: how far ahead it
looks, how hard it turns, and whether both aircraft give way. Training tries every rule of a grid on TRAINING_SEEDS of
one kind of encounter and keeps the one with the largest mean reward (`reward_total` of `evaluate conflicts`). Judging
uses other seeds. Every kind of encounter makes use of the same draws of a seed: episodes of the same seed are pairs.

A plane in NM, steps of 10 s; all episodes of a call fly at once, as arrays [episode, aircraft].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.streams.batch import F8

KINDS = ("head-on", "crossing", "overtaking")
# An aircraft that nobody turns is at its waypoint after MEET_S + BEYOND_S, two steps before the end.
STEP_S, STEPS, MEET_S, BEYOND_S = 10.0, 67, 400.0, 250.0
TRAINING_SEEDS = range(1_000_000, 1_000_012)
# What a rule keeps clear of: the separation minimum and a mile.
CLEAR_NM = 6.0
# A rule does not lead farther off the way to the waypoint than this, and returns at most this fast.
MOST_OFF_DEG, RETURN_DEG = 60.0, 18.0
# Where the plane touches the Earth.
LAT, LON = 52.0, 4.0
AGENTS = ("A1", "A2")


@dataclass(frozen=True, slots=True)
class Rule:
    """A model."""

    lookahead_s: float
    turn_deg: float
    both: bool
    """Both aircraft turn right; otherwise the first alone."""


# No farther ahead than the metrics look, no harder than a turn of 18 degrees a step.
GRID = tuple(Rule(*numbers) for numbers in product((60.0, 90.0, 120.0), (6.0, 10.0, 14.0, 18.0), (True, False)))


def episodes(count: int) -> Iterator[dict[str, Any]]:
    """Trajectories of every model on every kind of encounter, seeds 0 to count - 1."""
    for trained in KINDS:
        rule = train(trained)
        for judged in KINDS:
            for seed, flown in enumerate(fly(judged, rule, range(count))):
                yield flown | {
                    "scenario_metadata": {
                        "trained_on": trained, "judged_on": judged, "seed": seed, "model": f"{trained} rule",
                        "lookahead_s": rule.lookahead_s, "turn_deg": rule.turn_deg, "both": rule.both,
                    }
                }  # fmt: skip


def write(folder: Path, made: Sequence[dict[str, Any]]) -> None:
    """Each episode as a JSON file, named by what its model was trained and judged on and its seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in made:
        meta = one["scenario_metadata"]
        path = folder / f"{meta['trained_on']}__on__{meta['judged_on']}_seed{meta['seed']}.json"
        path.write_bytes(msgspec.json.encode(one))


def train(kind: str) -> Rule:
    """The rule of the grid with the largest mean reward; of equals the first."""
    detector = HallucinationDetector()

    def reward(rule: Rule) -> float:
        return float(np.mean([detector.compute(one)["reward_total"] for one in fly(kind, rule, TRAINING_SEEDS)]))

    return max(GRID, key=reward)


def fly(kind: str, rule: Rule, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """One trajectory per seed, in the structure of docs/evaluation/conflicts.md but for its metadata."""
    place, heading, speed = _begin(kind, seeds)
    waypoint = place + _velocity(heading, speed) * (MEET_S + BEYOND_S)
    log: list[tuple[F8, F8, F8]] = []
    for _ in range(STEPS):
        turn = _commands(rule, place, heading, speed, waypoint)
        log.append((place, heading, turn))
        heading = (heading + turn) % 360.0
        place = place + _velocity(heading, speed) * STEP_S
    places, headings, turns = (np.stack(column) for column in zip(*log, strict=True))
    return [
        {
            "timestamps": (np.arange(STEPS) * STEP_S).tolist(),
            "positions": [dict(zip(AGENTS, map(tuple, _degrees(step).tolist()), strict=True)) for step in places[:, e]],
            "actions": [dict(zip(AGENTS, ((t, 0.0) for t in step), strict=True)) for step in turns[:, e].tolist()],
            "agents": {
                agent: {"headings": headings[:, e, a].tolist(), "speeds": [float(speed[e, a])] * STEPS}
                for a, agent in enumerate(AGENTS)
            },
            "waypoints": {
                agent: dict(zip(("lat", "lon"), _degrees(waypoint[e, a]).tolist(), strict=True))
                for a, agent in enumerate(AGENTS)
            },
        }
        for e in range(len(seeds))
    ]  # fmt: skip


def _begin(kind: str, seeds: Sequence[int]) -> tuple[F8, F8, F8]:
    """Places, headings and speeds at the beginning: at MEET_S the two would be `miss` apart."""
    drawn = np.array([np.random.default_rng(seed).uniform(size=6) for seed in seeds])
    track, first, second, miss, spread, side = drawn.T
    sign = np.where(side < 0.5, -1.0, 1.0)
    turn = {
        "head-on": 180.0 + 16.0 * (spread - 0.5),
        "crossing": sign * (60.0 + 60.0 * spread),
        "overtaking": 6.0 * (spread - 0.5),
    }[kind]
    slower = 60.0 + 40.0 * second if kind == "overtaking" else np.zeros(len(drawn))
    fast = 420.0 + 60.0 * first
    speed = np.stack((fast, fast - slower if kind == "overtaking" else 420.0 + 60.0 * second), axis=1)
    heading = np.stack((360.0 * track, 360.0 * track + turn), axis=1) % 360.0
    velocity = _velocity(heading, speed)
    relative = velocity[:, 1] - velocity[:, 0]
    across = np.stack((relative[:, 1], -relative[:, 0]), axis=1) / np.linalg.norm(relative, axis=1)[:, None]
    place = -velocity * MEET_S
    place[:, 1] += across * (3.0 * miss * sign)[:, None]
    return place, heading, speed


def _commands(rule: Rule, place: F8, heading: F8, speed: F8, waypoint: F8) -> F8:
    """Turns in degrees, right is positive: away from a conflict ahead, otherwise back on the way to the waypoint."""
    velocity = _velocity(heading, speed)
    apart, closing = place[:, 1] - place[:, 0], velocity[:, 1] - velocity[:, 0]
    tcpa = np.clip(-(apart * closing).sum(axis=1) / np.maximum(1e-12, (closing**2).sum(axis=1)), 0.0, rule.lookahead_s)
    threat = np.linalg.norm(apart + closing * tcpa[:, None], axis=1) < CLEAR_NM
    to_go = waypoint - place
    off = (heading - np.degrees(np.arctan2(to_go[..., 0], to_go[..., 1])) + 180.0) % 360.0 - 180.0
    gives_way = threat[:, None] & np.array((True, rule.both))
    back = np.where(threat[:, None], 0.0, np.clip(-off, -RETURN_DEG, RETURN_DEG))
    # behind the waypoint there is nowhere to return to
    back = np.where(np.abs(off) > 90.0, 0.0, back)
    turned: F8 = np.where(gives_way, np.where(off < MOST_OFF_DEG, rule.turn_deg, 0.0), back)
    return turned


def _velocity(heading_deg: F8, speed_kt: F8) -> F8:
    """East and north in NM per second."""
    rad = np.radians(heading_deg)
    return np.stack((np.sin(rad), np.cos(rad)), axis=-1) * (speed_kt / 3600.0)[..., None]


def _degrees(place_nm: F8) -> F8:
    """Latitude and longitude of places east and north of the middle."""
    east, north = place_nm[..., 0], place_nm[..., 1]
    return np.stack((LAT + north / 60.0, LON + east / (60.0 * math.cos(math.radians(LAT)))), axis=-1)
