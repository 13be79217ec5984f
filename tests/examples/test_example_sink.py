"""A sink from another package: its section, its metrics and its conformance, from outside."""

from __future__ import annotations

from where import DOCS, ROOT

CLI = ("-m", "watchkeeper.daemon.cli")
MODULE = ROOT / "examples/watchkeeper-example/src/watchkeeper_example/siren.py"


def test_the_page_on_writing_one_has_the_same_module():
    assert f"```python\n{MODULE.read_text()}```" in (DOCS / "outputs/writing-a-sink.md").read_text()


def test_its_section_is_checked(run, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text("[sinks.siren]\nenabled = true\nport = 7001\n")
    assert "port = 7001" in run(*CLI, "check-config", "--show", file).stdout.split("[sinks.siren]")[1]
    file.write_text("[sinks.siren]\nport = 0\nprot = 1\n")
    wrong = run(*CLI, "check-config", file, code=78).stdout
    assert "sinks.siren.port" in wrong
    assert "did you mean: sinks.siren.port" in wrong


LOOK = """
import asyncio
from prometheus_client.exposition import generate_latest
from watchkeeper.config.guests import discover
from watchkeeper.config.loader import load
from watchkeeper.daemon.app import App
discover()
sinks = {"state_dir": "", "terminal": False, "siren": {"enabled": True, "port": 7001}}
async def main():
    app = App(load(None, env={}, overrides={"sinks": sinks}))
    print(generate_latest(app.metrics.registry).decode())
    app.close()
asyncio.run(main())
"""


def test_its_metrics_appear(run):
    metrics = run("-c", LOOK).stdout
    assert 'watchkeeper_sink_healthy{sink="siren"} 1.0' in metrics
    assert 'watchkeeper_sink_delivered_total{sink="siren"} 0.0' in metrics


def test_the_conformance_tests_find_it(run):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance/test_every_sink.py", "-k", "siren")
    done = run(*words, cwd=ROOT).stdout
    assert int(done.split(" passed")[0].split()[-1]) >= 2
    assert " failed" not in done
