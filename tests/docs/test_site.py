"""The documentation as a site: built strictly, without network, and every page looked at in a browser (`make site`)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.served import serve
from tools.site.hooks import outside, repository

from where import DOCS, ROOT

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
# What is wrong with a page as it is shown: pictures that are none, content that is wider than the screen,
# sentences in a column that has room for a word, headings of columns that are cut within a word, and on a desktop
# rows whose words only a reader sees who moves the table sideways.
WRONG = """() => {
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  const broken = [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src);
  const narrow = [...document.querySelectorAll("td")].filter((td) => td.innerText.length > 90 && td.clientWidth < 150);
  const words = [...document.querySelectorAll("th code")].filter((c) => !/[-\\s]/.test(c.innerText));
  const cut = words.filter((c) => c.getClientRects().length > 1);
  const column = document.querySelector(".md-content__inner").getBoundingClientRect().right;
  const seen = (td) => td.getBoundingClientRect().left + 90 < column;
  const told = (tr) => [...tr.cells].some((td) => td.innerText.length > 30 && seen(td));
  const hidden = [...document.querySelectorAll("td.sentence")].filter((td) => !told(td.parentElement));
  return [
    ...broken.map((src) => `no picture ${src}`),
    ...(wide > 1 ? [`${wide} px too wide`] : []),
    ...narrow.map((td) => `${td.clientWidth} px for ${td.innerText.slice(0, 40)}`),
    ...cut.map((c) => `cut: ${c.innerText}`),
    ...(window.innerWidth > 1000 ? hidden.map((td) => `out of sight: ${td.innerText.slice(0, 40)}`) : []),
  ];
}"""


def test_links_that_leave_the_pages_lead_to_the_repository() -> None:
    assert outside("deploy.md", "../deploy/compose/bench/README.md") == "deploy/compose/bench/README.md"
    assert outside("detectors/conflict.md", "../../CHANGELOG.md#x") == "CHANGELOG.md#x"
    assert outside("detectors/conflict.md", "../mqtt.md") == ""
    assert repository().startswith("https://")


def test_every_page_is_in_the_navigation() -> None:
    def files(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        else:
            for each in part.values() if isinstance(part, dict) else part:
                yield from files(each)

    listed = list(files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_lists_and_tables_begin_after_an_empty_line() -> None:
    """The site's Markdown shows them as one paragraph otherwise; the repository's does not."""
    begins, goes_on = re.compile(r"- |\* |1\. |\|"), re.compile(r"- |\* |\d+\. |\||  |#|<!--|$")
    for path in DOCS.rglob("*.md"):
        text = re.sub(r"(?ms)^ *```.*?^ *```", "", path.read_text())
        lines = text.split("\n")
        for before, line in pairwise(lines):
            assert not begins.match(line) or goes_on.match(before), f"{path.name}: {line}"


def test_a_table_has_a_head() -> None:
    """Rows after an empty line are shown as they stand otherwise."""
    for path in DOCS.rglob("*.md"):
        lines = path.read_text().split("\n")
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
            assert before or not line.startswith("|") or after.startswith("|--"), f"{path.name}: {line}"


def test_what_belongs_to_an_entry_of_a_list_is_indented_by_four() -> None:
    """With less it ends the list on the site, and the next number is 1 again."""
    for path in DOCS.rglob("*.md"):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            assert not re.match(r" {1,3}```", line), f"{path.name}, line {number}"


def test_code_after_a_list_does_not_become_a_part_of_it() -> None:
    """Indented lines after a list are a paragraph of its last entry: a sentence must come between."""
    fenced = re.compile(r"(?ms)^ *```.*?^ *```")
    for path in DOCS.rglob("*.md"):
        text = fenced.sub(lambda found: "\n" * found[0].count("\n"), path.read_text())
        entry = False
        for number, block in enumerate(re.split(r"\n{2,}", text), 1):
            mistaken = entry and re.match(r" {4}(?! )", block)
            assert not mistaken, f"{path.name}, paragraph {number}: {block[:60]}"
            entry = bool(re.match(r"(?:- |\d+\. )", block)) or (entry and block.startswith("  "))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, made in a namespace without any network."""
    mkdocs = shutil.which("mkdocs", path=f"{Path(sys.executable).parent}") or shutil.which("mkdocs")
    if mkdocs is None:
        pytest.skip("mkdocs is not installed: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("site")
    alone = ["unshare", "--net"] if not subprocess.run(["unshare", "--net", "true"], check=False).returncode else []
    words = [*alone, mkdocs, "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"\nbuilt {'without network' if alone else 'with the network there'}")
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """Its address on this machine."""
    with serve(site) as address:
        yield address


@pytest.mark.long
@pytest.mark.parametrize("size", list(SIZES))
def test_every_page_is_whole_in_a_browser(site: Path, served: str, browser: Any, size: str) -> None:
    """No console error, no missing picture, nothing wider than the screen, and nothing fetched from elsewhere."""
    width, height = SIZES[size]
    found: list[str] = []
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    with browser.new_page(viewport={"width": width, "height": height}) as page:
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda r: said.append(f"fetched {r.url}") if not r.url.startswith((served, "data:")) else None
        )
        for path in pages:
            said.clear()
            page.goto(f"{served}/{path.relative_to(site)}")
            found += [f"{path.relative_to(site)}: {words}" for words in [*said, *page.evaluate(WRONG)]]
    print(f"\n{len(pages)} pages at {width} px")
    assert len(pages) > 60
    assert found == []


@pytest.mark.long
def test_the_search_finds_words_of_the_pages(served: str, browser: Any) -> None:
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{served}/index.html")
        page.keyboard.press("f")
        page.keyboard.type("autosave_interval", delay=20)
        page.wait_for_selector(".md-search-result__item", timeout=20_000)
        assert "MQTT" in page.inner_text(".md-search-result__list")
