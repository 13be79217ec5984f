"""Size and reading speed of a recorded log: what `.wklog` does to numbers, beside general compressors.

    watchkeeper bench logs [LOG ...] [--rounds 5]

Each log is cut into frames as the writer does. Every way packs all frames, and then reads them back in turns with the
others, checksum included; times are medians over the rounds. `shuffled` means that the first bytes of all numbers come
first, then the second ones, and so on, which is what makes columns of doubles compressible. Ways that need a package
which is not installed are left out. Without a log, simulated ones are measured.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import numbered, rechunk
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wkframe import Header, decode_data, encode_data, our_columns
from watchkeeper.streams.logs.wklog import FRAME_SAMPLES
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.simulate import simulate

SIMULATED = {"drones": 4, "random": 100}
SECONDS = 120.0
Bytes = bytes | memoryview


@dataclass(slots=True)
class Way:
    """One way to write a frame; `rates` are samples read per second, one for each round."""

    name: str
    pack: Callable[[Batch], bytes]
    unpack: Callable[[bytes], Bytes]
    frames: list[tuple[bytes, int]] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench logs", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG", help="any log that `replay` reads")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    for path in args.logs:
        _measure(path.name, list(rechunk(open_log(path).batches(), FRAME_SAMPLES)), args.rounds)
    for scenario, vehicles in {} if args.logs else SIMULATED.items():
        made = simulate(scenario, seconds=SECONDS, vehicles=vehicles).batches()
        _measure(f"simulated {scenario}", list(rechunk(made, FRAME_SAMPLES)), args.rounds)
    return 0


def _measure(title: str, frames: list[Batch], rounds: int) -> None:
    samples = sum(map(len, frames))
    present = [kind for kind in Kind if any(kind in batch.kinds for batch in frames)]
    kinds = ", ".join(f"{sum(len(b.kinds[k]) for b in frames if k in b.kinds):,} {k.word}" for k in present)
    print(f"\n{title}: {samples:,} samples ({kinds})")
    ways = list(_ways())
    for way in ways:
        way.frames = [(raw := way.pack(numbered(batch)), zlib.crc32(raw)) for batch in frames]
    for _ in range(rounds):
        for way in ways:
            began = time.perf_counter()
            _read(way)
            way.rates.append(samples / (time.perf_counter() - began))
    print(f"{'':28}{'bytes a sample':>15}{'million samples/s':>20}")
    for way in ways:
        size = sum(len(raw) for raw, _ in way.frames) / samples
        least, middle, most = (rate / 1e6 for rate in (min(way.rates), median(way.rates), max(way.rates)))
        print(f"{way.name:28}{size:15.1f}{middle:12.1f} ({least:.1f} to {most:.1f})")
    by_kind = ", ".join(f"{kind.word} {_packed_bytes(frames, kind):.1f}" for kind in present)
    print(f"packed, bytes a sample by itself: {by_kind}")


def _packed_bytes(frames: list[Batch], kind: Kind) -> float:
    """Bytes a sample of one kind takes, with the names and codes of its frames."""
    alone = [numbered(batch.having({kind: batch.kinds[kind]})) for batch in frames if kind in batch.kinds]
    return sum(len(encode_data(batch, packed=True)) for batch in alone) / sum(map(len, alone))


def _read(way: Way) -> None:
    columns = our_columns(Header(1, {kind.word: [(f.name, f.unit) for f in FIELDS[kind]] for kind in Kind}))
    for raw, crc in way.frames:
        if zlib.crc32(raw) != crc:
            raise AssertionError(way.name)
        decode_data(_aligned(way.unpack(raw)), columns)


def _ways() -> Iterator[Way]:
    def same(raw: bytes) -> bytes:
        return raw

    yield Way("as they are (version 1)", encode_data, same)
    yield Way("packed (version 2)", lambda batch: encode_data(batch, packed=True), same)
    yield _compressed("deflate 1, shuffled", lambda raw: zlib.compress(raw, 1), zlib.decompress)
    with suppress(ImportError):
        from backports import zstd  # noqa: PLC0415

        yield _compressed("zstd 3, shuffled", lambda raw: zstd.compress(raw, 3), zstd.decompress)
    with suppress(ImportError):
        from lz4 import frame  # noqa: PLC0415

        yield _compressed("lz4, shuffled", frame.compress, frame.decompress)


def _compressed(name: str, compress: Callable[[bytes], bytes], decompress: Callable[[bytes], bytes]) -> Way:
    return Way(name, lambda batch: compress(_shuffled(encode_data(batch))), lambda raw: _in_order(decompress(raw)))


def _shuffled(payload: bytes) -> bytes:
    """The arrays are at the end of a payload: fill it up in front."""
    filled = bytes(-len(payload) % 8) + payload
    lead = len(filled) - len(payload)
    return bytes([lead]) + np.frombuffer(filled, np.uint8).reshape(-1, 8).T.tobytes()


def _in_order(raw: bytes) -> memoryview:
    payload = np.frombuffer(raw, np.uint8, offset=1).reshape(8, -1).T.tobytes()
    return memoryview(payload)[raw[0] :]


def _aligned(raw: Bytes) -> memoryview:
    """As the reader gets a payload from its file."""
    lead = -len(raw) % 8
    room = memoryview(np.empty((lead + len(raw)) // 8).view(np.uint8))[lead:]  # type: ignore[arg-type]
    room[:] = raw
    return room


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
