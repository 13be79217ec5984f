"""The scenarios by name: who flies, for how long, with which errors; and `simulate`, which puts one together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import T_MAX
from watchkeeper.streams.simulate import arrival, truth
from watchkeeper.streams.simulate.adsb import AdsbSource
from watchkeeper.streams.simulate.airspace import Airspace
from watchkeeper.streams.simulate.controlled import Controller
from watchkeeper.streams.simulate.encounters import GEOMETRIES, NEUTRAL_MAX, DemoEncounters, Encounter
from watchkeeper.streams.simulate.faults import Fault, Faults, demo_schedule, draw_schedule
from watchkeeper.streams.simulate.jamming import Jamming
from watchkeeper.streams.simulate.missions import Missions, draw_missions
from watchkeeper.streams.simulate.motion import QUAD
from watchkeeper.streams.simulate.sensors import GPS_RATE_HZ, NONE, REAL, DroneSource
from watchkeeper.streams.simulate.shift import Shift
from watchkeeper.streams.simulate.signals import SignalSource
from watchkeeper.streams.simulate.traffic import Pilot

# 2023-11-14 22:13:20 UTC: a round number, so that times in logs are easy to read
T0 = 1_700_000_000.0
ADSB_RATE_HZ = 1.0  # where `rate_hz` is that of the IMU
DEMO_DRONES = 5
# One independent random stream per part: what one part draws does not change what another sees.
_TRAFFIC, _ADSB, _MISSIONS, _SENSORS, _FAULTS, _JAMMING, _SIGNALS = range(7)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a name stands for, and its defaults. `rate_hz` is that of ADS-B reports, with drones that of the IMU."""

    description: str
    vehicles: int
    seconds: float
    rate_hz: float
    noise: bool
    aircraft: bool = True
    drones: bool = False

    def __str__(self) -> str:
        return self.description


SCENARIOS: dict[str, Scenario] = {
    "head-on": Scenario("two aircraft meet head-on at one level", 6, 300.0, 1.0, False),
    "crossing": Scenario("two aircraft cross at one level", 6, 300.0, 1.0, False),
    "overtaking": Scenario("one aircraft slowly overtakes another", 6, 900.0, 1.0, False),
    "vertical": Scenario("one aircraft climbs or descends through another's level", 6, 300.0, 1.0, False),
    "formation": Scenario("two aircraft fly close together all the time", 6, 300.0, 1.0, False),
    "controlled": Scenario("a controller commands four encounters, well and badly, and says so", 8, 600.0, 1.0, False),
    "random": Scenario("en-route traffic at the density of busy airspace, nobody controls it", 200, 600.0, 1.0, True),
    "jamming": Scenario("random traffic, and a GNSS jammer that comes, grows and goes", 300, 600.0, 1.0, True),
    "drones": Scenario(
        "multirotors and fixed wings with GPS and IMU, some of them attacked", 20, 600.0, 50.0, True, False, True
    ),
    "mixed": Scenario("random traffic and drones, one drone to ten aircraft", 220, 600.0, 50.0, True, True, True),
    "signals": Scenario(
        "quadrotors that send battery, motors, temperatures, GPS figures; three of four fail",
        12,
        300.0,
        1.0,
        True,
        False,
    ),
    "demo": Scenario(
        "a conflict that resolves, spoofed drones, a stream that stops, every 90 s", 11, 60.0, 50.0, True, True, True
    ),
}


