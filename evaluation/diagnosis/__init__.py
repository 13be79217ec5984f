"""`evaluate diagnosis`: fault type and location on simulated networks.

The public names of the environment, which needs the extra `gym`, are

    from watchkeeper.evaluation.diagnosis import MetricsCollectorWrapper, NetworkTroubleshootingEnv

and those for an environment of another are ForeignDiagnoser, Translation and View (adapter.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from watchkeeper.evaluation.diagnosis.adapter import ForeignDiagnoser, Translation, View
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics
from watchkeeper.evaluation.diagnosis.summary import CompetitionEvaluator

if TYPE_CHECKING:
    from watchkeeper.evaluation.diagnosis.collector import MetricsCollectorWrapper
    from watchkeeper.evaluation.diagnosis.env import NetworkTroubleshootingEnv

__all__ = [
    "CompetitionEvaluator", "EpisodeMetrics", "ForeignDiagnoser", "MetricsCollectorWrapper",
    "NetworkTroubleshootingEnv", "Translation", "View",
]  # fmt: skip

_HOME = {
    "MetricsCollectorWrapper": "watchkeeper.evaluation.diagnosis.collector",
    "NetworkTroubleshootingEnv": "watchkeeper.evaluation.diagnosis.env",
}


def __getattr__(name: str) -> Any:
    # `--help` and streamed episodes do without the extra
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
