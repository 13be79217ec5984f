"""A plan as the text of a configuration file: each key with its reason, range and unit as a comment above it.

All of that is read from the declarations of the settings (config/), so the file says what the loader does. A key at its
default is written as a comment, so that a later version may choose a better one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from msgspec import NODEFAULT

from watchkeeper.config.adapters import source_types
from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.detectors.volumes import VOLUMES
from watchkeeper.config.guests import SECTIONS, SETTINGS, default
from watchkeeper.config.json_schema import FILE_NAME
from watchkeeper.config.reference import about, about_section, toml_value
from watchkeeper.config.section import Setting, columns
from watchkeeper.daemon.init.probe import Found
from watchkeeper.daemon.init.variants import TITLES, Plan, SourceTable

WIDTH = 100
# What a key may hold and the line itself shows.
PLAIN = ("text", "true or false")


def file_text(made: Plan, found: Found) -> str:
    """The whole file."""
    lines = [f"#:schema {FILE_NAME}", *_comment(f"Watchkeeper, for {TITLES[made.variant]}."), "#"]
    for words, rows in (("found:", found.words() or ["nothing"]), ("assumed:", made.assumed)):
        for row in rows:
            lines += textwrap.wrap(row, WIDTH, initial_indent=f"# {words:<9} ", subsequent_indent="#           ")
            words = ""  # noqa: PLW2901  the word is said once
    lines += ["#", *_comment("Every key may be left out. A key behind # shows its default. All of them, with reasons:")]
    lines += ["#   watchkeeper check-config FILE --show"]
    for setting in (s for s in SETTINGS.values() if len(s.path) == 1 and s.key in made.keys):
        lines += _key(setting, made.values.get(setting.key))
    for source in made.sources:
        lines += ["", *_source(source)]
    for name in SECTIONS:
        lines += _section(name, made)
    return "\n".join([*lines, *_zones(made.zones), *_examples(made)]) + "\n"


def _section(name: str, made: Plan) -> Iterator[str]:
    own = [s for key, s in SETTINGS.items() if key in made.keys and ".".join(s.path[:-1]) == name]
    if own:
        yield ""
        yield from _comment(about_section(default(), name))
        yield f"[{name}]"
        for setting in own:
            yield from _key(setting, made.values.get(setting.key))


def _key(setting: Setting, value: object = None) -> Iterator[str]:
    """Comment and line of one key; without a value a comment too, with the default."""
    yield ""
    yield from _comment(setting.reason if setting.span in PLAIN else f"{setting.reason} ({setting.allowed})")
    if value is not None:
        yield f"{setting.path[-1]} = {toml_value(value)}"
    elif setting.default is not NODEFAULT and setting.default is not None:
        yield f"# {setting.path[-1]} = {toml_value(setting.default)}"


def _source(source: SourceTable) -> Iterator[str]:
    section = source_types()[source.keys["type"]]
    yield from _comment(about(section))
    if source.off:
        yield from _comment(f"Off: {source.off}.")
    mark = "# " if source.off else ""
    yield f"{mark}[[sources]]"
    yield f"{mark}type = {toml_value(source.keys['type'])}"
    for setting in columns(section):
        lines = list(_key(setting, source.keys.get(setting.key)))
        yield from (mark + line if line and not line.startswith("#") else line for line in lines)


def _zones(zones: list[Zone]) -> Iterator[str]:
    """One table each; how the presets are is said once."""
    if not zones:
        return
    yield ""
    yield from _comment(
        "Where other minima hold. The first zone that holds an aircraft counts, of a pair the larger minima. Proposed "
        "from OurAirports (public domain): circles around airports, which real airspace is not. Change them, take them "
        "out, or give them minima of their own (separation_nm, vertical_ft)."
    )
    for name in dict.fromkeys(zone.preset for zone in zones if zone.preset is not None):
        volume = VOLUMES[name]
        yield from _comment(f'preset "{name}": {volume.separation_nm:g} NM, {volume.vertical_ft:g} ft')
    for zone in zones:
        yield ""
        yield "[[detectors.conflict.zones]]"
        for key in ("name", "preset", "lat", "lon", "radius_nm", "ceiling_ft"):
            yield f"{key} = {toml_value(getattr(zone, key))}"


def _examples(made: Plan) -> Iterator[str]:
    """Tables that have no sensible default: as comments."""
    if made.variant in ("drone", "fleet"):
        yield ""
        yield from _comment(
            "Vehicles that are declared are missed when they were never heard; others are learned from what they send."
        )
        yield from ("# [[topology.vehicles]]", '# names = ["uav-1", "survey-*"]', '# gateway = "gw-1"')
    yield ""
    yield from _comment("Alarms to a web address, one JSON object each; docs/outputs/sinks.md has other ways out.")
    yield from ("# [[webhooks]]", '# name = "pager"', '# url = "https://pager.example/hook"')


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
