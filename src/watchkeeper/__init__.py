"""Watchkeeper: real-time conflict and sensor-anomaly alarms.

From a frame of telemetry to a frame of alarms:

    import pandas as pd
    import watchkeeper as wk

    alarms = wk.watch(pd.read_csv("flights.csv"))
    alarms.to_frame()

`watch` runs the alarms over a frame, a log or a simulation and `scores` gives the figures behind them; `config` makes
a configuration; `open_log` and `simulate` are input; `evaluate` says how good alarms are. `Pipeline`, `AlarmEvent`,
`Detector` and `register` are the parts that these are made of. docs/python.md tells more.

Names are loaded when they are first used: importing the package is quick. The folders next to this file are links to
the project's root folders.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchkeeper import evaluate
    from watchkeeper._alarms import Alarms
    from watchkeeper._api import scores, watch
    from watchkeeper.config.call import config
    from watchkeeper.detectors.alarms.events import AlarmEvent
    from watchkeeper.detectors.base import Detector, register
    from watchkeeper.detectors.engine.pipeline import Pipeline
    from watchkeeper.streams.logs.source import open_log
    from watchkeeper.streams.simulate import simulate

    __version__: str

__all__ = [
    "AlarmEvent",
    "Alarms",
    "Detector",
    "Pipeline",
    "__version__",
    "config",
    "evaluate",
    "open_log",
    "register",
    "scores",
    "simulate",
    "watch",
]

_HOMES = {
    "AlarmEvent": "watchkeeper.detectors.alarms.events",
    "Alarms": "watchkeeper._alarms",
    "Detector": "watchkeeper.detectors.base",
    "Pipeline": "watchkeeper.detectors.engine.pipeline",
    "open_log": "watchkeeper.streams.logs.source",
    "register": "watchkeeper.detectors.base",
    "scores": "watchkeeper._api",
    "simulate": "watchkeeper.streams.simulate",
    "watch": "watchkeeper._api",
}


def __getattr__(name: str) -> Any:
    if name in ("config", "evaluate"):
        # modules; that of `config` can be called
        return import_module(f"watchkeeper.{name}")
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("watchkeeper")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'watchkeeper' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
