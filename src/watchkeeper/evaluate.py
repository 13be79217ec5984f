"""How good alarms, controllers, trajectories and detectors are: one function each, from frames or paths to a result.

Every result has `.to_dict()`, and nearly every one `.to_frame()`. The command `watchkeeper evaluate NAME` is the same
from a terminal.
"""

from watchkeeper.config.guests import discover
from watchkeeper.evaluation.alarms.api import alarms
from watchkeeper.evaluation.conflicts.api import conflicts
from watchkeeper.evaluation.diagnosis.api import diagnosis
from watchkeeper.evaluation.hours.api import hours
from watchkeeper.evaluation.lasting.api import lasting
from watchkeeper.evaluation.leakage.api import leakage
from watchkeeper.evaluation.names.api import names
from watchkeeper.evaluation.paired.api import paired
from watchkeeper.evaluation.protocol.api import protocol
from watchkeeper.evaluation.risk.api import risk
from watchkeeper.evaluation.shift_matrix.api import shift_matrix
from watchkeeper.evaluation.shifts.api import shifts
from watchkeeper.evaluation.signals.api import evaluate as signals
from watchkeeper.evaluation.tracks.api import tracks

# a configuration may have sections of components from other packages
discover()

# the commands' names; either may be used
controllers, gps_imu, models = conflicts, protocol, paired

__all__ = [
    "alarms", "conflicts", "controllers", "diagnosis", "gps_imu", "hours", "lasting", "leakage", "models",
    "names", "paired", "protocol", "risk", "shift_matrix", "shifts", "signals", "tracks",
]  # fmt: skip
