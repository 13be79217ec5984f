"""Why a vehicle is not judged by a detector: one code each, with its name (in alarms, metrics, messages) and its words.

Columns of codes are small integers; names are what is published and saved, so that the order here may change.
"""

from __future__ import annotations

from enum import IntEnum, auto

from watchkeeper.streams.messages import Kind


class Code(IntEnum):
    """WATCHED, or why not. The codes from NO_STREAM on are one per kind of stream: `no_stream(kind)`."""

    WATCHED = 0
    NOT_APPLICABLE = auto()
    WAITING = auto()
    SILENT = auto()
    UNALIGNED = auto()
    UNCONFIRMED = auto()
    LIMITS_ONLY = auto()
    ALIGNING = auto()
    LEARNING = auto()
    NEVER_ALIGNS = auto()
    NO_FIX = auto()
    UNITS_FORCE = auto()
    UNITS_RATE = auto()
    WRONG_FRAME = auto()
    TOO_SHORT = auto()
    REFUSED = auto()
    CLOCK_OFF = auto()
    FAILED = auto()
    NO_STREAM = auto()


# Codes of vehicles that are judged, but not in every way; and of all that are judged.
PARTLY = (Code.UNALIGNED, Code.UNCONFIRMED)
JUDGED = (Code.WATCHED, *PARTLY)

# Codes that say that what was judged before means nothing.
VOID = (
    Code.NEVER_ALIGNS, Code.UNITS_FORCE, Code.UNITS_RATE, Code.WRONG_FRAME, Code.REFUSED, Code.CLOCK_OFF, Code.FAILED,
)  # fmt: skip
# Codes of a vehicle that would have been judged if there had been more of it.
NOT_YET = (Code.WAITING, Code.SILENT, Code.ALIGNING, Code.LEARNING)

# The words follow "not watched by <detector>: ".
WORDS: tuple[tuple[str, str], ...] = (
    ("watched", "watched"),
    ("not_applicable", "it sends nothing that this detector judges"),
    ("waiting", "too few samples so far"),
    ("silent", "a stream that this detector needs has stopped"),
    ("unaligned", "its attitude is not known before it moves: jumps are seen, slow drifts are not"),
    ("unconfirmed", "it is judged, but whether its axes are as configured is not known until it turns"),
    ("limits_only", "only its known limits are judged: what is usual for it has not been learned yet"),
    ("aligning", "its attitude is being found"),
    ("learning", "what is usual for it is being learned"),
    ("never_aligns", "GPS and IMU do not fit together: its attitude cannot be found"),
    ("no_fix", "its GPS has no fix"),
    ("units_force", "its accelerations cannot be in m/s2"),
    ("units_rate", "its angular rates cannot be in rad/s"),
    ("wrong_frame", "its axes are not those of the configured frame"),
    ("too_short", "the recording ended before it could be judged"),
    ("refused", "most of its input is refused"),
    ("clock_off", "its clock is off"),
    ("failed", "the detector failed"),
    *((f"no_{kind.word}", f"it sends no {kind.word.upper()}") for kind in Kind),
)  # fmt: skip
NAMES: tuple[str, ...] = tuple(name for name, _ in WORDS)
CODE_OF: dict[str, int] = {name: code for code, name in enumerate(NAMES)}


def no_stream(kind: Kind) -> int:
    """The code for a stream that never came.

    >>> NAMES[no_stream(Kind.IMU)]
    'no_imu'
    """
    return Code.NO_STREAM + kind


def words(code: int) -> str:
    """Why not, for a person.

    >>> words(Code.ALIGNING)
    'its attitude is being found'
    """
    return WORDS[code][1]
