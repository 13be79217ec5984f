"""About the watch itself: what is watched, whether it can be relied on, its settings, and the words that alarms use."""

from __future__ import annotations

import math
from typing import Any

from watchkeeper.config.guests import SETTINGS, values_of
from watchkeeper.config.masking import HIDDEN, masked_value
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Setting, columns
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.shapes import (
    FactField,
    Glossary,
    KindInfo,
    Kinds,
    NotWatched,
    Ready,
    Settings,
    WatchState,
)
from watchkeeper.daemon.http.api.table import Call, Route
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.catalog import detector_kinds, kinds, threshold
from watchkeeper.detectors.declaration import ENDINGS, fields_of
from watchkeeper.detectors.fleet.reasons import JUDGED, NAMES, WORDS, Code, words
from watchkeeper.detectors.incidents.clues import vocabulary

# Vehicles that are named; all are counted.
NAMED = 1000


def routes(served: Served) -> list[Route]:
    """The paths /watch, /ready, /config, /kinds and /glossary."""
    handlers = _About(served)
    listed: list[tuple[str, str, Any, Any]] = [
        ("/watch", "What is not watched, and why", WatchState, handlers.watch),
        ("/ready", "Whether alarms can be relied on, and if not why", Ready, handlers.ready),
        ("/config", "The configuration in use, without secrets", Settings, handlers.config),
        ("/kinds", "Every kind of alarm, with the fields of its evidence", Kinds, handlers.kinds),
        ("/glossary", "The words of alarms, each with its meaning", Glossary, handlers.glossary),
    ]
    return [Route(method="GET", path=path, summary=said, answer=answer, handle=h) for path, said, answer, h in listed]


class _About:
    def __init__(self, served: Served) -> None:
        self._served = served

    async def watch(self, _call: Call) -> WatchState:
        pipeline = self._served.live.watched.pipeline
        table, fleet = pipeline.guard.coverage, pipeline.fleet
        found: list[NotWatched] = []
        total = 0
        for d, detector in enumerate(table.detectors):
            for slot, code in enumerate(table.code[d, : fleet.high].tolist()):
                if code in (Code.WATCHED, Code.NOT_APPLICABLE) or not fleet.ids[slot]:
                    continue
                total += 1
                if len(found) < NAMED:
                    since_t = float(table.since_t[d, slot])
                    since = since_t if math.isfinite(since_t) else None
                    partly = code in JUDGED
                    found.append(NotWatched(fleet.ids[slot], detector, NAMES[code], words(code), since, partly))
        return WatchState(
            t=pipeline.watermark if math.isfinite(pipeline.watermark) else None, detectors=list(table.detectors),
            counts=table.counts(), troubles=pipeline.guard.troubles(), not_watched=found, total=total,
        )  # fmt: skip

    async def ready(self, _call: Call) -> Ready:
        watched = self._served.live.watched
        reasons = watched.not_ready()
        return Ready(not reasons, reasons, watched.warnings(), watched.version)

    async def config(self, _call: Call) -> Settings:
        return without_secrets(self._served.config())

    async def kinds(self, _call: Call) -> Kinds:
        config, of_detectors = self._served.config(), detector_kinds()
        return Kinds(
            [
                KindInfo(
                    name=kind.name, help=kind.help, safety=kind.safety, causes=kind.causes, accepts=list(kind.accepts),
                    threshold=threshold(kind, config) if kind.name in of_detectors else None,
                    evidence=[FactField(f.name, f.unit, f.meaning) for f in fields_of(kind.facts)],
                )
                for kind in kinds().values()
            ],
            vocabulary(),
        )  # fmt: skip

    async def glossary(self, _call: Call) -> Glossary:
        return Glossary(
            {name: kind.help for name, kind in kinds().items()},
            list(SEVERITIES),
            [RAISED, UPDATED, CLEARED],
            {str(word): meaning for word, meaning in ENDINGS.items()},
            dict(WORDS),
        )


def without_secrets(config: Config) -> Settings:
    """Every setting by section. A setting that declares itself secret is hidden, and so are secrets in addresses."""
    tree: dict[str, Any] = {}
    hidden: list[str] = []
    for key, value in values_of(config).items():
        setting = SETTINGS[key]
        table = tree
        for level in setting.path[:-1]:
            table = table.setdefault(level, {})
        table[setting.path[-1]] = _shown(setting, value, key, hidden)
    return Settings(tree, hidden)


def _shown(setting: Setting, value: Any, key: str, hidden: list[str]) -> Any:
    if setting.table is not None:
        return [_item(setting, item, f"{key}[{i}]", hidden) for i, item in enumerate(value)]
    if setting.secret:
        if value:
            hidden.append(key)
        return HIDDEN if value else ""
    if isinstance(value, tuple | list):
        return [masked_value(item) if isinstance(item, str) else item for item in value]
    return masked_value(value) if isinstance(value, str) else value


def _item(setting: Setting, item: dict[str, Any], key: str, hidden: list[str]) -> dict[str, Any]:
    """One table of an array, with the keys of its own type."""
    assert setting.table is not None
    section = setting.table
    if setting.variants is not None:
        section = setting.variants()[item[setting.tag.key]]
    known = {column.key: column for column in columns(section)}
    shown = {}
    for name, value in item.items():
        own = known.get(name)
        shown[name] = value if own is None else _shown(own, value, f"{key}.{name}", hidden)
    return shown
