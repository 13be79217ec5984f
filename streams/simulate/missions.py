"""Where drones fly: random missions of take-off, legs, turns, loiters, climbs, hovering and landing that end at home.

A mission closes by symmetry: one random part that ends with the course reversed is flown twice, so its second
half undoes the first. A fixed wing also covers ground while it takes off and lands, all of it along the first course;
a leg in the middle, when the course is reversed, takes it back by exactly as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.simulate import motion
from watchkeeper.streams.simulate.motion import QUAD, WING

HOME_SPACING_M = 400.0
# A run this short starts in the air and stays there: it is over before a take-off and a landing would tell anything.
SHORT_RUN_S = 120.0
SHARE_AIRBORNE = 0.75  # of the drones at the start of longer runs


class Route:
    """A mission in the making. Every `go` is one segment, from the present values to those given."""

    def __init__(self, course: float) -> None:
        self.rows: list[F8] = []
        self.t_s = 0.0
        self.speed = self.turn = self.climb = self.air = 0.0
        self.course = course
        self.position: F8 = np.zeros(3)

    def go(
        self,
        length_s: float,
        *,
        speed: float | None = None,
        turn: float | None = None,
        climb: float | None = None,
        air: float | None = None,
    ) -> None:
        """Fly for a while; what is not given stays as it is."""
        if length_s <= 0.0:
            return
        after = [
            b if a is None else a
            for a, b in zip((speed, turn, climb, air), (self.speed, self.turn, self.climb, self.air), strict=True)
        ]
        row = np.array(
            [self.t_s, length_s, self.speed, after[0], self.turn, after[1], self.climb, after[2], self.air, after[3],
             self.course, *self.position]
        )  # fmt: skip
        self.rows.append(row)
        self.position = self.position + np.array(motion.displacement(row, length_s))
        self.course += length_s * (self.turn + after[1]) / 2.0
        self.t_s += length_s
        self.speed, self.turn, self.climb, self.air = after

    def turn_by(self, angle: float, rate: float, ease_s: float) -> None:
        """Turn by an angle: into the turn, through it, out of it."""
        rate = math.copysign(min(rate, abs(angle) / ease_s), angle)
        self.go(ease_s, turn=rate)
        self.go(abs(angle / rate) - ease_s if rate else 0.0)
        self.go(ease_s, turn=0.0)

    def climb_by(self, height_m: float, rate: float, ease_s: float, *, air: float | None = None) -> None:
        """Climb (or descend) and level off; the envelope, if given, changes while levelling off."""
        rate = math.copysign(min(rate, abs(height_m) / ease_s), height_m)
        self.go(ease_s, climb=rate)
        self.go(abs(height_m / rate) - ease_s)
        self.go(ease_s, climb=0.0, air=air)


@dataclass(frozen=True, slots=True)
class Missions:
    """The missions of all drones, ready for the kernels in motion.py. `flight_s` is when each is in the air."""

    shape: I4
    segs: F8
    first: I8
    count: I8
    cycle_s: F8
    offset_s: F8
    flight_s: F8
    home: F8
    wander: F8

    def __len__(self) -> int:
        return len(self.shape)

    @property
    def _plan(self) -> motion.Plan:
        return motion.Plan(
            self.segs, self.first, self.count, self.cycle_s, self.offset_s, self.home, self.wander, self.shape
        )

    def track(self, vid: I4, t: F8) -> F8:
        """[6, n]: position and velocity in NED."""
        out = np.empty((6, len(t)))
        motion.track(vid, t, self._plan, out)
        return out

    def body(self, vid: I4, t: F8) -> F8:
        """[10, n]: specific force and angular rate in FRD, roll, pitch, yaw, and 1 in the air or 0 on the ground."""
        out = np.empty((10, len(t)))
        motion.body(vid, t, self._plan, out)
        return out


def draw_missions(rng: np.random.Generator, n: int, seconds: float) -> Missions:
    """Missions for n drones, multirotors and fixed wings by turns."""
    shape: I4 = np.array([QUAD if i % 2 == 0 else WING for i in range(n)], np.int32)
    routes: list[Route] = []
    flight = np.empty((n, 2))
    for i in range(n):
        route, flight[i] = (_quad if shape[i] == QUAD else _wing)(rng)
        routes.append(route)
    count = np.array([len(r.rows) for r in routes], np.int64)
    cycle = np.array([r.t_s for r in routes])
    in_air = flight[:, 0] + rng.random(n) * np.maximum(flight[:, 1] - flight[:, 0] - min(seconds, SHORT_RUN_S), 0.0)
    on_ground = rng.uniform(0.0, 1.0, n)
    starts_in_air = (rng.random(n) < SHARE_AIRBORNE) | (seconds <= SHORT_RUN_S)
    side = math.ceil(math.sqrt(n))
    rows, columns = np.divmod(np.arange(n), side)
    home = np.stack((rows * HOME_SPACING_M, columns * HOME_SPACING_M, np.zeros(n)), axis=1)
    wander = np.empty((n, 3, motion.TONES, 3))
    wander[..., 0] = rng.uniform(0.04, 0.15, wander.shape[:3])  # m
    wander[..., 1] = rng.uniform(0.5, 1.5, wander.shape[:3])  # rad/s
    wander[..., 2] = rng.uniform(0.0, 2.0 * math.pi, wander.shape[:3])
    return Missions(
        shape=shape,
        segs=np.array([row for r in routes for row in r.rows]),
        first=np.concatenate(([0], np.cumsum(count)[:-1])).astype(np.int64),
        count=count,
        cycle_s=cycle,
        offset_s=np.where(starts_in_air, in_air, on_ground),
        flight_s=flight,
        home=home,
        wander=wander,
    )


def _quad(rng: np.random.Generator) -> tuple[Route, tuple[float, float]]:
    route = Route(rng.uniform(-math.pi, math.pi))
    height, climb = rng.uniform(25.0, 60.0), rng.uniform(1.5, 2.5)
    route.go(rng.uniform(3.0, 8.0))
    route.climb_by(height, climb, 2.0, air=1.0)
    up = route.t_s
    part = _quad_part(rng)
    for _ in range(2):
        begin = route.course
        part(route)
        # the turn that is left of half a circle, the shorter way
        route.turn_by(math.remainder(math.pi - (route.course - begin), 2.0 * math.pi), 0.7, 1.0)
    down = route.t_s
    route.go(3.0, air=0.0)
    route.climb_by(-height, climb / 1.5, 2.0)
    route.go(rng.uniform(3.0, 8.0))
    return route, (up, down)


def _quad_part(rng: np.random.Generator) -> Callable[[Route], None]:
    moves = rng.permutation(["leg", "bend", "leg", "circle", "bend", "leg"]).tolist()
    angles, speeds = rng.uniform(-2.2, 2.2, len(moves)), rng.uniform(4.0, 11.0, len(moves))
    cruise_s, hover_s = rng.uniform(6.0, 18.0, len(moves)), rng.uniform(1.0, 5.0, len(moves))
    lift = rng.uniform(5.0, 15.0)

    def fly(route: Route) -> None:
        for i, move in enumerate(moves):
            angle, speed = float(angles[i]), float(speeds[i])
            if move == "circle":
                rate = math.copysign(0.35, angle)
                route.go(3.0, speed=5.0, turn=rate)
                route.go((2.0 * math.pi - 3.0 * abs(rate)) / abs(rate))
                route.go(3.0, speed=0.0, turn=0.0)
            else:
                route.turn_by(angle, 0.7, 1.0)
                route.go(speed / 2.0, speed=speed)
                route.go(float(cruise_s[i]))
                if move == "bend":
                    # 3 m/s2 sideways, about 17 degrees of bank
                    route.turn_by(-angle / 2.0, 3.0 / speed, 1.5)
                    route.go(float(cruise_s[i]) / 2.0)
                route.go(speed / 2.0, speed=0.0)
            if i in (1, 4):
                route.climb_by(lift if i == 1 else -lift, 1.5, 1.5)
            route.go(float(hover_s[i]))

    return fly


def _wing(rng: np.random.Generator) -> tuple[Route, tuple[float, float]]:
    route = Route(rng.uniform(-math.pi, math.pi))
    speed, height, climb = rng.uniform(15.0, 22.0), rng.uniform(60.0, 120.0), rng.uniform(2.0, 3.5)
    route.go(rng.uniform(3.0, 8.0))
    route.go(6.0, speed=speed)
    route.climb_by(height, climb, 3.0, air=1.0)
    up = route.t_s
    out_m = float(np.hypot(*route.position[:2]))
    # the same numbers backwards for the landing: it covers as much ground as it will take to descend and stop
    ease_s, stop_s = 3.0, 8.0
    home_m = speed * (height / climb + ease_s + 3.0) + speed * stop_s / 2.0
    part = _wing_part(rng, speed)
    for half in range(2):
        begin = route.course
        part(route)
        route.turn_by(math.remainder(math.pi - (route.course - begin), 2.0 * math.pi), 4.5 / speed, 2.0)
        if half == 0:
            route.go((out_m + home_m) / speed)
    down = route.t_s
    route.go(3.0, air=0.0)
    route.climb_by(-height, climb, ease_s)
    route.go(stop_s, speed=0.0)
    route.go(rng.uniform(3.0, 8.0))
    return route, (up, down)


def _wing_part(rng: np.random.Generator, speed: float) -> Callable[[Route], None]:
    moves = rng.permutation(["leg", "leg", "loiter", "leg", "dash", "leg"]).tolist()
    angles = rng.choice((-1.0, 1.0), len(moves)) * rng.uniform(0.7, 2.2, len(moves))
    legs_s = rng.uniform(5.0, 14.0, len(moves))
    lift = rng.uniform(10.0, 30.0)

    def fly(route: Route) -> None:
        for i, move in enumerate(moves):
            angle, leg_s = float(angles[i]), float(legs_s[i])
            # 4.5 m/s2 sideways, about 25 degrees of bank
            if move == "loiter":
                route.turn_by(math.copysign(2.0 * math.pi, angle), 3.5 / speed, 2.0)
            elif move == "dash":
                route.go(4.0, speed=speed + 5.0)
                route.go(leg_s)
                route.go(4.0, speed=speed)
            else:
                route.turn_by(angle, 4.5 / speed, 2.0)
            route.go(leg_s)
            if i in (1, 4):
                route.climb_by(lift if i == 1 else -lift, 2.5, 2.5)

    return fly
