"""Drones behind gateways behind a broker, and one fault somewhere in between: telemetry for the diagnosis to explain.

The drones are those of `simulate drones`. Gateways, the broker's host and the vehicles also report on their ports, as
samples of the stream `link` every REPORT_S (docs/messages.md), unless all are mute; `via` names the gateway. Everything
arrives through the network as it is then: reports from behind a cut do not come, a slow link delays them too.

Fault forms are those of the diagnosis, by word. Latencies and clock errors stay below `time.lateness_s`: what is later
than that never gets past the pipeline's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import I4, I8, Batch, Bool, Columns
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.linkmeter import LinkMeter
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind
from watchkeeper.streams.simulate import arrival
from watchkeeper.streams.simulate.arrival import Chunk
from watchkeeper.streams.simulate.faults import Fault, Faults
from watchkeeper.streams.simulate.scenarios import T0, simulate
from watchkeeper.streams.simulate.sensors import GPS_RATE_HZ, DroneSource

BROKER = "broker"
IMU_RATE_HZ = 50.0
REPORT_S = 2
LAMP_WRONG = 0.02
FOOT_M = 0.3048
# A jammed receiver still gives a fix or two, poor ones, before it gives none.
JAM_FADES_S = 4.0
STOPS = frozenset({"dead", "cut", "blocked"})
_G, _I, _L = COLUMN[Kind.GPS], COLUMN[Kind.IMU], COLUMN[Kind.LINK]
_POSITION, _VELOCITY = [_G[f"gps_{a}"] for a in "xyz"], [_G[f"gps_v{a}"] for a in "xyz"]
_FORCE, _RATES = [_I[f"imu_a{a}"] for a in "xyz"], [_I[f"imu_w{a}"] for a in "xyz"]


@dataclass(frozen=True, slots=True)
class NetworkFault:
    """A form of fault at a device, or at its uplink, from t_start on.

    `size` as in evaluation/diagnosis/simulated/network.py.
    """

    form: str
    device: str
    t_start: float
    size: float


class NetworkSource:
    """Drones and the devices between them and us: the Source for the arrival queue."""

    def __init__(
        self, drones: DroneSource, gateway_of: list[str], rng: np.random.Generator, fault: NetworkFault | None,
        *, mute: bool,
    ) -> None:  # fmt: skip
        self._drones, self._rng, self._fault, self._mute = drones, rng, fault, mute
        self._vehicles = list(drones.names)
        self.parent = dict(zip(self._vehicles, gateway_of, strict=True))
        self.parent |= dict.fromkeys(sorted(set(gateway_of)), BROKER)
        self.parent |= {f"{v}/{kind}": v for v in self._vehicles for kind in ("gps", "imu")}
        self.names = [*self._vehicles, *(name for name in self.parent if name not in set(self._vehicles))]
        self.callsigns = [""] * len(self.names)
        self._vid = {name: i for i, name in enumerate(self.names)}
        self._rtt_s = {name: float(rng.uniform(0.01, 0.06)) for name in self.names}
        self._under: Bool = np.array([fault is not None and fault.device in self._path(v) for v in self._vehicles])
        self._stream = None if fault is None or "/" not in fault.device else fault.device.rsplit("/", 1)[1]
        if self._stream is not None and fault is not None:
            self._under = np.array([self.parent[fault.device] == v for v in self._vehicles])
        self._spoof = self._sensor_fault()

    def _path(self, device: str) -> list[str]:
        path = [device]
        while path[-1] in self.parent:
            path.append(self.parent[path[-1]])
        return path

    def _sensor_fault(self) -> Faults:
        """What the simulator has for spoofing and broken IMUs."""
        fault = self._fault
        if fault is None or fault.form not in ("spoof", "imu"):
            return Faults([])
        angle = float(self._rng.uniform(-np.pi, np.pi))
        side = (float(np.cos(angle)), float(np.sin(angle)), 0.0)
        kinds = (
            (("gps_bias", 15.0, 40.0), ("gps_drift", 2.5, 5.0)) if fault.form == "spoof" else (("imu_bias", 1.2, 3.0),)
        )
        kind, low, high = kinds[int(self._rng.integers(len(kinds)))]
        vehicle = int(np.flatnonzero(self._under)[0])
        stream = "gps" if fault.form == "spoof" else "imu"
        size = float(self._rng.uniform(low, high))
        return Faults([Fault(vehicle, kind, stream, fault.t_start, np.inf, size, "", side)])

    def second(self, s: int) -> list[Chunk]:
        """See arrival.Source."""
        chunks = [self._spoof.apply(self._hurt(chunk)) for chunk in self._drones.second(s)]
        return chunks if self._mute else [*chunks, self._reports(s)]

    # -- what the fault does to samples ---------------------------------------------------------------------

    def _hurt(self, chunk: Chunk) -> Chunk:
        fault, rng = self._fault, self._rng
        if fault is None or self._stream not in (None, chunk.kind.word):
            return chunk
        rows = np.flatnonzero(self._under[chunk.vid] & (chunk.t >= fault.t_start))
        gone = np.zeros(len(chunk.t), bool)
        if fault.form in STOPS:
            gone[rows] = True
        elif fault.form == "loss":
            gone[rows] = rng.random(len(rows)) < fault.size
        elif fault.form == "rate":
            rate_hz = fault.size * (GPS_RATE_HZ if chunk.kind is Kind.GPS else IMU_RATE_HZ)
            usual_hz = rate_hz / fault.size
            gone[rows] = np.floor(chunk.t[rows] * rate_hz) == np.floor((chunk.t[rows] - 1.0 / usual_hz) * rate_hz)
        elif fault.form == "latency":
            chunk.arrive[rows] += fault.size * rng.uniform(0.9, 1.1, len(rows))
        elif fault.form == "clock":
            chunk.t[rows] -= fault.size
        elif fault.form == "jam":
            gone[rows] = self._jam(chunk, rows)
        else:
            _misread(fault.form, chunk, rows)
        return chunk.take(~gone) if gone.any() else chunk

    def _jam(self, chunk: Chunk, rows: I8) -> Bool:
        assert self._fault is not None
        since_s = chunk.t[rows] - self._fault.t_start
        noise = self._rng.standard_normal((3, len(rows))) * (4.0 * since_s)
        chunk.data[np.ix_(np.array(_POSITION), rows)] += noise
        chunk.data[_G["eph"], rows] *= 1.0 + 6.0 * since_s
        chunk.data[_G["hdop"], rows] *= 1.0 + 2.0 * since_s
        chunk.data[_G["sats"], rows] = np.maximum(chunk.data[_G["sats"], rows] - 3.0 * since_s, 0.0)
        over: Bool = since_s > JAM_FADES_S
        return over

    # -- what devices report --------------------------------------------------------------------------------

    def _reports(self, s: int) -> Chunk:
        rng, fault = self._rng, self._fault
        t = s + 0.5
        active = fault is not None and t >= fault.t_start
        vid: list[int] = []
        rows: list[dict[str, float]] = []
        late_s: list[float] = []
        for device, reporter in self.parent.items():
            if (s + self._vid[device]) % REPORT_S:
                continue
            # what the neighbour nearer to the broker says about its port, then what the device says about itself
            for teller, readings in ((reporter, self._port(device, active)), (device, self._load(device, active))):
                way = self._path(teller)
                hit = fault is not None and active and fault.device in way
                if not readings or (hit and fault is not None and fault.form in STOPS):
                    continue
                if hit and fault is not None and fault.form == "loss" and rng.random() < fault.size:
                    continue
                vid.append(self._vid[device])
                rows.append(readings)
                late_s.append(fault.size if hit and fault is not None and fault.form == "latency" else 0.0)
        data = np.full((len(FIELDS[Kind.LINK]), len(rows)), np.nan)
        for i, readings in enumerate(rows):
            for name, value in readings.items():
                data[_L[name], i] = value
        times = t + 0.3 * rng.random(len(rows))
        return Chunk(Kind.LINK, np.array(vid, np.int32), times, times + 0.05 + np.array(late_s), data)

    def _port(self, device: str, active: bool) -> dict[str, float]:
        rng, fault = self._rng, self._fault
        form = fault.form if fault is not None and active and device == fault.device else ""
        size = fault.size if fault is not None else 0.0
        heard = abs(float(rng.normal(0.0, 0.05))) if form in STOPS else max(float(rng.normal(1.0, 0.1)), 0.0)
        readings = {
            "carrier": float((form != "cut") != (rng.random() < LAMP_WRONG)),
            "heard": heard * (1.0 - size if form == "loss" else 1.0),
            "filtered": float(rng.poisson(12.0 if form == "blocked" else 0.02)),
            "errors": min(float(rng.exponential(0.005)) + (size if form == "loss" else 0.0), 1.0),
            "backlog_s": float(rng.exponential(0.008)) + (size / 2.0 if form == "latency" else 0.0),
        }
        if "/" not in device and form not in STOPS:
            slow_s = size if form == "latency" else 0.0
            readings["rtt_s"] = self._rtt_s[device] * float(rng.uniform(0.8, 1.3)) + slow_s
        return readings

    def _load(self, device: str, active: bool) -> dict[str, float]:
        if "/" in device:
            return {}
        fault = self._fault
        busy = fault is not None and active and device == fault.device and fault.form == "rate"
        return {"load": float(self._rng.beta(14.0, 3.0) if busy else self._rng.beta(3.0, 9.0))}


def _misread(form: str, chunk: Chunk, rows: I8) -> None:
    """Wrong frame, unit or axes: the samples are whole, but not what they are taken for."""
    data = chunk.data
    if form == "frame" and chunk.kind is Kind.GPS:
        for axes in (_POSITION, _VELOCITY):
            x, y, z = (data[a, rows].copy() for a in axes)
            data[axes[0], rows], data[axes[1], rows], data[axes[2], rows] = y, x, -z
    elif form == "unit":
        columns, factor = (
            ([*_POSITION, *_VELOCITY], 1.0 / FOOT_M) if chunk.kind is Kind.GPS else (_FORCE, 1.0 / GRAVITY_MS2)
        )
        data[np.ix_(np.array(columns), rows)] *= factor
    elif form == "axis" and chunk.kind is Kind.IMU:
        for axes in (_FORCE, _RATES):
            x, y, z = (data[a, rows].copy() for a in axes)
            data[axes[0], rows], data[axes[1], rows], data[axes[2], rows] = z, x, y


def network_source(
    seed: int, vehicles: int, gateways: int, seconds: float, fault: NetworkFault | None, *, mute: bool = False
) -> NetworkSource:
    """The drones of a seed, dealt out to gateways; where all are `mute` nobody reports on ports or answers pings."""
    sim = simulate("drones", seed=seed, vehicles=vehicles, seconds=seconds, rate_hz=IMU_RATE_HZ, faults=False)
    rng = np.random.default_rng((seed, 77))
    gateway_of = [f"gw-{1 + i % gateways}" for i in range(vehicles)]
    return NetworkSource(sim.drone_source(), gateway_of, rng, fault, mute=mute)


def network_batches(source: NetworkSource, seconds: float, t0: float = T0) -> Iterator[Batch]:
    """A batch per second in order of arrival, with the gateways' names and our own measurement of latencies."""
    for batch in arrival.batches([source], seconds, t0, LinkMeter()):
        yield _with_vias(batch, source.parent)


def _with_vias(batch: Batch, parent: dict[str, str]) -> Batch:
    """Name the gateway of each vehicle's samples."""
    vias = sorted({parent[name] for name in batch.ids if "/" not in name and parent[name] != BROKER})
    number = {name: i for i, name in enumerate(vias)}
    of_vid: I4 = np.array([number.get(parent[name], -1) if "/" not in name else -1 for name in batch.ids], np.int32)
    kinds = {k: Columns(c.seq, c.vid, of_vid[c.vid], c.t, c.data) for k, c in batch.kinds.items()}
    return Batch(batch.ids, kinds, vias, batch.callsigns, batch.called_t)
