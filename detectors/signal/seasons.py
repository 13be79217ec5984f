"""Signals with a season, by river: what a forecast of the season leaves of them is another signal of the same vehicle.

Level and trend cannot follow a number that goes up and down by itself, a cabin with its day or a pump with its stroke.
For signals that `[[detectors.signal.seasons]]` names, river's SNARIMAX (the last values, and those of one and two
periods ago, in a linear model that learns online) forecasts one value a step, `period_s / steps`. What it misses is
given to the kernel as the signal `NAME:season`, and judged as all others are. The signal itself stays as it is.

Score first, learn after: while the kernel does not believe `NAME:season`, the model learns its own forecast, not the
value. The models of a vehicle may take `season_budget` steps a tick; further ones are left out and counted. Snapshots
are plain numbers. Needs the extra `river`, imported only when a season is set.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.detectors.signal import Season, Signal
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.detectors.signal.declaration import SUFFIX
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import SIGNAL
from watchkeeper.streams.signals import LABEL_MIN, SIGNAL_NAME_MAX, matcher, name_numbers, names_in

# Values before this one in the model, and how many periods back; fewer of either find less on simulated seasons.
LAGS, PERIODS = 4, 2
# Of the linear model. Larger steps make it follow a fault within a few values.
LEARNING_RATE = 0.01
# A value or forecast counts for at most so many deviations: a wild one must not throw the model out.
CLIP = 20.0
Key = tuple[int, tuple[float, ...]]


def _model(steps: int) -> Any:
    from river import linear_model, optim, preprocessing, time_series  # noqa: PLC0415  extra `river`, a second

    regression = linear_model.LinearRegression(optimizer=optim.SGD(LEARNING_RATE), intercept_lr=LEARNING_RATE)
    return time_series.SNARIMAX(
        p=LAGS, d=0, q=0, m=steps, sp=PERIODS, regressor=preprocessing.StandardScaler() | regression
    )


class _Season:
    """One signal's season. Its first period says where it is and how far it goes; then the model begins."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.cell = -1
        self.row = -1
        self.first: list[float] = []
        self.mean = self.spread = 0.0
        self.seen = 0
        self.model = _model(steps)

    def forecast(self) -> float:
        """The next value; NaN while two periods have not been seen."""
        if self.seen < PERIODS * self.steps:
            return math.nan
        return self.mean + self.spread * min(max(float(self.model.forecast(1)[0]), -CLIP), CLIP)

    def learn(self, x: float) -> None:
        """The value of this step."""
        if len(self.first) < self.steps:
            self.first.append(x)
            if len(self.first) == self.steps:
                self.mean, self.spread = float(np.mean(self.first)), float(np.std(self.first)) or 1.0
            return
        self.model.learn_one(min(max((x - self.mean) / self.spread, -CLIP), CLIP))
        self.seen += 1

    def skip(self, cells: int) -> None:
        """Steps in which nothing came: as if they had been as forecast."""
        for _ in range(cells if self.seen else 0):
            self.model.y_diff.appendleft(float(self.model.forecast(1)[0]))

    def snapshot(self) -> dict[str, Any]:
        scaler, regression = self.model.regressor.steps.values()
        return {
            "steps": self.steps, "cell": self.cell, "row": self.row, "first": list(self.first), "mean": self.mean,
            "spread": self.spread, "seen": self.seen, "lags": list(map(float, self.model.y_diff)),
            "errors": list(map(float, self.model.errors)),
            "counts": {k: int(v) for k, v in scaler.counts.items()},
            "means": {k: float(v) for k, v in scaler.means.items()},
            "vars": {k: float(v) for k, v in scaler.vars.items()},
            "weights": {k: float(v) for k, v in regression.weights.items()},
            "intercept": float(regression.intercept), "learned": int(regression.optimizer.n_iterations),
        }  # fmt: skip

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> _Season:
        one = cls(int(saved["steps"]))
        one.cell, one.row, one.seen = saved["cell"], saved["row"], saved["seen"]
        one.first, one.mean, one.spread = list(saved["first"]), saved["mean"], saved["spread"]
        one.model.y_diff.extend(saved["lags"])
        one.model.errors.extend(saved["errors"])
        scaler, regression = one.model.regressor.steps.values()
        scaler.counts.update(saved["counts"])
        scaler.means.update(saved["means"])
        scaler.vars.update(saved["vars"])
        for name, weight in saved["weights"].items():
            regression._weights[name] = weight
        regression.intercept, regression.optimizer.n_iterations = saved["intercept"], saved["learned"]
        return one


