"""The adapter of docs/adapters/writing-an-adapter.md works as the page says, and the index has every adapter."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchkeeper.config.loader import load
from watchkeeper.config.reference import reference_markdown
from watchkeeper.daemon.background import end
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.reference import adapters_markdown
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Kind

from guest_package import install, look_again
from where import DOCS, ROOT

PAGE = (DOCS / "adapters/writing-an-adapter.md").read_text()
PYTHON, PROJECT, TABLE = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE, re.DOTALL)
LINE = b"%.1f;D-1234;50.0;8.0;700\n"


@pytest.fixture(autouse=True)
def gliders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    project = tomllib.loads(PROJECT)["project"]
    [(group, points)] = project["entry-points"].items()
    names = {name: where.partition(":")[2] for name, where in points.items()}
    install(tmp_path, monkeypatch, project["name"], PYTHON, group, **names)
    yield tmp_path
    look_again()


def test_the_index_is_fresh_and_has_an_installed_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "| [gliders](https://example.org/watchkeeper-gliders) | gliders of a field"
    assert row in adapters_markdown()
    monkeypatch.undo()
    look_again()
    # when this fails: python -m watchkeeper.streams.adapters.reference > docs/adapters/README.md
    assert (DOCS / "adapters/README.md").read_text() == adapters_markdown()


def test_its_table_in_the_configuration_is_checked_and_documented(
    gliders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = gliders / "my.toml"
    file.write_text(TABLE)
    assert main(["check-config", str(file)]) == 0
    file.write_text(TABLE.replace("field_alt_m = 120", "field_alt_m = 9000"))
    assert main(["check-config", str(file)]) == os.EX_CONFIG
    assert "-500 to 5000 m" in capsys.readouterr().out
    [row] = [line for line in reference_markdown().splitlines() if line.startswith("| `field_alt_m` |")]
    assert "| -500 to 5000 | m |" in row


def test_its_files_are_logs(gliders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = gliders / "sunday.gliders"
    recording.write_bytes(b"".join(LINE % (1_709_294_400 + k) for k in range(10)) + b"noise\n")
    assert main(["convert", str(recording), str(gliders / "sunday.wklog")]) == 0
    assert [len(batch) for batch in open_log(gliders / "sunday.wklog").batches()] == [10]
    assert main(["info", str(recording)]) == 0
    assert "1 messages not used (1 malformed)" in capsys.readouterr().out


def test_it_is_a_live_source(gliders: Path) -> None:
    port = free_port()
    (gliders / "my.toml").write_text(TABLE.replace("0.0.0.0:4711", f"127.0.0.1:{port}"))
    config = load(gliders / "my.toml", env={})
    [settings] = config.sources

    async def scenario() -> LiveSource:
        live = LiveSource(settings, config, lambda *_: None)
        task = asyncio.create_task(live.run())
        async with asyncio.timeout(20):
            while not live.samples:
                sender, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                    asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port)
                )
                sender.sendto(LINE % 1_709_294_400)
                await asyncio.sleep(0.02)
                sender.close()
        await end(task)
        return live

    live = asyncio.run(scenario())
    assert live.samples >= 1
    assert not live.refused


def test_its_settings_reach_the_feed(gliders: Path) -> None:
    (gliders / "x.gliders").write_bytes(LINE % 1_709_294_400)
    [batch] = open_log(gliders / "x.gliders").batches()
    assert batch.kinds[Kind.ADSB].data[COLUMN[Kind.ADSB]["alt_ft"]] == pytest.approx([700 / 0.3048])


def test_the_conformance_tests_find_it(gliders: Path) -> None:
    path = os.pathsep.join((str(gliders), str(ROOT / "src")))
    tests = str(ROOT / "tests/conformance/test_every_adapter.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "gliders", tests],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