@dataclass(frozen=True, slots=True)
class Simulation:
    """One scenario with all its numbers fixed. `batches()` and `truth()` can each be called at any time, and again."""

    scenario: str
    seed: int
    vehicles: int
    seconds: float
    rate_hz: float
    t0: float
    noise: bool
    faults: bool
    ahrs: bool
    shift: Shift | None = None

    @property
    def commanded(self) -> dict[str, str]:
        """The ids of the aircraft of `controlled`, by names that are the same for every seed; empty elsewhere."""
        pilot = self._pilot() if self.scenario == "controlled" else None
        return dict(zip(Controller.NAMES, pilot.traffic.names, strict=False)) if pilot is not None else {}

    @property
    def drones(self) -> int:
        """How many of the vehicles are drones."""
        kind = SCENARIOS[self.scenario]
        if not kind.drones:
            return 0
        if not kind.aircraft:
            return self.vehicles
        return DEMO_DRONES if self.scenario == "demo" else max(1, round(self.vehicles / 11))

    def batches(self) -> Iterator[Batch]:
        """Batches of about a second each, in arrival order."""
        if (signals := self._signals()) is not None:
            return signals.batches(self.t0)
        sources: list[arrival.Source] = []
        pilot = self._pilot()
        if pilot is not None:
            rate_hz = ADSB_RATE_HZ if SCENARIOS[self.scenario].drones else self.rate_hz
            losses = self.scenario in ("random", "jamming", "mixed")
            source = AdsbSource(pilot, self._rng(_ADSB), rate_hz=rate_hz, noise=self.noise, losses=losses)
            source.jamming = self._jamming()
            source.controller = pilot if isinstance(pilot, Controller) else None
            sources.append(source)
        missions = self._missions()
        if missions is not None:
            sources.append(self._drone_source(missions))
        return arrival.batches(sources, self.seconds, self.t0)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] | None = None) -> Any:
        """All samples as a frame, one row each in order of arrival; by default of the first library installed."""
        # on demand: a daemon has no use for frames
        from watchkeeper.streams.frames.write import samples_frame  # noqa: PLC0415

        return samples_frame(self.batches(), backend)

    def truth(self) -> dict[str, Any]:
        """What really happens in it, ready for JSON: vehicles, losses of separation, faults."""
        result: dict[str, Any] = {
            "scenario": self.scenario, "seed": self.seed, "t0": self.t0, "seconds": self.seconds,
            "rate_hz": self.rate_hz, "vehicles": {}, "pairs": [], "faults": [],
        }  # fmt: skip
        if self.shift is not None:
            result["shift"] = asdict(self.shift)
        if (signals := self._signals()) is not None:
            result["vehicles"] = {name: {"kind": "quad", "rate_hz": self.rate_hz} for name in signals.ids}
            result["faults"] = [
                {
                    "id": signals.ids[f.vehicle], "kind": f.kind, "stream": "signal", "signal": f.signal,
                    "t_start": self.t0 + f.t_start, "t_end": self.t0 + f.t_end,
                }
                for f in signals.faults
            ]  # fmt: skip
        pilot = self._pilot()
        if pilot is not None:
            result["vehicles"], result["pairs"] = truth.fly(pilot, self.seconds, self.t0)
        jamming, pilot = self._jamming(), self._pilot()
        if jamming is not None and pilot is not None:
            result["jamming"] = jamming.truth(pilot, self.seconds, self.t0)
        missions = self._missions()
        if missions is not None:
            source = self._drone_source(missions)
            for i, name in enumerate(source.names):
                result["vehicles"][name] = {
                    "kind": "quad" if missions.shape[i] == QUAD else "wing",
                    "imu_rate_hz": self.rate_hz, "gps_rate_hz": GPS_RATE_HZ, "ahrs": self.ahrs,
                    "gps_latency_s": float(source.latency_s[i]), "home_ned_m": missions.home[i].tolist(),
                    "accel_bias_mps2": source.bias[i, :3].tolist(), "gyro_bias_radps": source.bias[i, 3:].tolist(),
                }  # fmt: skip
            result["faults"] = [
                {
                    "id": source.names[f.vehicle], "kind": f.kind, "stream": f.stream, "t_start": self.t0 + f.t_start,
                    "t_end": self.t0 + f.t_end, "magnitude": f.magnitude, "unit": f.unit,
                    "direction": list(f.direction),
                }
                for f in self._schedule(missions)
            ]  # fmt: skip
        return result

    def drone_source(self) -> DroneSource:
        """The drones alone, before their samples are put in order of arrival."""
        missions = self._missions()
        if missions is None:
            raise ValueError(f"scenario {self.scenario!r} has no drones")
        return self._drone_source(missions)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(stream,))))

    def _signals(self) -> SignalSource | None:
        if self.scenario != "signals":
            return None
        return SignalSource(
            self._rng(_SIGNALS), vehicles=self.vehicles, seconds=self.seconds, rate_hz=self.rate_hz, faults=self.faults
        )

    def _pilot(self) -> Pilot | None:
        aircraft = self.vehicles - self.drones if SCENARIOS[self.scenario].aircraft else 0
        if self.scenario in GEOMETRIES:
            return Encounter(self.scenario, self._rng(_TRAFFIC), aircraft, self.seconds)
        if self.scenario == "demo":
            return DemoEncounters(self._rng(_TRAFFIC), aircraft)
        if self.scenario == "controlled":
            return Controller(self._rng(_TRAFFIC), aircraft, self.shift)
        return Airspace(self._rng(_TRAFFIC), aircraft) if aircraft else None

    def _jamming(self) -> Jamming | None:
        return Jamming(self._rng(_JAMMING), self.vehicles, self.seconds) if self.scenario == "jamming" else None

    def _missions(self) -> Missions | None:
        return draw_missions(self._rng(_MISSIONS), self.drones, self._flown_s) if self.drones else None

    @property
    def _flown_s(self) -> float:
        # the demo is about what happens in the air, however long it runs
        return min(self.seconds, 60.0) if self.scenario == "demo" else self.seconds

    def _schedule(self, missions: Missions) -> list[Fault]:
        if not self.faults:
            return []
        rng = self._rng(_FAULTS)
        if self.scenario == "demo":
            return demo_schedule(rng, len(missions), self.seconds, DemoEncounters.CYCLE_S)
        return draw_schedule(rng, missions, self.seconds)

    def _drone_source(self, missions: Missions) -> DroneSource:
        width = len(str(len(missions)))
        names = [f"{'quad' if k == QUAD else 'wing'}-{i + 1:0{width}d}" for i, k in enumerate(missions.shape)]
        return DroneSource(
            missions, Faults(self._schedule(missions)), self._rng(_SENSORS),
            names=names, rate_hz=self.rate_hz, errors=REAL if self.noise else NONE, ahrs=self.ahrs,
        )  # fmt: skip


