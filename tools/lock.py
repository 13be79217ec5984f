"""Pins what the image installs, each file with its hash: `make lock` writes deploy/requirements.lock.

uv resolves pyproject.toml's dependencies and deploy/image.in for the image's Python. The first line of the lock file is
a digest of what was asked for, so that a test can say when the file is out of step without asking any index.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "deploy" / "requirements.lock"
EXTRA = ROOT / "deploy" / "image.in"
# As in deploy/Dockerfile.
PYTHON = "3.11"


def asked() -> list[str]:
    """The requirements that the lock file answers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = [line for line in EXTRA.read_text().splitlines() if line and not line.startswith("#")]
    return sorted([*project["dependencies"], *extra])


def first_line() -> str:
    """What the lock file begins with when it is in step."""
    digest = hashlib.sha256("\n".join(asked()).encode()).hexdigest()
    return f"# made by `make lock` from {digest[:16]}"


def main() -> int:
    """Write the lock file."""
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [os.fspath(uv), "pip", "compile", "pyproject.toml", os.fspath(EXTRA.relative_to(ROOT)), "--generate-hashes",
         "--python-version", PYTHON, "--universal", "--no-header", "--no-emit-index-url", "--no-annotate", "--quiet"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    LOCK.write_text(f"{first_line()}\n{done.stdout}")
    print(f"{LOCK.relative_to(ROOT)}: {done.stdout.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
