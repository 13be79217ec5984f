"""Sinks of other packages: each is found by its entry point and given a section of the configuration.

    [project.entry-points."watchkeeper.sinks"]
    siren = "watchkeeper_siren:SIREN"            # a Declaration, see base.py

Its settings are `[sinks.siren]`. The catalogue's `discover` loads them before a configuration is read, so that the
section is known by then.
"""

from __future__ import annotations

from watchkeeper.config.guests import add_section
from watchkeeper.config.section import Section
from watchkeeper.daemon.outputs.base import AnyDeclaration, Declaration

GROUP = "watchkeeper.sinks"
# The declarations of other packages, by name.
GUESTS: dict[str, AnyDeclaration] = {}


def take(declaration: object) -> None:
    """Let this sink be one of ours. TypeError or ValueError: it cannot be."""
    if not isinstance(declaration, Declaration):
        raise TypeError(f"it names {declaration!r:.80}, not a Declaration of watchkeeper.daemon.outputs.base")
    settings = declaration.settings
    if not (isinstance(settings, type) and issubclass(settings, Section)):
        raise TypeError(f"its settings are {settings!r:.80}, not a Section of watchkeeper.config.section")
    if declaration.asked is None and "enabled" not in settings.__struct_fields__:
        raise TypeError("its settings have no key 'enabled'")
    add_section("sinks", declaration.name, settings)
    GUESTS[declaration.name] = declaration
