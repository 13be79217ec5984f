"""Every configuration that the documentation shows is one that the daemon takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from watchkeeper.config.loader import ConfigError, load

from where import DOCS

BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(DOCS)}-{i}")
    for page in sorted(DOCS.rglob("*.md"))
    # the package that this page makes is installed by its own test
    if page.name != "writing-an-adapter.md"
    for i, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL))
    # a mapping for CAN is a file of its own
    if not re.search(r"^dbc = ", block, re.MULTILINE)
]


def test_there_are_examples():
    assert len(BLOCKS) > 10


def problems_of(file: Path) -> set[str]:
    try:
        load(file)
    except ConfigError as error:
        return {problem.key for problem in error.problems}
    return set()


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_valid(block, tmp_path):
    file = tmp_path / "example.toml"
    file.write_text(block)
    # certificates that readers have and we have not
    assert problems_of(file) <= {"broker.ca_file"}
