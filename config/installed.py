"""Components of other packages: what they offer in our groups of entry points.

`watchkeeper.detectors`, `watchkeeper.adapters` and `watchkeeper.sinks` are such groups. A package that is installed and
cannot be loaded is an error, never a warning: a watch that silently lacks a part is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


class GuestError(Exception):
    """A component of another package cannot be used; the message names the package and what is wrong."""

    def __init__(self, group: str, name: str, package: str, problem: str) -> None:
        super().__init__(f"{package}: its entry point {name!r} of the group {group} cannot be used: {problem}")
        self.group, self.name, self.package, self.problem = group, name, package, problem


@dataclass(frozen=True, slots=True)
class Component:
    """One entry point: its group and name, the package that brings it with its version, and the object it names."""

    group: str
    name: str
    package: str
    value: Any

    def refused(self, problem: str) -> GuestError:
        """The error that says why it cannot be used."""
        return GuestError(self.group, self.name, self.package, problem)


@cache
def installed(group: str) -> tuple[Component, ...]:
    """The components of a group in the order of their names. Raises GuestError."""
    found: dict[str, Component] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        component = _load(point)
        if (other := found.setdefault(point.name, component)) is not component:
            raise component.refused(f"{other.package} has one of the same name")
    return tuple(found.values())


def _load(point: EntryPoint) -> Component:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
    try:
        value = point.load()
    # whatever the code of somebody else runs into
    except Exception as error:
        raise GuestError(point.group, point.name, package, f"{type(error).__name__}: {error}") from error
    return Component(point.group, point.name, package, value)
