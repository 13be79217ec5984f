"""HTML from Python, escaped by default: what a log or a vehicle calls itself stays text.

el("p.note", "a < b", title="…")        <p class="note" title="…">a &lt; b</p>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = {"br", "hr", "img", "meta", "link", "input"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable["Child"] | None
Cell = Child | tuple[Child, float | str]


def el(what: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """One element; `what` is its tag with classes. An underscore in an attribute's name is a dash, at its end nothing.

    >>> el("td.wide", "<b>", data_v=1.5, for_="x", hidden=False)
    '<td class="wide" data-v="1.5" for="x">&lt;b&gt;</td>'
    """
    tag, *classes = what.split(".")
    pairs: dict[str, str | float | bool | None] = {"class": " ".join(classes)} if classes else {}
    pairs |= {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    words = "".join(
        f" {name}" if value is True else f' {name}="{escape(str(value))}"'
        for name, value in pairs.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{words}>") if tag in VOID else Html(f"<{tag}{words}>{text(children)}</{tag}>")


def text(child: Child) -> Html:
    """Children as HTML."""
    if child is None:
        return Html("")
    if isinstance(child, str):
        return child if isinstance(child, Html) else Html(escape(child))
    return Html("".join(text(part) for part in child))


# A table with more rows than this scrolls by itself.
TALL = 16


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Cell]], *, sortable: bool = False) -> Html:
    """A table whose first column names its rows. A cell may come with the value that it is sorted by.

    One that cannot be sorted is a list on a phone, where each cell has the title of its column in front of it.
    """
    titles = [el("th", el("button", name, type="button") if sortable and name else name, scope="col") for name in head]
    body = []
    for row in rows:
        first, *rest = (cell if isinstance(cell, tuple) else (cell, None) for cell in row)
        cells = [el("th", first[0], scope="row", data_v=first[1])]
        labels = (None,) * len(rest) if sortable else head[1:]
        cells += [
            el("td", shown, data_v=value, data_label=label) for (shown, value), label in zip(rest, labels, strict=True)
        ]
        body.append(el("tr", cells))
    attributes = {"data_sortable": True} if sortable else {}
    inner = el("table", el("caption", caption), el("thead", el("tr", titles)), el("tbody", body), **attributes)
    # it may be wider than a phone: then it scrolls by itself, by keyboard too
    return el(
        "div.scroll.tall" if len(rows) > TALL else "div.scroll", inner, tabindex="0", role="group", aria_label=caption
    )


def shape(severity: str) -> Html:
    """A severity as a shape, the same as on the map."""
    return el("svg.shape", el("use", href=f"#shape-{severity}"), aria_hidden="true")
