"""Parts of a snapshot that stand for themselves: a detector, the watch over an alarm kind, the incidents.

Used by the pipeline's state and by the fences. Each part carries the version of its layout. A part that cannot be used,
because another version of its code wrote it or because it is damaged, is refused for itself alone and with words.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

import numpy as np

log = logging.getLogger(__name__)


class Part(Protocol):
    """What has a state of its own."""

    def snapshot(self) -> dict[str, Any]:
        """State as nested dicts of arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        ...


def saved(part: Part, version: int = 1) -> dict[str, Any]:
    """A part as it goes into the snapshot."""
    return {"version": version, "state": part.snapshot()}


def refusal(part: Part, state: Any, version: int = 1) -> str:
    """Restore a new part; why that cannot be, or nothing. One that refuses may have taken over half of it."""
    try:
        if state["version"] != version:
            return f"its saved state is of version {state['version']}, this program reads {version}"
        if state["state"] is None:
            return "its state could not be saved"
        _check_form(state["state"], part.snapshot(), "state")
        part.restore(state["state"])
    except Exception as error:
        log.debug("state refused", exc_info=True)
        return f"its saved state is damaged ({type(error).__name__}: {error})"[:300]
    return ""


def _check_form(state: Any, fresh: Any, where: str) -> None:
    """ValueError where a state is not of the form that a new part's has: other types, other arrays.

    What a new part does not show, such as the entries of a table that is empty at first, is left to its `restore`.
    """
    if fresh is None or (state is None and isinstance(fresh, dict)):
        return
    if isinstance(fresh, np.ndarray):
        if not isinstance(state, np.ndarray) or (state.dtype, state.ndim) != (fresh.dtype, fresh.ndim):
            raise ValueError(f"{where} is no array of {fresh.ndim} dimensions and type {fresh.dtype}")
    elif isinstance(fresh, int | float):
        if not isinstance(state, int | float):
            raise ValueError(f"{where} is no number")
    elif not isinstance(state, list | tuple if isinstance(fresh, list | tuple) else type(fresh)):
        raise ValueError(f"{where} is no {type(fresh).__name__}")
    if isinstance(fresh, dict):
        for key in fresh.keys() & state.keys():
            _check_form(state[key], fresh[key], f"{where}.{key}")
    elif isinstance(fresh, list | tuple):
        for i, (old, new) in enumerate(zip(state, fresh, strict=False)):
            _check_form(old, new, f"{where}[{i}]")
