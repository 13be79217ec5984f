"""docs/alarms.md from the declarations: `python -m watchkeeper.detectors.reference > docs/alarms.md`.

Detectors of other packages are on the page as well when they are installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.catalog import REGISTRY, discover
from watchkeeper.detectors.clock import declaration as clock
from watchkeeper.detectors.coverage.declaration import KIND as WATCH
from watchkeeper.detectors.declaration import ENDINGS, AlarmKind, Declaration, Gauge, fields_of
from watchkeeper.detectors.incidents.declaration import GAUGES, KIND

INTRO = """# Alarms and what they say

Generated from the declarations in `detectors/` by `make docs`; edit those, not this page. The life of an alarm and the
fields that all have in common are in [messages](messages.md), the settings in [configuration](configuration.md),
the words in the [glossary](glossary.md). Every event says itself in one sentence, `say`.

| kind | detector | means |
|---|---|---|
"""
ABOUT_WATCH = """Its subject is a vehicle; or two names: `detector` and that of a detector that failed, or `watchkeeper`
and a part of the daemon that is in trouble. Score and threshold are always 1. [Coverage](coverage.md) has the rules.
"""
ABOUT_CLOCK = """Its subject is a vehicle, or a gateway whose vehicles are off together; the score is the offset in
seconds, the threshold `time.clock_tolerance_s`. [Clocks](detectors/clock.md) has the rules.
"""
ABOUT_INCIDENT = "Its subjects are those of the first alarm; the score is the number of alarms.\n"


def reference_markdown() -> str:
    """The whole page."""
    declared = [detector.declaration for detector in REGISTRY.values()]
    rows = [f"| [`{kind.name}`](#{kind.name}) | `{d.name}` | {kind.help} |" for d in declared for kind in d.kinds]
    rows.append(f"| [`{clock.KIND.name}`](#{clock.KIND.name}) | the engine's clock | {clock.KIND.help} |")
    rows.append(f"| [`{WATCH.name}`](#{WATCH.name}) | the coverage | {WATCH.help} |")
    rows.append(f"| [`{KIND.name}`](#{KIND.name}) | the diagnosis | {KIND.help} |")
    parts = [INTRO + "\n".join(rows) + "\n"]
    for declaration in declared:
        parts += _detector(declaration)
    parts += [*_kind(clock.KIND, ABOUT_CLOCK), *_gauges(clock.CLOCK, clock.GAUGES[clock.CLOCK])]
    watch, incident = _kind(WATCH, ABOUT_WATCH), _kind(KIND, ABOUT_INCIDENT)
    return "\n".join([*parts, *watch, *incident, *_gauges("incident", GAUGES["incident"]), *_endings()])


def _detector(declaration: Declaration) -> Iterator[str]:
    for kind in declaration.kinds:
        settings = section_of(DEFAULT, "detectors", kind.name)
        enough = f"{kind.threshold(settings):g}"
        if kind.threshold_most is not None:
            enough += f" to {kind.threshold_most(settings):g}, by the `threshold` of the moment,"
        yield from _kind(
            kind, f"Its subject is a {declaration.subjects}; a score of {enough} counts towards an alarm.\n"
        )
    yield from _gauges(declaration.name, declaration.gauges)


def _kind(kind: AlarmKind, about: str) -> Iterator[str]:
    yield f"## {kind.name}\n"
    yield f"{kind.help[:1].upper()}{kind.help[1:]}."
    yield about
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


def _endings() -> Iterator[str]:
    yield "## How an alarm ended\n"
    yield "The last event of an alarm, `cleared`, says it in `ended`, which is null until then.\n"
    yield "| `ended` | means |\n|---|---|"
    yield from (f"| `{word}` | {meaning} |" for word, meaning in ENDINGS.items())
    yield ""


if __name__ == "__main__":
    discover()
    sys.stdout.write(reference_markdown())
