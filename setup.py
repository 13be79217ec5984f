"""README.md as a package index shows it: links and pictures, relative in the repository, as full addresses.

Everything else is in pyproject.toml. The addresses begin with its `project.urls.Repository`, at the version's tag.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)\s]+)\)")


def for_an_index() -> str:
    """The text, with a full address wherever a relative one stood."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    base, tag = project["urls"]["Repository"], f"v{project['version']}"

    def full(link: re.Match[str]) -> str:
        form = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({base}/{form}/{tag}/{link[3]})"

    return RELATIVE.sub(full, (HERE / "README.md").read_text())


setup(long_description=for_an_index(), long_description_content_type="text/markdown")
