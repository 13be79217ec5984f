"""The image installs what the lock files of deploy/ say: all of it with hashes, and in step with pyproject.toml."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.licences import packages
from tools.lock import EXTRAS, asked, file_of, first_line

from where import ROOT

PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ \\]+)")
EACH = pytest.mark.parametrize("extra", ["", *EXTRAS])


def pins(extra: str) -> dict[str, str]:
    found = (PIN.match(line) for line in file_of(extra).read_text().splitlines())
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


@EACH
def test_a_lock_file_is_in_step(extra: str) -> None:
    assert file_of(extra).read_text().splitlines()[0] == first_line(extra), "run `make lock`"
    pinned = {**pins(""), **pins(extra)}
    for requirement in map(Requirement, asked(extra)):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, requirement


@EACH
def test_every_package_has_hashes_and_nothing_says_where_from(extra: str) -> None:
    text = file_of(extra).read_text()
    for block in re.split(r"\n(?=\S)", text)[1:]:
        assert "--hash=sha256:" in block, block[:60]
    assert "://" not in text
    assert "index" not in text


def test_versions_agree_whichever_extras_are_installed_together() -> None:
    seen: dict[str, str] = {}
    for extra in ("", *EXTRAS):
        for name, version in pins(extra).items():
            assert seen.setdefault(name, version) == version, f"{extra}: {name}"


def test_the_image_takes_nothing_else() -> None:
    text = re.sub(r"\\\n\s*", "", (ROOT / "deploy" / "Dockerfile").read_text())
    installs = re.findall(r"pip install ([^&;|]*)", text)
    assert len(installs) == 3
    assert "--require-hashes -r requirements.lock" in installs[0]
    assert '--require-hashes --no-deps -r "locks/$extra.lock"' in installs[1]
    assert "--no-deps --no-build-isolation" in installs[2]


def test_the_page_of_licences_names_every_package_and_the_daemon_itself_is_permissive() -> None:
    rows = re.findall(r"^\| ([\w.-]+) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "licences.md").read_text(), re.MULTILINE)
    listed = {name: (licence, needed) for name, licence, needed in rows if name != "package"}
    assert set(listed) == set(packages()), "run `make licences`"
    own = {name: licence for name, (licence, needed) in listed.items() if needed == "Watchkeeper"}
    copyleft = [name for name, licence in own.items() if re.search(r"GPL|GNU", licence) and " OR " not in licence]
    assert copyleft == []
    assert not [name for name, (licence, _) in listed.items() if licence.startswith("not installed")]
