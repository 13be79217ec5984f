"""Every shell block of the pages that a newcomer reads is run as it stands, each page in one shell, or says why not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mqtt_clients import need_mosquitto

from tests.daemon.conftest import RunningBroker
from tests.docs import extras, typed
from tests.docs.blocks import Block, blocks_of
from tests.docs.sample_files import STAND_INS, make_files
from watchkeeper.daemon.demo.broker import SBIN, free_port

from where import DOCS, ROOT

PAGES = [
    ROOT / "README.md",
    DOCS / "quickstart.md",
    DOCS / "replay.md",
    DOCS / "report.md",
    *sorted((DOCS / "adapters").glob("*.md")),
]
SHELL_BLOCKS = {str(page.relative_to(ROOT)): [b for b in blocks_of(page) if b.is_shell] for page in PAGES}
QUICK = [name for name, blocks in SHELL_BLOCKS.items() if any(not b.not_run and not b.long for b in blocks)]
LONG = [name for name, blocks in SHELL_BLOCKS.items() if any(b.long for b in blocks)]
# A session that takes longer will not end any more.
SESSION_S = 300
# After each block: a daemon that was started in the background has come to listen. At the end all of them go.
PROLOGUE = """\
settle() {
  for _ in $(seq 600); do
    listening=$(cat run-*.log 2>/dev/null | grep -c "connected to the broker" || true)
    [ "$listening" -ge "$1" ] && return
    sleep 0.1
  done
  return 1
}
leave() {
  code=$?
  kill $(jobs -p) 2>/dev/null || true
  wait || true
  exit $code
}
trap leave EXIT
"""


@dataclass
class Session:
    """What a shell said."""

    code: int
    out: str
    err: str


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    """For pages that presume one."""
    running = RunningBroker()
    yield running
    running.close()


def programs(folder: Path) -> Path:
    """`watchkeeper`, `pip` and `pytest` of the environment that runs the tests."""
    folder.mkdir()
    own = {"watchkeeper": typed.__file__, "pip": extras.__file__}
    lines = {name: f'exec "{sys.executable}" "{file}" "$@"' for name, file in own.items()}
    lines["pytest"] = f'cd "{ROOT}" && exec "{sys.executable}" -m pytest -p no:cacheprovider "$@"'
    for name, line in lines.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


def typed_in(block: Block) -> str:
    """A block's commands. The output behind a prompt is kept; a command that shows our complaint is meant to fail."""
    if not block.shown:
        return block.text
    lines = [
        f"{'! ' if output[:1] and output[0].startswith('watchkeeper: ') else ''}{command} > {said(block, i)} 2>&1"
        for i, (command, output) in enumerate(block.shown)
    ]
    return "\n".join(lines)


def said(block: Block, i: int) -> str:
    """The file with the output of the command behind prompt number i."""
    return f"said-{block.line}-{i}.txt"


def compare(block: Block, folder: Path) -> None:
    """What the page shows is what was said; … ends a line that goes on."""
    for i, (command, output) in enumerate(block.shown):
        if any(name in command for name in STAND_INS):
            continue
        lines = [line.rstrip() for line in (folder / said(block, i)).read_text().splitlines() if line.strip()]
        assert len(lines) == len(output), (command, lines)
        for shown, line in zip(output, lines, strict=True):
            assert line.startswith(shown[:-1]) if shown.endswith("…") else line == shown, (command, shown, line)


def run_page(name: str, blocks: list[Block], folder: Path, port: int) -> Session:
    """All blocks of a page in one bash, in a folder with the files that the page names."""
    make_files(name, folder)
    for link in ("config", "examples"):
        (folder / link).symlink_to(ROOT / link)
    (folder / ".config").mkdir()
    for client in ("mosquitto_pub", "mosquitto_sub"):
        (folder / ".config" / client).write_text(f"-p {port}\n")
    script, daemons = PROLOGUE, 0
    for block in blocks:
        daemons += len(re.findall(r"^watchkeeper run .*&", block.text, re.MULTILINE))
        script += f"# {name}:{block.line}\n{typed_in(block)}\nsettle {daemons}\n"
    # the ports of the pages may be taken on this machine
    script = script.replace("1883", str(port)).replace("9108", str(free_port()))
    env = {key: value for key, value in os.environ.items() if not key.startswith("WATCHKEEPER_")} | {
        "PATH": os.pathsep.join((str(programs(folder / "bin")), os.environ["PATH"], SBIN)),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(folder / "site"))),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "WATCHKEEPER_BROKER__URL": f"mqtt://127.0.0.1:{port}",
        "WATCHKEEPER_HTTP__PORT": str(free_port()),
    }
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script], cwd=folder, env=env, capture_output=True, text=True,
        timeout=SESSION_S, check=False,
    )  # fmt: skip
    logs = "".join(path.read_text() for path in sorted(folder.glob("run-*.log")))
    return Session(done.returncode, done.stdout, done.stderr + logs)


