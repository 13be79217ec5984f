"""An adapter from another package: its source, files, references and conformance, from outside."""

from __future__ import annotations

import json

from where import DOCS, ROOT

CLI = ("-m", "watchkeeper.daemon.cli")
MODULE = ROOT / "examples/watchkeeper-example/src/watchkeeper_example/gliders.py"
TABLE = '[[sources]]\ntype = "gliders"\nurl = "udp://127.0.0.1:4711"\n'


def test_the_page_on_writing_one_has_the_same_module():
    assert f"```python\n{MODULE.read_text()}```" in (DOCS / "adapters/writing-an-adapter.md").read_text()


def test_its_source_is_checked(run, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(TABLE + "field_alt_m = 120\n")
    assert "field_alt_m = 120.0  # m" in run(*CLI, "check-config", "--show", file).stdout
    file.write_text(TABLE + "field_alt = 120\nperiod_s = 1\n")
    wrong = run(*CLI, "check-config", file, code=78).stdout
    assert "did you mean: sources[0].field_alt_m" in wrong
    assert 'no such key for type "gliders", only for "readsb", "opensky", "bluesky"' in wrong
    file.write_text('[[sources]]\ntype = "glider"\n')
    assert 'did you mean: "gliders"' in run(*CLI, "check-config", file, code=78).stdout


def test_its_files_are_logs(run, tmp_path):
    lines = (f"{1_709_294_400 + k};D-1234;{50 + 0.0003 * k:.4f};8.0;700\n" for k in range(60))
    (tmp_path / "sunday.gliders").write_text("".join(lines))
    run(*CLI, "convert", "sunday.gliders", "sunday.wklog")
    assert json.loads(run(*CLI, "info", "sunday.wklog", "--json").stdout)["samples"] == 60
    run(*CLI, "replay", "sunday.gliders", "--alarms", "alarms.jsonl")


def test_it_is_in_the_references(run):
    listed = json.loads(run(*CLI, "adapters", "gliders", "--json").stdout)["gliders"]
    assert "field_alt_m" in {setting["key"] for setting in listed["settings"]}
    assert '### `[[sources]]` with `type = "gliders"`' in run("-m", "watchkeeper.config.reference").stdout
    assert "| [gliders](https://" in run("-m", "watchkeeper.streams.adapters.reference").stdout


def test_the_conformance_tests_find_it(run):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance/test_every_adapter.py", "-k", "gliders")
    assert "6 passed" in run(*words, cwd=ROOT).stdout
