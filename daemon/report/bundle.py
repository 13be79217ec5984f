"""The page's own style and script in one file: what the live page is made of, and what a report adds to it.

Scripts are modules that import each other, for the linter and the type checker. In a page that opens from a disk no
module can be loaded, so they are put one after the other: imports and the word `export` are left out, and no two of
them may give a name twice (tests/daemon/report/test_bundle.py).
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

OWN = Path(__file__).parent / "page"
LIVE = Path(__file__).parents[1] / "live" / "page"
STYLES = (LIVE / "theme.css", OWN / "report.css", OWN / "print.css")
# In the order in which they need each other.
SCRIPTS = (
    *(LIVE / f"{name}.js" for name in ("dom", "palette", "units", "charts")),
    *(OWN / f"{name}.js" for name in ("data", "time", "chart", "plots", "ground", "track", "tables", "main")),
)
_IMPORT = re.compile(r"^import [^;]*;\n", re.M)
_EXPORT = re.compile(r"^export (?=(?:async |const |let |function |class ))", re.M)
# Comments on lines of their own.
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*(?:(?!\*/).)*\*/)\n", re.M | re.S)


@cache
def shapes() -> str:
    """Severities and tones as pictures that the page refers to."""
    return (OWN / "shapes.svg").read_text("utf-8")


@cache
def first() -> str:
    """What runs before anything is shown."""
    return (OWN / "first.js").read_text("utf-8")


@cache
def style() -> str:
    """All style sheets."""
    return "\n".join(path.read_text("utf-8") for path in STYLES)


@cache
def script() -> str:
    """All scripts as one, without their comments."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", path.read_text("utf-8"))) for path in SCRIPTS]
    return "(() => {\n'use strict';\n" + _COMMENT.sub("", "\n".join(parts)) + "})();\n"


def policy(*inline: str) -> str:
    """The content security policy: these scripts and our style, nothing from anywhere, no connection to anybody."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" for code in inline)
    others = "img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; {others}"
