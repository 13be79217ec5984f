"""Every setting there is, those of components from other packages included.

The schema knows the project's own sections. A detector or a sink from outside brings a section of its own, which
`add_section` puts below `[detectors]` or `[sinks]`: from then on it is checked, documented and listed like any other.
Catalogues call this when they find a component; nobody else needs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any, Literal

import msgspec

from watchkeeper.config.installed import GuestError, installed
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Extensible, Section, Setting, settings

__all__ = [
    "SECTIONS",
    "SETTINGS",
    "GuestError",
    "add_section",
    "build",
    "default",
    "load_guests",
    "remove_section",
    "section_of",
    "values_of",
]

Place = Literal["detectors", "sinks"]

SETTINGS: dict[str, Setting] = {setting.key: setting for setting in settings(Config)}
SECTIONS: dict[str, None] = {}
_guests: dict[Place, dict[str, type[Section]]] = {"detectors": {}, "sinks": {}}


def _note_sections() -> None:
    for setting in SETTINGS.values():
        SECTIONS.update(dict.fromkeys(".".join(setting.path[:depth]) for depth in range(1, len(setting.path))))


_note_sections()


def add_section(place: Place, name: str, section: type[Section]) -> None:
    """Let `[<place>.<name>]` be a section of the configuration. ValueError: the name is taken or is no bare key."""
    if _guests[place].get(name) is section:
        return
    if not name.isidentifier() or name.lower() != name:
        raise ValueError(f"{name!r} is no name for a section: small letters, digits and _, beginning with a letter")
    if name in Extensible.__struct_fields__ or f"{place}.{name}" in SECTIONS or f"{place}.{name}" in SETTINGS:
        raise ValueError(f"[{place}.{name}] exists already")
    found = {setting.key: setting for setting in settings(section, (place, name))}
    _guests[place][name] = section
    SETTINGS.update(found)
    _note_sections()


def remove_section(place: Place, name: str) -> None:
    """Take a section back, for components that come and go within one process (tests, notebooks)."""
    if _guests[place].pop(name, None) is None:
        return
    prefix = f"{place}.{name}"
    for table in (SETTINGS, SECTIONS):
        for key in [key for key in table if key == prefix or key.startswith(f"{prefix}.")]:
            del table[key]


def section_of(config: Config, place: Place, name: str) -> Any:
    """The section of a component; its defaults if the configuration was made before the component was known."""
    extensible: Extensible = getattr(config, place)
    found = getattr(extensible, name, None)
    return found if found is not None else _guests[place][name]()


# Where components of other packages are registered, by the group of their entry points. Loaded by name: they are above.
CATALOGUES: dict[str, str] = {
    "watchkeeper.detectors": "watchkeeper.detectors.catalog",
    "watchkeeper.adapters": "watchkeeper.streams.adapters.catalog",
    "watchkeeper.sinks": "watchkeeper.daemon.outputs.catalog",
}


def discover() -> None:
    """Register what other packages bring, before a configuration is read. Raises GuestError."""
    for group, catalogue in CATALOGUES.items():
        # without guests nothing is imported: `--help` answers at once
        if entry_points(group=group):
            import_module(catalogue).discover()


_loaded: set[tuple[str, str, str]] = set()


def load_guests(group: str, take: Callable[[Any], object]) -> None:
    """Hand each entry point of a group to `take`, once per process. GuestError: one cannot be loaded or taken."""
    for component in installed(group):
        mark = (group, component.name, component.package)
        if mark in _loaded:
            continue
        try:
            take(component.value)
        except Exception as error:  # whatever a stranger's object makes us raise: half a component is none
            raise component.refused(f"{type(error).__name__}: {error}") from error
        _loaded.add(mark)


def default() -> Config:
    """The configuration that an empty file gives, before any profile."""
    return build({key: setting.default for key, setting in SETTINGS.items()})


def build(values: dict[str, Any]) -> Config:
    """A configuration from a value for each dotted key."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *path, name = SETTINGS[key].path
        table = tree
        for level in path:
            table = table.setdefault(level, {})
        table[name] = value
    items = {key: _items(SETTINGS[key], tree.pop(key, ())) for key in SETTINGS if SETTINGS[key].variants is not None}
    made = {
        place: tuple((name, msgspec.convert(tree[place].pop(name, {}), section)) for name, section in sections.items())
        for place, sections in _guests.items()
    }
    return _with_guests(msgspec.structs.replace(msgspec.convert(tree, Config), **items), made)


def _items(setting: Setting, items: Sequence[dict[str, Any]]) -> tuple[Section, ...]:
    """The tables of an array at the top of the file, each as the section of its type."""
    assert setting.variants is not None
    tag, sections = setting.tag.key, setting.variants()
    return tuple(msgspec.convert(item, sections[item[tag]]) for item in items)


def values_of(config: Config) -> dict[str, Any]:
    """The reverse of `build`: each dotted key's value, arrays of tables as plain tables."""
    config = _complete(config)
    found: dict[str, Any] = {}
    for key, setting in SETTINGS.items():
        value = attrgetter(key)(config)
        found[key] = msgspec.to_builtins(value) if setting.table is not None else value
    return found


def _complete(config: Config) -> Config:
    """The configuration with a section for each guest, those at their defaults that it does not have."""
    return _with_guests(
        config,
        {place: tuple((name, section_of(config, place, name)) for name in names) for place, names in _guests.items()},
    )


def _with_guests(config: Config, found: dict[Place, tuple[tuple[str, Section], ...]]) -> Config:
    replace = msgspec.structs.replace
    return replace(config, **{place: replace(getattr(config, place), guests=guests) for place, guests in found.items()})
