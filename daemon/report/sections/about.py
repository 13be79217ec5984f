"""Where the page comes from: logs with their digests, settings that are not the default, versions, command."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.daemon.report.markup import Html, el, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.sections.provenance import changed, command_line, digest, versions
from watchkeeper.daemon.report.words import size


def about(result: Result) -> Html:
    """The section."""
    logs = [
        (Path(info.path).name, info.format, size(info.size_bytes), el("code", digest(Path(info.path)) or "not a file"))
        for info in result.infos
    ]
    settings = [
        (el("code", c.key), el("code", c.value), el("code", c.default), c.unit, c.reason)
        for c in changed(result.config)
    ]
    by_default = el("p", "All settings are the defaults.")
    head = ("setting", "here", "default", "unit", "reason")
    return el(
        "section.about",
        el("h2", "About this report"),
        el("p", "The same log, settings and version give the same alarms. Made by:"),
        el("pre.command", el("code", command_line(result.command)), tabindex="0"),
        table("Logs", ("file", "format", "size", "SHA-256"), logs),
        table("Settings that are not the default", head, settings) if settings else by_default,
        el("p.muted", "Versions: ", ", ".join(f"{name} {number}" for name, number in versions().items()), "."),
        id="about",
        aria_label="About this report",
    )
