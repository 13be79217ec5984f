"""Signals with a season: river's forecast finds what level and trend cannot, and a snapshot of it loses nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from watchkeeper.config.detectors.signal import Season
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.signal.seasons import _Season
from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.chunks import rechunk

from .test_signal import batches, config, run

pytest.importorskip("river")
PERIOD, STEPS, ONSET = 24, 480, 400
SEASONS = (Season(names=("pump.*",), period_s=float(PERIOD), steps=PERIOD),)


def raised(values: dict[str, F8], settings: Config) -> list[AlarmEvent]:
    return [event for event in run(values, settings) if event.state == "raised"]


def stroke(steps: int = STEPS, seed: int = 1) -> F8:
    """A pump that works a third of the time, with an error of its own."""
    phase = np.arange(steps) % PERIOD / PERIOD
    return (
        20.0
        + np.where(phase < 0.3, 10.0, 3.0 * np.sin(9.0 * phase))
        + np.random.default_rng(seed).normal(0, 0.3, steps)
    )


def out_of_step() -> F8:
    """From ONSET on half a stroke late: each value is one that the pump has had."""
    x = stroke()
    x[ONSET:] = stroke(STEPS + PERIOD)[ONSET + PERIOD // 2 : STEPS + PERIOD // 2]
    return x


def test_a_stroke_that_comes_at_the_wrong_time_is_found_with_its_season_only() -> None:
    values = {"pump.flow": out_of_step()}
    assert raised(values, config()) == []
    alarm = raised(values, config(seasons=SEASONS))[0]
    assert alarm.evidence["signal"] == "pump.flow:season"
    assert 0.0 <= alarm.t - (1000.0 + ONSET) <= 12.0
    assert alarm.say.startswith("quad-3: pump.flow does not follow its season (")


def test_a_stroke_as_ever_is_left_alone_and_other_signals_are_as_they_were() -> None:
    values = {"pump.flow": stroke(), "cabin.temp_c": np.random.default_rng(2).normal(20.0, 0.1, STEPS)}
    values["cabin.temp_c"][ONSET:] += 5.0
    (alarm,) = raised(values, config(seasons=SEASONS))
    assert alarm.evidence["signal"] == "cabin.temp_c"
    assert raised({"pump.flow": stroke()}, config(seasons=SEASONS)) == []


@pytest.mark.parametrize("at", [10, 60, ONSET + 2])
def test_a_snapshot_of_a_season_loses_nothing_and_pieces_do_not_matter(at: int) -> None:
    made = batches({"pump.flow": out_of_step()})
    whole, first, second = (Pipeline(config(seasons=SEASONS)) for _ in range(3))
    expected = [e for batch in rechunk(iter(made), 97) for e in whole.feed(batch)] + whole.finish()
    events = [e for batch in made[:at] for e in first.feed(batch)]
    second.restore(first.snapshot())
    events += [e for batch in made[at:] for e in second.feed(batch)] + second.finish()
    assert list(map(encode_event, events)) == list(map(encode_event, expected)) != []


def test_what_the_budget_leaves_out_is_counted() -> None:
    values = {f"pump.{k}": stroke(120, k) for k in range(3)}
    for budget, left_out in ((3, 0.0), (2, 120.0)):
        pipeline = Pipeline(config(seasons=SEASONS, season_budget=budget))
        for batch in batches(values):
            pipeline.feed(batch)
        pipeline.finish()
        detector = next(one for one in pipeline.detectors if one.declaration.name == "signal")
        assert detector.gauges()["seasons_left_out"] == left_out


def test_a_forecast_goes_on_over_a_gap_and_from_plain_numbers() -> None:
    x, season = stroke(), _Season(PERIOD)
    for value in x[:440]:
        season.learn(float(value))
    again = _Season.restored(season.snapshot())
    assert again.forecast() == season.forecast() == pytest.approx(x[440], abs=4.0)
    season.skip(6)
    again.skip(6)
    assert again.forecast() == season.forecast() == pytest.approx(x[446], abs=4.0)
    assert math.isnan(_Season(PERIOD).forecast())
