"""Makes a release: `python -m tools.release 0.3.0` checks, sets version and date, commits and tags.

Refused while the working tree has changes, the changelog has nothing for the version, or `project.urls` still names
the owner "example". `--dry-run` says what would change. Nothing is pushed. Afterwards: `make packages`,
`git push --follow-tags`, `twine upload dist/*`, and `make site-version ARGS=--push` for the pages of this version.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEXT = "make packages, git push --follow-tags, twine upload dist/*, make site-version ARGS=--push"
VERSION = re.compile(r"\d+\.\d+\.\d+")
# Where the version stands, and in which words.
PLACES = {
    "pyproject.toml": 'version = "{}"',
    "CITATION.cff": "version: {}",
    "deploy/compose/services.yaml": "image: watchkeeper:{}",
    "deploy/kubernetes/kustomization.yaml": "newTag: {}",
    "deploy/home-assistant/README.md": "watchkeeper:{}",
    "deploy/home-assistant/watchkeeper/config.yaml": "version: {}",
    "deploy/home-assistant/watchkeeper/Dockerfile": "watchkeeper:{}",
    "docs/deploy.md": "watchkeeper:{}",
    "docs/install.md": "watchkeeper-{}-py3",
}


def objections(root: Path, version: str) -> list[str]:
    """Why it cannot be released, each in a sentence."""
    found = []
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    if not VERSION.fullmatch(version):
        found.append(f"{version} is not MAJOR.MINOR.PATCH")
    if "/example/" in project["urls"]["Repository"]:
        found.append('project.urls in pyproject.toml still names the owner "example"')
    if not section(root, version).strip():
        found.append(f"CHANGELOG.md has nothing under [{version}] - unreleased")
    return found


def section(root: Path, version: str, *, dated: bool = False) -> str:
    """What the changelog says about a version that is unreleased, or that has its date."""
    text, when = (root / "CHANGELOG.md").read_text(), r"[\d-]+" if dated else "unreleased"
    found = re.search(rf"(?ms)^## \[{re.escape(version)}\] - {when}\n(.*?)(?=^## \[|\Z)", text)
    return found[1] if found else ""


def changes(root: Path, version: str, today: str) -> dict[str, str]:
    """The files that change, with their new text."""
    old = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    made = {
        name: (root / name).read_text().replace(words.format(old), words.format(version))
        for name, words in PLACES.items()
    }
    log = (root / "CHANGELOG.md").read_text()
    made["CHANGELOG.md"] = log.replace(f"## [{version}] - unreleased", f"## [{version}] - {today}")
    return {name: text for name, text in made.items() if text != (root / name).read_text()}


def main() -> int:
    """Check, change, commit and tag; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    found = objections(ROOT, args.version)
    dirty = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    if dirty:
        found.append("the working tree has changes")
    made = changes(ROOT, args.version, datetime.datetime.now(datetime.UTC).date().isoformat())
    for words in (*(f"not released: {each}" for each in found), *(f"changes {name}" for name in made)):
        print(words)
    if found or args.dry_run:
        return 1 if found else 0
    for name, text in made.items():
        (ROOT / name).write_text(text)
    subprocess.run(["git", "commit", "-qam", f"Release {args.version}"], cwd=ROOT, check=True)
    notes = f"Watchkeeper {args.version}\n\n{section(ROOT, args.version, dated=True)}"
    subprocess.run(["git", "tag", "-a", f"v{args.version}", "--cleanup=verbatim", "-m", notes], cwd=ROOT, check=True)
    print(f"tagged v{args.version}; next: {NEXT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
