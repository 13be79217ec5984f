"""Everything that was worked out about one episode; `details` is the part of it that `--detail` adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from watchkeeper.detectors.kernels.windows import Matching, overlap
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.reward import recomputable, reward_parts
from watchkeeper.evaluation.conflicts.series import Series
from watchkeeper.streams.batch import F8


@dataclass(frozen=True, slots=True)
class Findings:
    """Metrics by name, the settings they were worked out with, and what they come from."""

    metrics: dict[str, float]
    settings: dict[str, Any]
    episode: Episode
    series: Series
    matching: Matching


def details(found: Findings) -> dict[str, Any]:
    """Per step and per window, ready for JSON; windows in steps, half-open."""
    e, s, m = found.episode, found.series, found.matching
    partner = {a: g for g, a in m.pairs}
    alert_of = dict(m.pairs)
    return {
        "steps": {
            "t": e.t.tolist(),
            "agents": [int(n) for n in e.present.sum(axis=1)],
            "conflict": s.conflict.tolist(),
            "alert": m.alert.tolist(),
            "intervention": s.intervening.tolist(),
            "deliberate": [[e.ids[a] for a in np.flatnonzero(row).tolist()] for row in s.acting_agent],
            "separation_nm": _finite(s.separation_nm),
            "dcpa_nm": _finite(s.dcpa_nm),
            "los": s.lost.tolist(),
            "reward": _reward(found),
        },
        "windows": {
            "truth": [
                {
                    "start": w[0], "end": w[1], "alert": alert_of.get(g),
                    "iou": overlap(w, m.alerts[alert_of[g]]) if g in alert_of else None,
                }
                for g, w in enumerate(m.truth)
            ],
            "alerts": [{"start": w[0], "end": w[1], "truth": partner.get(a)} for a, w in enumerate(m.alerts)],
        },
    }  # fmt: skip


def _reward(found: Findings) -> dict[str, list[float]]:
    """Each part per step, summed over the agents."""
    if not recomputable(found.episode):
        return {}
    separation_nm, potential = found.settings["los_threshold_nm"], found.settings["team_potential"]
    parts = reward_parts(found.episode, found.series, separation_nm, potential)
    return {name: part.sum(axis=1).tolist() for name, part in parts.items()}


def _finite(values: F8) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
