"""gps_imu: a GPS that the IMU contradicts, or an IMU that the GPS contradicts.

For each vehicle an error-state Kalman filter follows the raw IMU and meets each raw GPS fix (fix.py). One row
of evidence per fix: the score is about the largest of several named channels, calibrated by what this vehicle shows
while healthy (scale.py). On top, a model of the residuals of a bucket of vehicles (model/, streams/split.py)
gives its opinion of a few fixes per tick, as a number and a cause in the evidence. What a contradiction has looked like
since it began says what it probably is (naming/): a probability for each kind of fault.

Each stream is also judged by itself (alone/): fixes that the filter cannot judge, because there is no IMU or no
attitude yet, have the score of their receiver alone; an IMU without a GPS is judged once a second.

Attitude columns that a vehicle may send are not used unless the configuration says so (`attitude`): as a rule they come
from a filter that has already believed the GPS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full, next_after
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.fleet.reasons import Code
from watchkeeper.detectors.gps_imu.alone.sole import Sole
from watchkeeper.detectors.gps_imu.constants import FRESH_S, WEIGHT
from watchkeeper.detectors.gps_imu.coverage import codes_of, reopen, words_of
from watchkeeper.detectors.gps_imu.declaration import DECLARATION, DISPLACED, SINCE
from watchkeeper.detectors.gps_imu.displacement import forget_displacement
from watchkeeper.detectors.gps_imu.doubts import Doubt, Space, look
from watchkeeper.detectors.gps_imu.kernel import OFF, PATH, Judged, Rows, Tables, blank_judged, run
from watchkeeper.detectors.gps_imu.model.fleet import ResidualModel
from watchkeeper.detectors.gps_imu.naming.coefficients import COEFFICIENTS
from watchkeeper.detectors.gps_imu.naming.pattern import NAMES, Pattern, follow
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.state import CHANNELS, SCALED, Settings, Vehicle, Work
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.split import bucket_of

MODEL, RECOVERING, AWAY = range(len(CHANNELS), len(CHANNELS) + 3)
CAUSES = (*CHANNELS, "model", "recovering", "not_reestablished")
NUMBERS = tuple(f"{channel}_sigma" for channel in CHANNELS)
LIKELY = tuple(f"{name}_p" for name in NAMES)
# A code as arrays take it.
NOT_APPLICABLE = int(Code.NOT_APPLICABLE)


class GpsImu:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._table: NDArray[Any] = blank(Vehicle, fleet.capacity)
        self._slow: NDArray[Any] = blank(Slow, fleet.capacity)
        self._work: NDArray[Any] = blank(Work, 1)
        # whether what each vehicle sends can be what it should be, and when it last had a score
        self._doubts: NDArray[Any] = blank(Doubt, fleet.capacity)
        self._space: NDArray[Any] = blank(Space, 1)
        self._judged_t: F8 = np.full(fleet.capacity, -np.inf)
        self._sole = Sole(fleet.capacity)
        self._patterns: NDArray[Any] = blank(Pattern, fleet.capacity)
        self._coefficients = np.array(COEFFICIENTS)
        # for the model's choice of epochs: when it last saw a vehicle, and a number that depends on the name alone
        self._seen_t: F8 = np.full(fleet.capacity, -np.inf)
        self._key: I8 = np.zeros(fleet.capacity, np.int64)
        self._bucket: I4 = np.zeros(fleet.capacity, np.int32)
        # one for each bucket of vehicles: what it says does not depend on how vehicles are spread over operators
        self._models: dict[int, ResidualModel] = {}
        self._judged = self._anomalous = self._displaced = 0
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        cfg = config.detectors.gps_imu
        self._config = cfg
        if cfg.model == "off":
            self._models = {}
        weight = tuple(0.0 if name in cfg.channels_off else w for name, w in zip(CHANNELS, WEIGHT, strict=True))
        self._settings = Settings(
            threshold=cfg.threshold, nominal_rate=cfg.nominal_rate,
            nominal_sigma=NormalDist().inv_cdf(1.0 - 0.5 * cfg.nominal_rate),
            weight=weight,
            learn_delay=cfg.learn_delay, learn_scale=cfg.learn_scale, gps_delay_s=cfg.gps_delay_s,
            position_std_m=cfg.position_std_m,
            velocity_std_mps=cfg.velocity_std_mps, timing_std_s=cfg.timing_std_s, gyro_noise=cfg.gyro_noise,
            accel_noise=cfg.accel_noise, gyro_walk=cfg.gyro_walk, accel_walk=cfg.accel_walk, warmup_s=cfg.warmup_s,
            recover_s=cfg.recover_s, lasting_m=cfg.lasting_m, imu_gap_s=cfg.imu_gap_s,
            ahrs=cfg.attitude == "ahrs", enu=config.frames.local == "enu",
            body_sign=-1.0 if config.frames.body == "flu" else 1.0,
        )  # fmt: skip

    @property
    def _tables(self) -> Tables:
        return Tables(self._table, self._slow)

    def kernels(self) -> list[Callable[[], object]]:
        """The filter, the search for wrong units and frames, and the model if it is on, over no samples."""
        imu, gps = _rows(None, Kind.IMU), _rows(None, Kind.GPS)
        model = [lambda: ResidualModel(CHANNELS[:SCALED]).judge(np.empty((0, SCALED)), np.zeros(0, bool))]
        return [
            lambda: run(self._tables, self._work, self._settings, imu, gps, np.empty((0, len(PATH))), blank_judged(0)),
            lambda: look(self._doubts, self._settings, self._space, imu, gps),
            lambda: self._sole.watch(self._work, self._settings, imu, gps),
            lambda: self._name(np.empty(0, np.int32), np.empty(0), np.empty(0), np.empty((0, len(CHANNELS)))),
            *(model if self._config.model != "off" else []),
        ]

    def step(self, window: Window) -> list[Evidence]:
        """Run the filters over this window; evidence for every fix that could be judged."""
        if Kind.IMU not in window.samples and Kind.GPS not in window.samples:
            self._judged = self._anomalous = 0
            return []
        imu = _rows(window.samples.get(Kind.IMU), Kind.IMU)
        gps = _rows(window.samples.get(Kind.GPS), Kind.GPS)
        judged = blank_judged(len(gps.t))
        alone = self._sole.watch(self._work, self._settings, imu, gps)
        run(self._tables, self._work, self._settings, imu, gps, self._sole.path(gps, alone.seen), judged)
        look(self._doubts, self._settings, self._space, imu, gps)
        by_filter = np.isfinite(judged.score)
        self._judged_t[gps.slot[by_filter]] = gps.t[by_filter]
        suspected = self._table["latched"][gps.slot] == 1
        self._sole.add_to(judged, gps, alone.seen, suspected, self._settings)
        lone = np.flatnonzero(alone.ended)
        rows = np.flatnonzero(np.isfinite(judged.score))
        self._judged = len(rows)
        self._anomalous = len(np.unique(gps.slot[judged.score >= self._config.threshold]))
        self._displaced = int((self._table["away_t"][: self._fleet.high] > 0.0).sum())
        evidence = []
        if len(rows) or len(lone):
            slot, t = np.concatenate((gps.slot[rows], imu.slot[lone])), np.concatenate((gps.t[rows], imu.t[lone]))
            all_rows = judged.at(rows).and_then(self._sole.of_imu(imu.slot[lone], self._settings))
            order = np.lexsort((t, slot))
            filtered = np.concatenate((by_filter[rows], np.zeros(len(lone), bool)))[order]
            evidence.append(self._evidence(slot[order], t[order], all_rows.at(order), filtered))
        return evidence

    def _evidence(self, slot: I4, t: F8, judged: Judged, by_filter: Bool) -> Evidence:
        cfg, score, sigma = self._config, judged.score, judged.sigma
        bits = ((sigma >= cfg.threshold) << np.arange(len(CHANNELS))).sum(axis=1)
        unusual = full(len(t), np.nan)
        if cfg.model != "off":
            # a witness, not a judge: on real flights its voice in the score found nothing more and cost a false alarm
            seen = np.flatnonzero(by_filter)
            asked = full(len(seen), np.nan)
            self._ask_models(slot[seen], t[seen], score[seen], sigma[seen], asked)
            unusual[seen] = asked
            bits |= (unusual >= cfg.threshold).astype(np.int64) << MODEL
        # over the threshold without a channel over it: two that nearly are, or a verdict that is not yet taken back
        unnamed = (score >= cfg.threshold) & (bits == 0)
        together = unnamed & (sigma.max(axis=1) >= 0.8 * cfg.threshold)
        bits = np.where(together, 1 << sigma.argmax(axis=1), bits)
        displaced = judged.away_t > 0.0
        bits = np.where(unnamed & ~together & ~displaced, 1 << RECOVERING, bits)
        bits |= displaced.astype(np.int64) << AWAY
        away = {name: np.where(displaced, judged.away[:, k], np.nan) for k, name in enumerate(DISPLACED)}
        away[SINCE] = np.where(displaced, judged.away_t, np.nan)
        off = dict(zip(OFF, judged.off.T, strict=True))
        ratio = score / cfg.threshold
        likely, news = self._name(slot, t, score, sigma)
        return Evidence(
            "gps_imu",
            slot,
            t=t,
            epoch=t,
            score=score,
            threshold=full(len(t), cfg.threshold),
            severity=((ratio >= cfg.caution_ratio).astype(np.uint8) + (ratio >= cfg.warning_ratio)).astype(np.uint8),
            numbers=dict(zip(NUMBERS, sigma.T, strict=True)) | {"model_sigma": unusual} | off | away | likely,
            causes=CAUSES,
            cause_bits=bits,
            taken_as_normal=judged.taken,
            news=news,
        )

    def _name(self, slot: I4, t: F8, score: F8, sigma: F8) -> tuple[dict[str, F8], Bool]:
        """How likely each kind of fault is by what the vehicle has shown, and which rows have another name to tell."""
        threshold = self._config.threshold
        found, news = np.empty((len(t), len(NAMES))), np.zeros(len(t), bool)
        follow(self._patterns, slot, t, score >= threshold, sigma / threshold, self._coefficients, found, news)
        return dict(zip(LIKELY, found.T, strict=True)), news

    def _ask_models(self, slot: I4, t: F8, score: F8, sigma: F8, unusual: F8) -> None:
        """Let the model of each bucket see a few epochs of its own vehicles; those that it is not asked about stay NaN.

        Half of them are the highest scores, half of the vehicles that it has not seen for longest. It learns from the
        second half alone, or it would take the unusual for the rule.
        """
        for new in np.unique(slot[self._key[slot] == 0]).tolist():
            self._key[new] = name_key(self._fleet.ids[new])
            self._bucket[new] = bucket_of(self._fleet.ids[new])
        budget = self._config.model_budget
        bucket, key = self._bucket[slot], self._key[slot]
        highest = _first_of_each(np.lexsort((t, key, -score, bucket)), bucket, budget // 2)
        longest = np.lexsort((t, key, self._seen_t[slot], bucket))
        # one epoch per vehicle, so that everybody has a turn
        longest = longest[np.sort(np.unique(slot[longest], return_index=True)[1])]
        longest = _first_of_each(longest, bucket, budget - budget // 2)
        self._seen_t[slot[longest]] = t[longest]
        learn = np.zeros(len(t), bool)
        learn[longest] = score[longest] < self._config.threshold
        chosen = np.unique(np.concatenate((highest, longest)))
        # in an order that does not depend on slots
        chosen = chosen[np.lexsort((key[chosen], t[chosen], bucket[chosen]))]
        points = np.ascontiguousarray(sigma[chosen, :SCALED])
        learn, bucket = learn[chosen], bucket[chosen]
        edges = np.flatnonzero(np.diff(bucket, prepend=-1, append=-1)).tolist()
        for start, end in pairwise(edges):
            number = int(bucket[start])
            if number not in self._models:
                self._models[number] = ResidualModel(CHANNELS[:SCALED])
            unusual[chosen[start:end]] = self._models[number].judge(points[start:end], learn[start:end])

    def coverage(self, t: float) -> U1:
        """Whom it judges, and why not the others."""
        if not (self._fleet.sends(Kind.GPS) or self._fleet.sends(Kind.IMU)):
            return np.full(self._fleet.high, NOT_APPLICABLE, np.uint8)
        codes = codes_of(self._fleet, self._table, self._doubts, self._judged_t, t)
        reopen(self._doubts, codes)
        return codes

    def explain(self, slot: int) -> str:
        """What was seen of one vehicle."""
        return words_of(self._fleet, self._doubts, slot)

    def quiet_until(self, t: float) -> float:
        """Without samples only coverage changes: when the last fix that was judged, or a stream, is no longer fresh."""
        n = self._fleet.high
        if not (self._fleet.sends(Kind.GPS) or self._fleet.sends(Kind.IMU)):
            return math.inf
        heard_t = (self._judged_t[:n], *self._fleet.last_t[[Kind.GPS, Kind.IMU], :n])
        return min(next_after(times + FRESH_S, t) for times in heard_t)

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots; the model keeps what it learned from them."""
        self._table[slots] = blank(Vehicle, 1)
        self._doubts[slots] = blank(Doubt, 1)
        self._sole.forget(slots)
        self._patterns[slots] = blank(Pattern, 1)
        self._slow[slots] = blank(Slow, 1)
        self._judged_t[slots] = -np.inf
        self._seen_t[slots] = -np.inf
        self._key[slots] = 0

    def accept(self, slot: int) -> bool:
        """Take a vehicle's displaced position as established; False when it is not displaced."""
        row = self._table[slot]
        if row["away_t"] == 0.0:
            return False
        forget_displacement(row)
        row["taken"] = 0
        return True

    def gauges(self) -> dict[str, float]:
        """Vehicles over the threshold, those displaced, fixes judged in the last step, epochs learned by the model."""
        return {
            "vehicles": float(self._anomalous),
            "displaced": float(self._displaced),
            "fixes": float(self._judged),
            "model_epochs": float(sum(model.learned for model in self._models.values())),
        }

    def snapshot(self) -> dict[str, Any]:
        """The records of the vehicles that send GPS or IMU, and the model."""
        n = self._fleet.high
        used = self._table[:n]
        heard = self._fleet.count[[Kind.GPS, Kind.IMU], :n].any(axis=0)
        rows = np.flatnonzero(heard | (used["imu_t"] != 0.0) | (used["fix_t"] != 0.0)).astype(np.int32)
        return {
            "rows": rows,
            "table": self._table[rows],
            "slow": self._slow[rows],
            "doubts": self._doubts[rows],
            "sole": self._sole.snapshot(rows),
            "patterns": self._patterns[rows],
            "judged_t": self._judged_t[rows],
            "seen_t": self._seen_t[rows],
            "key": self._key[rows],
            "models": [[number, model.snapshot()] for number, model in sorted(self._models.items())],
            "figures": [self._judged, self._anomalous, self._displaced],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError: of another version."""
        rows = state["rows"]
        for table, saved in ((self._table, state["table"]), (self._slow, state["slow"])):
            if saved.dtype != table.dtype:
                raise ValueError("records of another layout")
            table[rows] = saved
        self._doubts[rows] = state["doubts"]
        self._sole.restore(rows, state["sole"])
        self._patterns[rows] = state["patterns"]
        self._judged_t[rows] = state["judged_t"]
        self._seen_t[rows] = state["seen_t"]
        self._key[rows] = state["key"]
        for row in rows[self._key[rows] != 0].tolist():
            self._bucket[row] = bucket_of(self._fleet.ids[row])
        for number, saved in state["models"] if self._config.model != "off" else ():
            self._models[number] = ResidualModel(CHANNELS[:SCALED])
            self._models[number].restore(saved)
        self._judged, self._anomalous, self._displaced = state["figures"]


def name_key(name: str) -> int:
    """A positive number that depends on the name alone, to order vehicles whatever slots they have."""
    return 1 + int.from_bytes(blake2b(name.encode(), digest_size=7).digest())


def _rows(samples: Samples | None, kind: Kind) -> Rows:
    """Slots, times and values by [row, field], always of one memory layout: another would mean compiling again."""
    if samples is None:
        return Rows(np.empty(0, np.int32), np.empty(0), np.empty((0, len(FIELDS[kind]))))
    slot: I4 = np.require(samples.slot, requirements=("C", "W"))
    t: F8 = np.require(samples.t, requirements=("C", "W"))
    data: F8 = np.require(samples.data.T, requirements=("C", "W"))
    return Rows(slot, t, data)


def _first_of_each(order: I8, bucket: I4, most: int) -> I8:
    """Of rows that are in the order of their buckets the first so many of each bucket."""
    own = bucket[order]
    place = np.arange(len(order)) - np.searchsorted(own, own)
    return order[place < most]
