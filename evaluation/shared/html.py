"""An evaluation as one HTML page that opens anywhere without a network: title, tables and pictures, nothing to load.

    write_page(path, "Title", [Text("…"), Table("caption", ["metric", "value"], [["tp", "3"]]), Picture("…", svg)])

Pictures are SVG bytes (`svg_of` makes them from a matplotlib figure) and go into the page as data.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .15rem .8rem .15rem 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid; }
tbody tr:nth-child(even) { background: rgb(128 128 128 / 10%); }
figure { margin: 1.5rem 0; } figure img { width: 100%; background: white; }
figcaption { opacity: .8; }
"""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; with `heading` a section begins."""

    body: str
    heading: str = ""


class Link(str):
    """Words in a table that lead to another file; `to` is its path as seen from the page."""

    to: str

    def __new__(cls, words: str, to: str) -> Link:
        """The words, with where they lead."""
        made = super().__new__(cls, words)
        made.to = to
        return made


@dataclass(frozen=True, slots=True)
class Table:
    """The first column holds names, the others numbers or words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG."""

    caption: str
    svg: bytes


def write_page(path: Path, title: str, parts: Sequence[Text | Table | Picture]) -> None:
    """Write the page."""
    body = "\n".join(_part(part) for part in parts)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )


def svg_of(figure: Any, salt: str) -> bytes:
    """A matplotlib figure as SVG; the same figure and salt give the same bytes."""
    from matplotlib import rc_context  # noqa: PLC0415 - only who draws needs the extra

    out = BytesIO()
    with rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _part(part: Text | Table | Picture) -> str:
    if isinstance(part, Text):
        heading = f"<h2>{escape(part.heading)}</h2>\n" if part.heading else ""
        return heading + (f"<p>{escape(part.body)}</p>" if part.body else "")
    if isinstance(part, Picture):
        data = b64encode(part.svg).decode()
        return (
            f'<figure><img alt="{escape(part.caption)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{escape(part.caption)}</figcaption></figure>"
        )
    head = "".join(f"<th>{escape(cell)}</th>" for cell in part.head)
    rows = "\n".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in part.rows)
    return (
        f"<table><caption>{escape(part.caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n"
        "</tbody></table>"
    )


def _cell(cell: str) -> str:
    return f'<a href="{escape(quote(cell.to))}">{escape(cell)}</a>' if isinstance(cell, Link) else escape(cell)
