"""A detector that a notebook registers is asked by `watch`, and its section is a part of `wk.config`."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

import watchkeeper as wk
from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Flag, Section, about
from watchkeeper.detectors.base import Evidence, Window, unregister
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, fact, simulated
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import I4
from watchkeeper.streams.messages import COLUMN, Kind

TABLE = {
    "t": range(10), "id": ["a"] * 10, "lat": [50.0] * 10, "lon": [8.0 + i / 500 for i in range(10)],
    "alt_ft": [45_000.0] * 10,
}  # fmt: skip


class HighSettings(Section, frozen=True):
    """Above a level."""

    enabled: Flag = True
    level_ft: Annotated[float, about("ft", "aircraft above this are high", ge=0, le=100_000)] = 40_000.0
    debounce: Debounce = Debounce(n=2, m=2)


class HighFacts(Facts, frozen=True, kw_only=True):
    """Where it is."""

    alt_ft: Annotated[float | None, fact("ft", "its altitude")] = None


class High:
    """Aircraft above a level."""

    declaration: ClassVar[Declaration] = Declaration(
        name="high",
        help="aircraft above a level",
        settings=HighSettings,
        subjects="vehicle",
        kinds=(
            AlarmKind(
                name="high", help="an aircraft is high", facts=HighFacts, needs=((Kind.ADSB,),),
                say=lambda subjects, facts: f"{subjects[0]} is at {facts.alt_ft:,.0f} ft.",
            ),
        ),
        gauges=(),
        scenario=simulated("head-on", 60),
    )  # fmt: skip

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self.retune(config)

    def step(self, window: Window) -> list[Evidence]:
        samples = window.samples.get(Kind.ADSB)
        if samples is None:
            return []
        alt = samples.data[COLUMN[Kind.ADSB]["alt_ft"]]
        n = len(alt)
        row: dict[str, Any] = {"t": samples.t, "epoch": samples.t, "severity": np.zeros(n, np.uint8)}
        return [
            Evidence(
                "high", samples.slot, score=alt / self._level_ft, threshold=np.ones(n), numbers={"alt_ft": alt}, **row
            )
        ]

    def retune(self, config: Config) -> None:
        self._level_ft: float = section_of(config, "detectors", "high").level_ft

    def forget(self, slots: I4) -> None:
        """Nothing is kept."""

    def gauges(self) -> dict[str, float]:
        return {}

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing is kept."""


@pytest.fixture
def registered() -> Iterator[None]:
    wk.register(High)
    yield
    unregister("high")


@pytest.mark.usefixtures("registered")
def test_a_detector_of_a_notebook_raises_alarms_by_its_own_settings() -> None:
    alarms = wk.watch(TABLE)
    assert [(alarm.kind, alarm.subjects) for alarm in alarms] == [("high", ("a",))]
    [sentence] = alarms.to_frame("polars")["say"].to_list()
    assert sentence.startswith("a is at 45,000 ft since ")
    assert not len(wk.watch(TABLE, config=wk.config(detectors__high__level_ft=50_000.0)))
    drones = wk.watch(wk.simulate("drones", seconds=5, vehicles=1))
    assert drones.not_judged["high"] == "no adsb"


def test_without_it_there_is_no_such_alarm() -> None:
    assert not len(wk.watch(TABLE))
