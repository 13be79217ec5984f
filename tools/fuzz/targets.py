"""Every target by name, in the order in which they are run."""

from __future__ import annotations

from tools.fuzz import configs, payloads, readers, state, wire
from tools.fuzz.run import Target

EVERY: dict[str, Target] = {
    **readers.TARGETS,
    **state.TARGETS,
    **configs.TARGETS,
    **wire.TARGETS,
    **payloads.TARGETS,
}
