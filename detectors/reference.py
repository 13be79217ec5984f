"""docs/alarms.md from the declarations: `python -m watchkeeper.detectors.reference > docs/alarms.md`.

Detectors of other packages are on the page as well when they are installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.catalog import REGISTRY, discover
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Gauge, fields_of
from watchkeeper.detectors.incidents.declaration import GAUGES, KIND

INTRO = """# Alarms and what they say

Generated from the declarations in `detectors/` by `make docs`; edit those, not this page. The life of an alarm and the
fields that all have in common are in [messages.md](messages.md), the settings in [configuration.md](configuration.md).

| kind | detector | means |
|---|---|---|
"""


def reference_markdown() -> str:
    """The whole page."""
    declared = [detector.declaration for detector in REGISTRY.values()]
    rows = [f"| [`{kind.name}`](#{kind.name}) | `{d.name}` | {kind.help} |" for d in declared for kind in d.kinds]
    rows.append(f"| [`{KIND.name}`](#{KIND.name}) | the diagnosis | {KIND.help} |")
    parts = [INTRO + "\n".join(rows) + "\n"]
    for declaration in declared:
        parts += _detector(declaration)
    return "\n".join([*parts, *_kind(KIND, None), *_gauges("incident", GAUGES["incident"])])


def _detector(declaration: Declaration) -> Iterator[str]:
    for kind in declaration.kinds:
        yield from _kind(kind, declaration)
    yield from _gauges(declaration.name, declaration.gauges)


def _kind(kind: AlarmKind, declaration: Declaration | None) -> Iterator[str]:
    yield f"## {kind.name}\n"
    yield f"{kind.help[:1].upper()}{kind.help[1:]}."
    if declaration is not None:
        threshold = kind.threshold(section_of(DEFAULT, "detectors", kind.name))
        yield f"Its subject is a {declaration.subjects}; a score of {threshold:g} counts towards an alarm.\n"
    else:
        yield "Its subjects are those of the first alarm; the score is the number of alarms.\n"
    if kind.causes:
        yield "| cause | means |\n|---|---|"
        yield from (f"| `{cause}` | {meaning} |" for cause, meaning in kind.causes.items())
        yield ""
    yield "| evidence | unit | means |\n|---|---|---|"
    yield from (f"| `{field.name}` | {field.unit or '-'} | {field.meaning} |" for field in fields_of(kind.facts))
    yield ""


def _gauges(detector: str, gauges: tuple[Gauge, ...]) -> Iterator[str]:
    yield "| metric | means |\n|---|---|"
    shown = {gauge.metric_of(detector): gauge for gauge in gauges}
    for metric, gauge in shown.items():
        label = f"{{{gauge.label[0]}}}" if gauge.label else ""
        yield f"| `watchkeeper_{metric}{label}` | {gauge.help} |"
    yield ""


if __name__ == "__main__":
    discover()
    sys.stdout.write(reference_markdown())
