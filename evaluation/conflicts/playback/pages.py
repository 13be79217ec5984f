"""Writes the page of an episode: one HTML file with its styles, scripts and data inside, that loads nothing.

The files of the page are in page/. Its scripts are modules for the linter and the type checker; here they are joined
into one, in order of what imports what. Names of aircraft and files come from strangers: data are JSON in which no tag
can begin, scripts put them into the page as text only, and the page's policy runs no script but its own. Called by
command.py.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.findings import Findings
from watchkeeper.evaluation.conflicts.load import read_episodes
from watchkeeper.evaluation.conflicts.playback.content import content
from watchkeeper.evaluation.conflicts.playback.scene import scene_of
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shared.errors import EvaluationError

Known: TypeAlias = tuple[str, str]
"""The file of an episode, and its name."""
ENDINGS = (".html", ".htm")
# A module comes after those that it imports.
SCRIPTS = ("dom.js", "words.js", "player.js", "view.js", "marks.js", "map.js", "timeline.js", "confusion.js", "main.js")
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def page_of(found: Findings, name: str) -> str:
    """The page of an evaluated episode."""
    template, style, script = _files()
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'"
    parts = {
        "title": escape(name),
        "policy": escape(policy),
        "style": style,
        "script": script,
        "data": embedded(content(scene_of(found), name)),
    }
    # in one pass: nothing that is put in is looked at again
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], template)


def write_pages(
    place: Path, detector: HallucinationDetector, episodes: Sequence[Mapping[str, Any]], *, quiet: bool = False
) -> dict[Known, Path]:
    """A page for each of these episodes: the file `place`, or files in the folder `place`. Where each one is."""
    known = [(str(row["file"]), str(row["name"])) for row in episodes]
    check_place(place, len(known))
    if place.suffix.lower() in ENDINGS:
        pages = dict.fromkeys(known, place)
    else:
        place.mkdir(parents=True, exist_ok=True)
        pages = dict(zip(known, (place / name for name in _file_names([name for _, name in known])), strict=True))
    counted(partial(_write_all, detector=detector, pages=pages), list(dict.fromkeys(file for file, _ in known)),
            "writing pages", jobs=1, hidden=quiet)  # fmt: skip
    return pages


def check_place(place: Path, episodes: int) -> None:
    """Raises EvaluationError where one page would have to show several episodes."""
    if place.suffix.lower() in ENDINGS and episodes > 1:
        raise EvaluationError(f"{place}: a page shows one episode and there are {episodes:,}; name a folder")


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins another."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _write_all(file: str, *, detector: HallucinationDetector, pages: Mapping[Known, Path]) -> None:
    """The pages of all episodes in one file, which is read once."""
    for name, episode in read_episodes(Path(file), detector.action_period_s):
        pages[file, name].write_text(page_of(detector.examine(episode), name), encoding="utf-8")


def _file_names(names: Sequence[str]) -> list[str]:
    """Names of files, all different and without a character that a file system or an address minds."""
    taken: dict[str, int] = {}
    found = []
    for name in names:
        stem = plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "episode"
        while stem.lower() in taken:
            taken[plain.lower()] += 1
            stem = f"{plain}-{taken[plain.lower()]}"
        taken[stem.lower()] = 1
        found.append(f"{stem}.html")
    return found


@cache
def _files() -> tuple[str, str, str]:
    """The template, the styles and the scripts as one."""
    folder = files(__package__) / "page"
    scripts = (_EXPORT.sub("", _IMPORT.sub("", (folder / name).read_text("utf-8"))) for name in SCRIPTS)
    template, style = ((folder / name).read_text("utf-8") for name in ("index.html", "episode.css"))
    return template, style, "\n".join(scripts)


def _hash(text: str) -> str:
    """How a policy names a script or a style that it allows."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
