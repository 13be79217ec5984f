"""What every adapter must do, whoever wrote it: those of other installed packages are found and tested too.

Declared pages exist, settings are explained, the declared sample gives the same batches however it is cut, and garbage
is counted and never raises.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchkeeper.config.adapters import source_types
from watchkeeper.config.loader import load
from watchkeeper.config.reference import reference_markdown, toml_value
from watchkeeper.config.section import columns
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.base import AdapterDeclaration, Feed, Way, resolve
from watchkeeper.streams.adapters.catalog import discover
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.logs.chunks import join

from where import DOCS

EVERY = list(discover().values())
LIVE = [adapter for adapter in EVERY if adapter.settings is not None]
NOW = 1_709_294_400.0
every_adapter = pytest.mark.parametrize("adapter", EVERY, ids=lambda adapter: adapter.name)
every_live_adapter = pytest.mark.parametrize("adapter", LIVE, ids=lambda adapter: adapter.name)


def sample_source(adapter: AdapterDeclaration, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The source of the declared sample, read from a configuration file; the files that it names are there."""
    assert adapter.sample is not None
    monkeypatch.chdir(folder)
    for name, text in adapter.sample.files.items():
        (folder / name).write_text(text)
    lines = [f"{key} = {toml_value(value)}" for key, value in {"type": adapter.name, **adapter.sample.settings}.items()]
    file = folder / "watchkeeper.toml"
    file.write_text("\n".join(["[[sources]]", *lines]))
    [source] = load(file, env={}).sources
    return source


def fresh(adapter: AdapterDeclaration, source: Any) -> Feed:
    try:
        # what it needs besides is for the connection
        return resolve(adapter.feed)(**{key: getattr(source, key) for key in adapter.takes})
    except ModuleNotFoundError as missing:
        pytest.skip(f"needs {adapter.extra}: {missing}")


def pushed(feed: Feed, pieces: Iterable[bytes]) -> Batch | None:
    parts = []
    for piece in pieces:
        feed.push(piece, NOW)
        parts.append(feed.take())
    feed.close()
    parts.append(feed.take())
    there = [part for part in parts if part is not None and len(part)]
    return join(there) if there else None


def written(batch: Batch | None) -> Any:
    """A batch as plain values, NaN as None."""
    assert batch is not None
    kinds = {
        kind.word: {
            "id": [batch.ids[vid] for vid in cols.vid],
            "t": cols.t.tolist(),
            "data": [[None if x != x else x for x in row] for row in cols.data.tolist()],
            "via": [batch.vias[via] if via >= 0 else None for via in cols.via],
        }
        for kind, cols in batch.kinds.items()
    }
    return kinds, batch.callsigns


@every_adapter
def test_its_page_exists_and_the_index_and_the_help_name_it(
    adapter: AdapterDeclaration, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapter.docs.startswith("https://") or (DOCS / adapter.docs).is_file()
    with pytest.raises(SystemExit):
        main(["adapters", "--help"])
    assert adapter.name in capsys.readouterr().out.replace(",", " ").split()
    assert main(["adapters", adapter.name, "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)[adapter.name]["help"] == adapter.help


@every_adapter
def test_its_readers_are_there_and_files_can_be_told(adapter: AdapterDeclaration) -> None:
    for known in adapter.formats:
        assert callable(resolve(known.reader))
        assert known.suffixes or known.magic


@every_live_adapter
def test_each_of_its_settings_has_a_reason_and_is_in_the_reference(adapter: AdapterDeclaration) -> None:
    assert adapter.settings is not None
    assert source_types()[adapter.name] is adapter.settings
    heading = f'### `[[sources]]` with `type = "{adapter.name}"`'
    chapter = reference_markdown().partition(heading)[2].partition("\n#")[0]
    for setting in columns(adapter.settings):
        assert setting.reason
        assert f"| `{setting.key}` |" in chapter
    assert "password" not in adapter.settings.__struct_fields__ or any(s.secret for s in columns(adapter.settings))


@every_live_adapter
def test_its_sample_is_a_source_that_the_daemon_can_read(
    adapter: AdapterDeclaration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sample_source(adapter, tmp_path, monkeypatch)
    assert adapter.way_of(source.url) in adapter.ways
    try:
        LiveSource(source, load(None, env={}), lambda *_: None)
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))


@every_live_adapter
def test_its_sample_gives_the_same_batches_however_it_is_cut(
    adapter: AdapterDeclaration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert adapter.sample is not None
    source, data = sample_source(adapter, tmp_path, monkeypatch), adapter.sample.data
    feed = fresh(adapter, source)
    whole = pushed(feed, [data])
    assert not feed.refused.total()
    assert whole is not None
    checked(whole, lambda kind, reason, _n: pytest.fail(f"{kind.word}: {reason}"))
    if adapter.ways == (Way.DOCUMENT,):
        return  # documents come whole
    for size in (1, 7):
        feed = fresh(adapter, source)
        pieces = pushed(feed, (data[at : at + size] for at in range(0, len(data), size)))
        assert written(pieces) == written(whole)
        assert not feed.refused.total()


@every_live_adapter
def test_garbage_is_counted_and_never_raises(
    adapter: AdapterDeclaration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert adapter.sample is not None
    source, data = sample_source(adapter, tmp_path, monkeypatch), adapter.sample.data
    noise = random.Random(1).randbytes(20_000)
    damaged = bytearray(data * 20)
    for at in range(0, len(damaged), 11):
        damaged[at] ^= 0x55
    for garbage in (noise, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 40, b"\0" * 5000, b"\n{" * 500, bytes(damaged)):
        for size in (1, 7, len(garbage)):
            feed = fresh(adapter, source)
            pushed(feed, (garbage[at : at + size] for at in range(0, len(garbage), size)))
            assert feed.refused.total(), garbage[:20]
