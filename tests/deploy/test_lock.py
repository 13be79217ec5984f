"""The image installs what deploy/requirements.lock says: all of it with hashes, and in step with pyproject.toml."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import LOCK, asked, first_line

from where import ROOT

PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ \\]+)")


def pins() -> dict[str, str]:
    found = (PIN.match(line) for line in LOCK.read_text().splitlines())
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def test_the_lock_file_is_in_step() -> None:
    assert LOCK.read_text().splitlines()[0] == first_line(), "run `make lock`"
    pinned = pins()
    for requirement in map(Requirement, asked()):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_every_package_has_hashes_and_nothing_says_where_from() -> None:
    text = LOCK.read_text()
    for block in re.split(r"\n(?=\S)", text)[1:]:
        assert "--hash=sha256:" in block, block[:60]
    assert "://" not in text
    assert "index" not in text


def test_the_image_takes_nothing_else() -> None:
    installs = [line for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes -r requirements.lock" in installs[0]
    assert "--no-deps --no-build-isolation" in installs[1]
