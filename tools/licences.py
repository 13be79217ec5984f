"""Licences of everything that is installed at run time: `make licences` writes docs/licences.md.

Names come from the lock files of the image (deploy/requirements.lock, deploy/locks), licences from the metadata of the
packages as they are installed here. A package that is not installed here keeps the line that the page has.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata

from tools.lock import EXTRAS, ROOT, file_of, pins

PAGE = ROOT / "docs" / "licences.md"
# Builds the image, and is not left in it.
BUILD = {"setuptools"}
HEAD = """\
# Licences

What an installation consists of besides Watchkeeper (Apache-2.0) itself, by `make licences` from the lock files and the
packages' own metadata. Without extras everything is permissive; an extra with a copyleft licence says so in
[install](install.md#extras).
`make sbom` writes the same as CycloneDX, with versions and hashes.

| package | licence | needed by |
|---|---|---|
"""
FAMILIES = (
    ("Apache", "Apache-2.0"),
    ("MIT", "MIT"),
    ("BSD", "BSD"),
    ("GPL", "GPL"),
    ("PSF", "PSF-2.0"),
    ("MPL", "MPL-2.0"),
)


def licence(name: str) -> str:
    """As the package states it, in one line; nothing when it is not installed here."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return ""
    if "License-Expression" in found:
        return found["License-Expression"]
    classifiers = [c.rpartition(" :: ")[2] for c in found.get_all("Classifier") or () if c.startswith("License ::")]
    words = "; ".join(c for c in classifiers if c != "OSI Approved")
    text = found["License"].strip() if "License" in found else ""
    if words:
        return words
    if len(text) <= 60:
        return " ".join(text.split())
    return next((short for word, short in FAMILIES if word in text[:400]), "see its files")


def packages() -> dict[str, list[str]]:
    """Every package at run time, with the extras that need it; "" is the daemon itself."""
    found: dict[str, list[str]] = {}
    for extra in ("", *EXTRAS):
        for name in pins(file_of(extra).read_text()):
            if name not in BUILD:
                found.setdefault(name, []).append(extra)
    return dict(sorted(found.items()))


def page() -> str:
    """The page."""
    known = dict(re.findall(r"^\| ([\w.-]+) \| (.*?) \|", PAGE.read_text() if PAGE.exists() else "", re.MULTILINE))
    rows = [
        f"| {name} | {licence(name) or known.get(name, 'not installed where this page was made')} | "
        f"{', '.join(f'`{extra}`' for extra in extras if extra) or 'Watchkeeper'} |"
        for name, extras in packages().items()
    ]
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page())
    print(f"{PAGE.relative_to(ROOT)}: {len(packages())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