def simulate(
    scenario: str,
    *,
    seed: int = 0,
    vehicles: int | None = None,
    seconds: float | None = None,
    rate_hz: float | None = None,
    t0: float = T0,
    noise: bool | None = None,
    faults: bool | None = None,
    ahrs: bool = True,
    shift: Shift | None = None,
) -> Simulation:
    """A scenario by name; whatever is not given takes the scenario's default.

    `noise` off gives exact reports and perfect sensors. `faults` off leaves all drones alone. `ahrs` says whether
    drones also report an attitude. `shift` lets one aircraft of `controlled` begin otherwise, everything else equal.

    >>> simulate("crossing", seed=7).truth()["pairs"][0]["min_sep_nm"] < 2.1
    True
    """
    if scenario not in SCENARIOS:
        near = get_close_matches(scenario, SCENARIOS, 1, 0.0)[0]
        raise ValueError(f"unknown scenario {scenario!r}; did you mean {near!r}? There are: {', '.join(SCENARIOS)}")
    kind = SCENARIOS[scenario]
    if faults and not kind.drones and scenario != "signals":
        raise ValueError(f"faults happen to drones, and scenario {scenario!r} has none")
    sim = Simulation(
        scenario=scenario,
        seed=seed,
        vehicles=kind.vehicles if vehicles is None else vehicles,
        seconds=float(kind.seconds if seconds is None else seconds),
        rate_hz=float(kind.rate_hz if rate_hz is None else rate_hz),
        t0=float(t0),
        noise=kind.noise if noise is None else noise,
        faults=kind.drones or scenario == "signals" if faults is None else faults,
        ahrs=ahrs,
        shift=shift,
    )
    _check(sim)
    return sim


def _check(sim: Simulation) -> None:
    fewest, most = 1, 100_000
    if sim.scenario in GEOMETRIES:
        fewest, most = 2, NEUTRAL_MAX
    elif sim.scenario == "demo":
        fewest, most = DEMO_DRONES + 2, NEUTRAL_MAX
    elif sim.scenario == "controlled":
        fewest, most = Controller.COMMANDED, NEUTRAL_MAX
    elif sim.scenario == "mixed":
        fewest = 2
    if sim.shift is not None:
        if sim.scenario != "controlled":
            raise ValueError(f"a shift is one of scenario 'controlled', and this is {sim.scenario!r}")
        sim.shift.check(Controller.NAMES)
    rates = (5.0, 1000.0) if SCENARIOS[sim.scenario].drones else (0.01, 20.0)
    for name, value, low, high in (
        ("vehicles", sim.vehicles, fewest, most),
        ("seconds", sim.seconds, 1.0, 1e9),
        ("rate_hz", sim.rate_hz, *rates),
        ("t0", sim.t0, 0.0, T_MAX - sim.seconds),
        ("seed", sim.seed, 0, math.inf),
    ):
        if not low <= value <= high:
            raise ValueError(f"{name} is {value:g}, but scenario {sim.scenario!r} takes {low:g} to {high:g}")
