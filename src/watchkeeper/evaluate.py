"""How good alarms, controllers, trajectories and detectors are: one function each, from frames or paths to a result.

Every result has `.to_frame()` and `.to_dict()`. The command `watchkeeper evaluate NAME` is the same from a terminal.
"""

from watchkeeper.config.guests import discover
from watchkeeper.evaluation.alarms.api import alarms
from watchkeeper.evaluation.conflicts.api import conflicts
from watchkeeper.evaluation.diagnosis.api import diagnosis
from watchkeeper.evaluation.lasting.api import lasting
from watchkeeper.evaluation.leakage.api import leakage
from watchkeeper.evaluation.paired.api import paired
from watchkeeper.evaluation.protocol.api import protocol
from watchkeeper.evaluation.shift_matrix.api import shift_matrix
from watchkeeper.evaluation.shifts.api import shifts
from watchkeeper.evaluation.tracks.api import tracks

# a configuration may have sections of components from other packages
discover()

# the commands' names; either may be used
controllers, gps_imu, models = conflicts, protocol, paired

__all__ = [
    "alarms", "conflicts", "controllers", "diagnosis", "gps_imu", "lasting", "leakage", "models",
    "paired", "protocol", "shift_matrix", "shifts", "tracks",
]  # fmt: skip