def port_for(blocks: list[Block], broker: RunningBroker) -> int:
    """A page may start the broker itself."""
    return free_port() if any("mosquitto -p" in block.text for block in blocks) else broker.port


def test_the_pages_have_blocks() -> None:
    assert len(PAGES) > 10
    assert {"README.md", "docs/quickstart.md", "docs/replay.md", "docs/adapters/px4.md"} <= set(QUICK)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_that_is_not_run_gives_a_reason_and_no_block_is_passed_over(page: Path) -> None:
    for block in blocks_of(page):
        if block.not_run or block.long:
            assert block.is_shell, f"{page}:{block.line}: a remark for a block that nobody types"
        # a prompt or a command further down in what looks like output
        if not block.is_shell and not block.language:
            assert "\nwatchkeeper " not in f"\n{block.text}", f"{page}:{block.line}"


@need_mosquitto
@pytest.mark.parametrize("page", QUICK)
def test_every_shell_block_of_a_page_runs(page: str, tmp_path: Path, broker: RunningBroker) -> None:
    blocks = [block for block in SHELL_BLOCKS[page] if not block.not_run and not block.long]
    session = run_page(page, blocks, tmp_path, port_for(blocks, broker))
    assert session.code == 0, f"{session.out[-3000:]}\n{session.err[-6000:]}"
    for block in blocks:
        compare(block, tmp_path)
    if any("meet.sh" in block.text or "telemetry/adsb/east" in block.text for block in blocks):
        # the subscriber of the page has heard the alarm of its two aircraft
        assert '"state":"raised"' in session.out, session.err[-6000:]
        assert "watchkeeper/alarm/conflict/east~west" in session.out


@need_mosquitto
@pytest.mark.long
@pytest.mark.parametrize("page", LONG)
def test_every_shell_block_of_a_page_runs_the_long_ones_too(page: str, tmp_path: Path, broker: RunningBroker) -> None:
    blocks = [block for block in SHELL_BLOCKS[page] if not block.not_run]
    session = run_page(page, blocks, tmp_path, port_for(blocks, broker))
    assert session.code == 0, f"{session.out[-3000:]}\n{session.err[-6000:]}"


def test_the_quick_start_shows_the_example_as_it_is() -> None:
    assert f"```sh\n{(ROOT / 'examples/meet.sh').read_text()}```" in (DOCS / "quickstart.md").read_text()


def test_a_block_is_found_in_every_form(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text\n\n    watchkeeper info x\n\n    watchkeeper info y\n\nText\n    not code\n\n```sh\nls\n```\n\n"
        "<!-- not run: no vehicle -->\n\n    watchkeeper run\n\n- item\n\n      $ watchkeeper info z\n      z: csv\n\n"
        "```toml\n[broker]\n```\n\n    z: csv, 5 bytes\n\n<!-- long: an hour -->\n```\nmake proofs\n```\n"
    )
    found = [(b.text.splitlines()[0], b.is_shell, b.not_run, b.long) for b in blocks_of(page)]
    assert found == [
        ("watchkeeper info x", True, "", ""),
        ("ls", True, "", ""),
        ("watchkeeper run", True, "no vehicle", ""),
        ("$ watchkeeper info z", True, "", ""),
        ("[broker]", False, "", ""),
        ("z: csv, 5 bytes", False, "", ""),
        ("make proofs", True, "", "an hour"),
    ]
    assert shutil.which("bash")