class Seasons:
    """The seasons of all signals that have one."""

    def __init__(self, cfg: Signal) -> None:
        self._known: dict[Key, _Season] = {}
        self._settings: dict[tuple[float, ...], Season | None] = {}
        self.left_out = 0
        self.retune(cfg)

    def retune(self, cfg: Signal) -> None:
        """Take new settings, for signals that are new."""
        self._seasons = [(matcher(season.names), season) for season in cfg.seasons]
        self._budget = cfg.season_budget
        self._settings.clear()
        if self._seasons:
            try:
                _model(2)
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError('a season needs river: pip install "watchkeeper[river]"') from error

    def __bool__(self) -> bool:
        return bool(self._seasons)

    def due(self, s: Samples) -> list[tuple[int, _Season, float]]:
        """The values that end a step, with their seasons and what was forecast for them."""
        found: list[tuple[int, _Season, float]] = []
        taken: Counter[int] = Counter()
        names = s.data[SIGNAL.name_0 :].T
        for i, (slot, t, key) in enumerate(zip(s.slot.tolist(), s.t.tolist(), map(tuple, names.tolist()), strict=True)):
            settings = self._settings_of(key)
            if settings is None or abs(s.data[SIGNAL.value, i]) >= LABEL_MIN:
                continue
            cell = math.floor(t / settings.period_s * settings.steps)
            season = self._known.get((slot, key))
            if season is None or cell > season.cell + settings.steps:  # a whole period without a value: it begins again
                season = self._known[slot, key] = _Season(settings.steps)
            if cell <= season.cell:
                continue
            if taken[slot] >= self._budget:
                self.left_out += 1
                continue
            taken[slot] += 1
            if season.cell >= 0 and cell > season.cell + 1:
                season.skip(cell - season.cell - 1)
            season.cell = cell
            found.append((i, season, season.forecast()))
        return found

    def learn(self, s: Samples, due: list[tuple[int, _Season, float]], signals: NDArray[Any]) -> None:
        """After the kernel has judged: values that it believes are learned, of others the forecast is."""
        for i, season, forecast in due:
            doubted = season.row >= 0 and not math.isnan(signals[season.row]["odd_t"])
            season.learn(forecast if doubted and not math.isnan(forecast) else float(s.data[SIGNAL.value, i]))

    def forget(self, slots: I4) -> None:
        """Those of vehicles that have gone."""
        gone = set(slots.tolist())
        self._known = {key: season for key, season in self._known.items() if key[0] not in gone}

    def snapshot(self) -> list[dict[str, Any]]:
        """All of them as plain numbers."""
        return [{"slot": slot, "name": list(key), **season.snapshot()} for (slot, key), season in self._known.items()]

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Take over a snapshot."""
        self._known = {(one["slot"], tuple(one["name"])): _Season.restored(one) for one in saved}

    def _settings_of(self, key: tuple[float, ...]) -> Season | None:
        if key not in self._settings:
            if len(self._settings) >= 1 << 16:
                self._settings.clear()
            (name,) = names_in(np.array(key).reshape(-1, 1))
            fits = (season for pattern, season in self._seasons if pattern.fullmatch(name))
            self._settings[key] = next(fits, None) if len(name) + len(SUFFIX) <= SIGNAL_NAME_MAX else None
        return self._settings[key]


def with_residuals(s: Samples, due: list[tuple[int, _Season, float]]) -> tuple[Samples, I4]:
    """The samples and, behind each value that was forecast, what the forecast missed; the rows where those are."""
    missed = [(i, x) for i, _, x in due if not math.isnan(x)]
    if not missed:
        return s, np.empty(0, np.int32)
    at = np.array([i for i, _ in missed])
    order = np.insert(np.arange(len(s)), at + 1, at)
    rows = (at + 1 + np.arange(len(at))).astype(np.int32)
    data: F8 = np.ascontiguousarray(s.data[:, order])
    for row, (i, forecast) in zip(rows.tolist(), missed, strict=True):
        (name,) = names_in(s.data[SIGNAL.name_0 :, i : i + 1])
        data[SIGNAL.value, row] = s.data[SIGNAL.value, i] - forecast
        data[SIGNAL.name_0 :, row] = name_numbers(name + SUFFIX)
    return Samples(s.kind, s.slot[order], s.t[order], data, s.via[order]), rows
