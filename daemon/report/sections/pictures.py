"""What the script fills: the bar with the time, the map and the plots. Without the script they say what is missing."""

from __future__ import annotations

from typing import Any

from watchkeeper.daemon.report.markup import Html, el
from watchkeeper.daemon.report.result import Result

LOGO = Html(
    '<svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><circle cx="16" cy="16" r="13" class="ring"/>'
    '<circle cx="16" cy="16" r="6.5" class="ring thin"/><path d="M16 16 L26 8" class="sweep"/>'
    '<circle cx="16" cy="16" r="2" class="dot"/></svg>'
)
ICONS = {
    "theme": '<circle cx="12" cy="12" r="8.5"/><path class="fill" d="M12 3.5a8.5 8.5 0 0 1 0 17z"/>',
    "in": '<path d="M12 6v12M6 12h12"/>',
    "out": '<path d="M6 12h12"/>',
    "left": '<path d="M14 6l-6 6 6 6"/>',
    "right": '<path d="M10 6l6 6-6 6"/>',
    "all": '<path d="M5 9V5h4M15 5h4v4M19 15v4h-4M9 19H5v-4"/>',
}


def icon(name: str, label: str, key: str, identity: str) -> Html:
    """A button with a picture."""
    picture = Html(f'<svg viewBox="0 0 24 24" aria-hidden="true">{ICONS[name]}</svg>')
    title = f"{label} ({key})" if key else label
    return el("button.icon", picture, type="button", id=identity, aria_label=label, title=title)


def bar(result: Result) -> Html:
    """The bar at the top, which stays there: name, sections, time."""
    return plain_bar(result.title, time=result.spanned)


def plain_bar(title: str, *, time: bool) -> Html:
    """The bar; with the slider of time where there is a time."""
    keys = "arrow keys move, plus and minus zoom, 0 shows all"
    track = el(
        "div.time",
        icon("left", "Earlier", "←", "earlier"),
        el(
            "canvas",
            id="overview",
            tabindex="0",
            role="application",
            aria_label=f"Time shown in all plots: {keys}",
            aria_describedby="window",
        ),
        icon("right", "Later", "→", "later"),
        icon("in", "Zoom in", "+", "zoom-in"),
        icon("out", "Zoom out", "−", "zoom-out"),
        icon("all", "Show the whole log", "0", "zoom-all"),
        el("output.clock", "", id="window"),
    )
    return el(
        "header.bar",
        el("div.brand", LOGO, el("span", "Watchkeeper"), el("span.file", title)),
        track if time else None,
        el("div.tools", icon("theme", "Change theme", "t", "theme")),
    )


def track_map(result: Result, found: dict[str, Any]) -> Html | None:
    """The map; None without a position."""
    worlds = {vehicle["earth"] for vehicle in found["vehicles"] if vehicle["track"]}
    if not worlds or not result.spanned:
        return None
    return el(
        "section.map",
        el("h2", "Map"),
        el(
            "div.ground",
            el(
                "canvas",
                id="map",
                tabindex="0",
                role="application",
                aria_label="Map. Arrow keys pan, plus and minus zoom, F fits.",
                aria_describedby="map-words",
            ),
            el(
                "div.segment",
                _world("earth", "Earth"),
                _world("local", "Local frames"),
                role="group",
                aria_label="Frame",
            )
            if len(worlds) > 1
            else None,
            el(
                "div.stack",
                icon("in", "Zoom the map in", "+", "map-in"),
                icon("out", "Zoom the map out", "−", "map-out"),
                icon("all", "Fit the map", "f", "map-fit"),
            ),
        ),
        el("p.muted", "", id="map-words"),
        id="map-section",
        aria_label="Map",
    )


def plots(result: Result, found: dict[str, Any]) -> Html | None:
    """The plots; None without a sample."""
    if not found["vehicles"] or not result.spanned:
        return None
    return el(
        "section.plots",
        el("h2", "Plots ", el("span.n", "", id="plots-of")),
        el(
            "p.lead",
            "Each line is an envelope: the lowest and the highest value of each bin of time, so that no peak is lost. "
            "Drag to zoom, double click to see all, point to read values.",
        ),
        el("div", id="plots"),
        el("noscript", el("p", "Map and plots need the script in this file.")),
        id="plots-section",
        aria_label="Plots",
    )


def _world(name: str, label: str) -> Html:
    return el("button", label, type="button", data_world=name, aria_pressed="false")
