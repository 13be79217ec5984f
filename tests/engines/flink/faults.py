"""An operator of vehicles with a fault, for tests on a cluster: workers import it from the checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.engines.flink.messages import Plan
from watchkeeper.engines.flink.operators import VehiclesFunction

LEAK_BYTES = 100 << 20
BEFORE = 20


class LeakyVehicles(VehiclesFunction):
    """Takes 100 MB more with every turn from the 20th on, until it fails; once only, as a file tells."""

    def __init__(self, plan: Plan, mark: str) -> None:
        super().__init__(plan)
        self._mark = mark

    @classmethod
    def marking(cls, mark: Path) -> Callable[[Plan], VehiclesFunction]:
        """Writes the file when the leak begins."""
        return lambda plan: cls(plan, str(mark))

    def ask(self, turn: int, payload: bytes) -> Iterator[Any]:
        """See OperatorFunction."""
        if turn == BEFORE and not Path(self._mark).exists():
            self._leak: list[Any] = []
            Path(self._mark).touch()
        if hasattr(self, "_leak"):
            self._leak.append(np.ones(LEAK_BYTES // 8))
        yield from super().ask(turn, payload)
