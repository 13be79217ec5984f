"""The scripts of a page as one: every name once, nothing left to load."""

from __future__ import annotations

import re
from collections import Counter

from watchkeeper.daemon.report.bundle import OWN, SCRIPTS, first, policy, script, style

_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:const|let|function|class) (\[[^\]]*\]|\{[^}]*\}|\w+)", re.M)


def test_no_name_is_given_twice() -> None:
    names = Counter(
        name for path in SCRIPTS for found in _DECLARED.findall(path.read_text()) for name in re.findall(r"\w+", found)
    )
    assert len(names) > 40
    assert [name for name, n in names.items() if n > 1] == []


def test_every_own_script_is_in_it_and_imports_only_what_comes_before() -> None:
    assert {path.name for path in OWN.glob("*.js")} == {p.name for p in SCRIPTS if p.parent == OWN} | {"first.js"}
    before: set[str] = set()
    for path in SCRIPTS:
        asked = re.findall(r"from '([^']+)'", path.read_text())
        assert {(path.parent / name).resolve() for name in asked} <= before, path.name
        before.add(path.resolve())


def test_nothing_is_imported_or_loaded() -> None:
    for code in (script(), first(), style()):
        assert not re.search(
            r"^\s*(?:import|export)\b|@import|\burl\(|https?://(?!www\.w3\.org/)|fetch\(|XMLHttp", code, re.M
        )


def test_the_policy_lets_only_these_scripts_run() -> None:
    said = policy("a", "b")
    assert "default-src 'none'" in said
    assert said.count("'sha256-") == 2
    assert "unsafe-inline" not in said.split("script-src")[1].split(";")[0]
