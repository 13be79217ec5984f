"""Samples of a log as plain rows, for tests that compare logs with what other programs read of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.daemon.cli import main
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.logs.flat import hear
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import FIELDS, Kind

Row = dict[str, Any]
ODD_NAMES = ["a", "B<&>\"'", 'say "hi", you', "ü/+#~ 1", "x" * 64]


def rows_of(batches: Iterable[Batch]) -> list[Row]:
    """Each sample in order of arrival: t, id, kind and whatever it has besides; what is absent is not in it."""
    found: list[Row] = []
    callsigns: dict[str, str] = {}
    for batch in batches:
        hear(batch, callsigns)
        numbered: dict[int, Row] = {}
        for kind, cols in batch.kinds.items():
            for i, seq in enumerate(cols.seq.tolist()):
                name = batch.ids[cols.vid[i]]
                row: Row = {"t": float(cols.t[i]), "id": name, "kind": kind.word}
                if cols.via[i] >= 0:
                    row["via"] = batch.vias[cols.via[i]]
                if name in callsigns:
                    row["callsign"] = callsigns[name]
                values = zip(FIELDS[kind], cols.data[:, i].tolist(), strict=True)
                numbered[seq] = row | {field.name: x for field, x in values if not np.isnan(x)}
        found += [numbered[seq] for seq in sorted(numbered)]
    return found


def log_rows(path: Path) -> list[Row]:
    return rows_of(open_log(path).batches())


def filled(record: Row) -> Row:
    """A row of another program's table without what it says is absent: None or NaN."""
    return {key: x for key, x in record.items() if x is not None and x == x}


def converted(source: Path, out: Path, *words: str) -> Path:
    assert main(["convert", str(source), str(out), *map(str, words)]) == 0
    return out


def simulated(path: Path, scenario: str = "mixed", *, vehicles: int = 12, seconds: int = 20) -> Path:
    words = ["simulate", scenario, "--vehicles", str(vehicles), "--seconds", str(seconds), "--out", str(path)]
    assert main(words) == 0
    return path


def odd_log(path: Path) -> Path:
    """Names with marks, gateways, callsigns, absent values, two legs, the antimeridian, and times of a simulation."""
    n = 10
    t = np.array([0.1, 0.2, 1 / 3, 4.0, 5.0, 1000.0, 1001.000001, 1002.5, 1003.0, 1004.0])
    fields = {
        "lat": np.linspace(-10.0, -9.0, n),
        "lon": np.array([179.0, 179.3, 179.6, 179.9, -179.8, -179.5, -179.2, -178.9, -178.6, -178.3]),
        "alt_ft": np.where(np.arange(n) % 4 == 3, np.nan, 1000.0 / 3),
        "gs_kt": np.full(n, 0.0),
    }
    every = np.concatenate([t + 1e-3 * k for k in range(len(ODD_NAMES))])
    vid = np.repeat(np.arange(len(ODD_NAMES)), n).astype(np.int32)
    via = np.where(np.arange(len(every)) % 3 == 0, 0, -1).astype(np.int32)
    cols = columns_of(
        Kind.ADSB, vid, every, {name: np.tile(column, len(ODD_NAMES)) for name, column in fields.items()}, via=via
    )
    with LogWriter(path) as writer:
        writer.write(Batch(ODD_NAMES, {Kind.ADSB: cols}, ['gw "1", <x>'], {ODD_NAMES[1]: "DLH<1>&"}))
    return path
