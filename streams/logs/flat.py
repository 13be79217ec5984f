"""A batch as one table: a row per sample in order of arrival, a column per field of any kind, absent values NaN.

    columns_in_use(batches)      which of the columns a log fills
    Flattener().flatten(batch)   the table of a batch

The columns are those of CSV logs (csv_table.py), of frames (streams/frames/) and of the Parquet files that we write:
`t`, `id`, `kind`, `via`, `callsign`, `signal` and the fields of messages.py. A field that two kinds have, such as
`lat`, is one column. `signal` is the name of a signal, whose value is in `value`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.messages import FIELDS, SIGNAL, Field, Kind
from watchkeeper.streams.signals import names_in

# In the order in which they are written; the texts may be absent.
ALWAYS, TEXTS = ("t", "id", "kind"), ("via", "callsign", "signal")
# Every field once, in the order of the kinds.
EVERY_FIELD: dict[str, Field] = {}
for _kind in Kind:
    # a signal's name is a text
    for _field in FIELDS[_kind] if _kind is not Kind.SIGNAL else FIELDS[_kind][: SIGNAL.name_0]:
        EVERY_FIELD.setdefault(_field.name, _field)
EVERY_COLUMN: tuple[str, ...] = (*ALWAYS, *TEXTS, *EVERY_FIELD)


@dataclass(frozen=True, slots=True)
class Flat:
    """Rows of a table. `fields` has the fields of the kinds that occur; no text is None."""

    t: F8
    id: list[str]
    kind: list[str]
    via: list[str | None]
    callsign: list[str | None]
    signal: list[str | None]
    fields: dict[str, F8]


class Flattener:
    """Makes tables of a log's batches, one after the other: a callsign holds until there is another one."""

    def __init__(self) -> None:
        self._callsigns: dict[str, str] = {}

    def flatten(self, batch: Batch) -> Flat:
        """The samples in order of arrival."""
        batch = numbered(batch)
        n = len(batch)
        hear(batch, self._callsigns)
        texts = {column: np.full(n, None, object) for column in ("id", "kind", *TEXTS)}
        # the last one is for samples that came directly: their number is -1
        ids, vias = np.array([*batch.ids, None], object), np.array([*batch.vias, None], object)
        signs = np.array([*map(self._callsigns.get, batch.ids), None], object)
        t = np.empty(n)
        fields: dict[str, F8] = {}
        for kind, cols in sorted(batch.kinds.items()):
            rows = cols.seq
            t[rows] = cols.t
            texts["kind"][rows] = kind.word
            texts["id"][rows], texts["callsign"][rows] = ids[cols.vid], signs[cols.vid]
            texts["via"][rows] = vias[cols.via]
            if kind is Kind.SIGNAL:
                texts["signal"][rows] = names_in(cols.data[SIGNAL.name_0 :])
            for field, column in _numbers(kind, cols.data):
                fields.setdefault(field.name, np.full(n, np.nan))[rows] = column
        lists = {column: cells.tolist() for column, cells in texts.items()}
        return Flat(t, lists["id"], lists["kind"], lists["via"], lists["callsign"], lists["signal"], fields)


def _numbers(kind: Kind, data: F8) -> Iterable[tuple[Field, F8]]:
    """The fields that are numbers to a reader, with their columns."""
    return ((field, column) for field, column in zip(FIELDS[kind], data, strict=True) if field.name in EVERY_FIELD)


def columns_in_use(batches: Iterable[Batch]) -> tuple[str, ...]:
    """The columns that a log fills in at least one row, in their order."""
    used = set(ALWAYS)
    for batch in batches:
        if any(batch.callsigns.values()):
            used.add("callsign")
        for kind, cols in batch.kinds.items():
            if "via" not in used and (cols.via >= 0).any():
                used.add("via")
            if kind is Kind.SIGNAL and len(cols):
                used.add("signal")
            for field, column in _numbers(kind, cols.data):
                if field.name not in used and not np.isnan(column).all():
                    used.add(field.name)
    return tuple(column for column in EVERY_COLUMN if column in used)


def hear(batch: Batch, callsigns: dict[str, str]) -> None:
    """Keep the last callsign of each vehicle."""
    callsigns.update({name: sign for name, sign in batch.callsigns.items() if sign})
