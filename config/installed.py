"""Components of other packages: what they offer in our groups of entry points.

`watchkeeper.detectors`, `watchkeeper.adapters` and `watchkeeper.sinks` are such groups. A package that is installed and
cannot be loaded is an error, never a warning: a watch that silently lacks a part is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@dataclass(frozen=True, slots=True)
class Component:
    """One entry point: its group and name, the package that brings it with its version, and the object it names."""

    group: str
    name: str
    package: str
    value: Any

    def __str__(self) -> str:
        return f"{self.group} entry point {self.name!r} of {self.package}"


class InstalledError(Exception):
    """A component that cannot be used; the message names its package and the reason."""

    def __init__(self, component: Component, reason: str) -> None:
        super().__init__(f"{component}: {reason}")
        self.component = component
        self.reason = reason


@cache
def installed(group: str) -> tuple[Component, ...]:
    """The components of a group in the order of their names. Raises InstalledError."""
    found: dict[str, Component] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        component = _load(point)
        if (other := found.setdefault(point.name, component)) is not component:
            raise InstalledError(component, f"{other.package} has one of the same name")
    return tuple(found.values())


def _load(point: EntryPoint) -> Component:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
    try:
        value = point.load()
    # whatever the code of somebody else runs into
    except Exception as error:
        reason = f"cannot be loaded: {type(error).__name__}: {error}"
        raise InstalledError(Component(point.group, point.name, package, None), reason) from error
    return Component(point.group, point.name, package, value)
