"""Pins what the image installs, each file with its hash: `make lock` writes deploy/requirements.lock and deploy/locks.

uv resolves pyproject.toml's dependencies and deploy/image.in for the image's Python, with all extras of the image, so
that their versions agree. What an extra adds is in a file of its own, deploy/locks/NAME.lock. The first line of each
file is a digest of what was asked for, so that a test can say when it is out of step without asking any index.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "deploy" / "requirements.lock"
LOCKS = ROOT / "deploy" / "locks"
BUILD = ROOT / "deploy" / "image.in"
# As in deploy/Dockerfile.
PYTHON = "3.11"
# What the image's build argument EXTRAS may name.
EXTRAS = ("can", "drone", "files", "notify", "receiver", "ros")
SELF = re.compile(r"watchkeeper\[([\w,]+)\]")
NAME = re.compile(r"[A-Za-z0-9_.-]+")


def project() -> dict[str, list[str] | dict[str, list[str]]]:
    """The table `project` of pyproject.toml."""
    found: dict[str, list[str] | dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def flat(extra: str) -> list[str]:
    """The requirements of an extra, with those of the extras that it is made of."""
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    found: list[str] = []
    for requirement in extras[extra]:
        parts = SELF.fullmatch(requirement)
        found += [each for part in parts[1].split(",") for each in flat(part)] if parts else [requirement]
    return sorted(found)


def asked(extra: str = "") -> list[str]:
    """The requirements that a lock file answers: the image's own, or what an extra adds."""
    if extra:
        return flat(extra)
    build = [line for line in BUILD.read_text().splitlines() if line and not line.startswith("#")]
    return sorted([*project()["dependencies"], *build])


def file_of(extra: str = "") -> Path:
    """Where the lock file is."""
    return LOCKS / f"{extra}.lock" if extra else LOCK


def first_line(extra: str = "") -> str:
    """What the lock file begins with when it is in step."""
    digest = hashlib.sha256("\n".join(asked(extra)).encode()).hexdigest()
    return f"# made by `make lock` from {digest[:16]}"


def pins(text: str) -> dict[str, str]:
    """Of a compiled file: each package's block, by name."""
    blocks = re.split(r"\n(?=\S)", text.strip())
    return {found[0].lower(): block for block in blocks if (found := NAME.match(block))}


def resolve(requirements: Iterable[str], constraints: str = "") -> str:
    """What uv makes of them."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, limits = Path(folder, "in"), Path(folder, "limits")
        inputs.write_text("\n".join(requirements))
        limits.write_text(constraints)
        done = subprocess.run(
            [os.fspath(Path(sys.executable).with_name("uv")), "pip", "compile", os.fspath(inputs), "-c",
             os.fspath(limits), "--generate-hashes", "--python-version", PYTHON, "--universal", "--no-header",
             "--no-emit-index-url", "--no-annotate", "--quiet"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
    return done.stdout


def merged() -> str:
    """All lock files as one, each package once: `--merged` prints it, for `make sbom`."""
    found: dict[str, str] = {}
    for extra in ("", *EXTRAS):
        found |= pins(file_of(extra).read_text())
    return "\n".join(found[name] for name in sorted(found)) + "\n"


def main() -> int:
    """Write the lock files."""
    if "--merged" in sys.argv[1:]:
        sys.stdout.write(merged())
        return 0
    LOCKS.mkdir(exist_ok=True)
    everything = sorted({each for extra in ("", *EXTRAS) for each in asked(extra)})
    together = "\n".join(line for line in resolve(everything).splitlines() if "==" in line).replace(" \\", "")
    base = resolve(asked(), together)
    LOCK.write_text(f"{first_line()}\n{base}")
    for extra in EXTRAS:
        added = {name: block for name, block in pins(resolve(asked(extra), together)).items() if name not in pins(base)}
        file_of(extra).write_text("\n".join([first_line(extra), *added.values()]) + "\n")
        print(f"{file_of(extra).relative_to(ROOT)}: {len(added)} packages")
    print(f"{LOCK.relative_to(ROOT)}: {len(pins(base))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
