"""`pip install` as the pages show it: what it would install must be there already, and its extra must exist.

Pages say `pip install "watchkeeper[mavlink]"`. A test does not install; it sees that pyproject.toml has the extra and
that the environment of the tests has its packages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
# Of no use to tests that need seconds; their pages' blocks say so.
ABSENT = {"bluesky"}


def flat(extra: str) -> list[str]:
    """What an extra needs, with the extras that it is made of; this file is run by itself, so nothing is imported."""
    found: list[str] = []
    for need in PROJECT["optional-dependencies"][extra]:
        parts = re.fullmatch(r"watchkeeper\[([\w,]+)\]", need)
        found += [each for part in parts[1].split(",") for each in flat(part)] if parts else [need]
    return found


def main(words: list[str]) -> int:
    """0 if everything that is asked for is there."""
    assert words[0] == "install"
    for word in words[1:]:
        if word == ".":
            continue
        asked = re.fullmatch(r"watchkeeper\[(\w+)\]", word)
        if asked is None or asked[1] not in PROJECT["optional-dependencies"]:
            print(f"no such extra: {word}", file=sys.stderr)
            return 1
        for need in flat(asked[1]) if asked[1] not in ABSENT else ():
            name = re.match(r"[\w.-]+", need)
            assert name is not None
            try:
                distribution(name[0])
            except PackageNotFoundError:
                print(f"not installed: {need}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
