"""What is mutated, and the tests that should notice: those of the module's own room, and fast ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """Modules below the root of the project, and tests below `tests/`."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "debounce": Room(("detectors/alarms/debounce.py",), ("detectors/alarms",)),
    "cpa": Room(
        ("detectors/kernels/approach.py",),
        ("detectors/kernels/test_approach.py",),
    ),
    "residual": Room(("detectors/gps_imu/fix.py",), ("detectors/gps_imu/test_fix.py",)),
    "metrics": Room(
        (
            "evaluation/conflicts/metrics.py",
            "evaluation/conflicts/series.py",
            "evaluation/conflicts/episode.py",
            "evaluation/conflicts/steering.py",
            "evaluation/conflicts/distances.py",
            "evaluation/conflicts/reward.py",
            "evaluation/conflicts/team.py",
        ),
        (
            "evaluation/conflicts/test_parts.py",
            "evaluation/conflicts/test_metrics.py",
            "evaluation/conflicts/test_edges.py",
            "evaluation/conflicts/test_episode.py",
            "evaluation/conflicts/test_further.py",
            "evaluation/conflicts/test_reward.py",
            "evaluation/conflicts/test_second.py",
        ),
    ),
    "codec": Room(("streams/codec/decode.py", "streams/codec/encode.py"), ("streams/codec",)),
    "eventtime": Room(
        (
            "detectors/engine/eventtime.py",
            "detectors/engine/senders/line.py",
            "detectors/engine/senders/majority.py",
            "detectors/engine/senders/strays.py",
            "detectors/engine/senders/table.py",
        ),
        (
            "detectors/engine/test_senders_admit.py",
            "detectors/engine/test_senders_strays.py",
            "detectors/engine/test_senders_line.py",
            "detectors/engine/test_senders_table.py",
            "detectors/engine/test_eventtime_resume.py",
            "detectors/engine/test_eventtime_alone.py",
            "detectors/engine/test_eventtime_held.py",
            "detectors/engine/test_eventtime.py",
        ),
    ),
    "journal": Room(
        ("daemon/outputs/journal.py", "daemon/outputs/journal_file.py", "daemon/outputs/journal_past.py"),
        (
            "daemon/outputs/test_journal_past.py",
            "daemon/outputs/test_journal_log.py",
            "daemon/outputs/test_journal_limits.py",
            "daemon/outputs/test_journal.py",
            "daemon/outputs/test_journal_disk.py",
        ),
    ),
}
