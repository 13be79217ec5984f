"""What the daemon says of itself: whether its alarms can be relied on, what else is wrong, and its counts.

    the parts of an App ─ not_ready(), warnings() ─▶ /readyz, page, terminal, Troubles (alarms), the supervisor
                        ─ totals(), feeds() ───────▶ the live page
                        ─ metrics() ───────────────▶ Prometheus

A part that can fail has a `health()` or `warnings()` of its own; this module only brings their sentences together, and
hides passwords in them. Built before most parts are: it asks them when it is asked.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric

from watchkeeper.config.masking import masked
from watchkeeper.daemon.families import gauge, gauges_by, totals_by
from watchkeeper.daemon.live.view import Totals
from watchkeeper.daemon.outputs.base import NO_BROKER
from watchkeeper.daemon.troubles import STOPPING, WARMING
from watchkeeper.detectors.engine.room import full
from watchkeeper.detectors.incidents.declaration import INCIDENT

if TYPE_CHECKING:
    from watchkeeper.daemon.app import App


class Condition:
    """The condition of one App: phases are written by it, everything else is read from its parts."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.warm, self.warming = False, WARMING
        self.stopping = False
        output = app.config.topics.output
        self._alarm_topics = tuple(f"{output}/{place}/" for place in ("alarm", INCIDENT))

    def not_ready(self) -> list[str]:
        """Why alarms cannot be relied on now; empty when they can."""
        reasons = self.own_reasons()
        return reasons if self.stopping else [*reasons, *map(masked, self._app.pipeline.guard.troubles())]

    def own_reasons(self) -> list[str]:
        """The same without what the pipeline raises alarms about itself."""
        if self.stopping:
            return [STOPPING]
        app = self._app
        reasons = [] if self.warm else [self.warming]
        if not app.transport.connected:
            reasons.append(f"{NO_BROKER} {app.config.broker.url}: {app.transport.last_error}".rstrip(": "))
        reasons += app.transport.health(*self._alarm_topics) + app.echo.health()
        reasons += [f"journal {reason}" for reason in app.router.journal_health()]
        return [masked(reason) for reason in (*reasons, *app.memory.health())]

    def warnings(self) -> list[str]:
        """What else is wrong, though alarms are raised and published: ways out that do not deliver, damaged state."""
        http = self._app.http
        gate = http.gate.warnings() if http is not None else []
        return [*self.own_warnings(), *gate, *map(masked, self._app.pipeline.guard.warnings())]

    def own_warnings(self) -> list[str]:
        """The same without what the pipeline raises alarms about itself."""
        app = self._app
        vital = app.transport.health(*self._alarm_topics)
        refused = [said for said in app.transport.health() if said not in vital]
        kept = app.state.warnings() if app.state is not None else []
        clock = app.pump.wall.health(app.config.time.wall_tolerance_s)
        sources = (words for live in app.sources for words in live.health.health())
        heard = (*app.hearing.health(), *app.pump.health(), *app.refusals.health(), *sources)
        # without a broker `not_ready` says so already
        sinks = (words for words in app.router.warnings() if NO_BROKER not in words or app.transport.connected)
        said = (*sinks, *refused, *heard, *full(app.pipeline), *clock, *kept)
        # an error of a library may name an address with its login
        return [masked(words) for words in said]

    def status(self) -> str:
        """One line for the supervisor."""
        state = ", ".join([*self.not_ready(), *self.warnings()]) or "watching"
        pipeline = self._app.pipeline
        return f"{state}: {len(pipeline.fleet)} vehicles, {len(pipeline.active)} active alarms"

    def totals(self) -> Totals:
        """Counts for the live page."""
        app = self._app
        dropped = sum(app.letters.counts.values()) + sum(app.pipeline.drops.values()) + app.intake.dropped
        return Totals(app.intake.received, dropped, len(app.intake), app.pump.busy_s)

    def turn_s(self) -> float:
        """The longest slice of the pump since the last question."""
        pump = self._app.pump
        turn_s, pump.recent_slice_s = pump.recent_slice_s, 0.0
        return turn_s

    def feeds(self) -> list[dict[str, Any]]:
        """Where samples come from, for the live page: the broker, and receivers next to it."""
        app = self._app
        broker = {"name": masked(app.config.broker.url), "connected": app.transport.connected, "type": "broker"}
        sources = [(live.source, live.connected) for live in app.sources]
        return [broker, *({"name": masked(s.url), "connected": up, "type": s.type} for s, up in sources)]

    def metrics(self) -> Iterator[Metric]:
        """The daemon as a whole, for Prometheus."""
        app = self._app
        yield gauge("ready", "1 while /readyz says yes", not self.not_ready())
        yield gauge("troubles", "Parts of the daemon about which a `watch` alarm is active", len(app.troubles.active))
        reloads = totals_by(["result"], "reloads", "Configuration reloads")
        for result in ("applied", "refused"):
            reloads.add_metric([result], app.reload.counts[result])
        yield reloads
        info = gauges_by(["version", "python", "transport"], "build_info", "Constant 1")
        info.add_metric([app.version, platform.python_version(), app.config.broker.transport], 1)
        yield info
