"""`watchkeeper bench modes`: how fast raw Mode S becomes samples, against pyModeS in the same run if it is installed.

The frames are those of a real flight that `make data` brings, as a receiver sends them: Beast binary in pieces of 64
kB. The rates are frames per second of processor time. pyModeS is GPL and no part of this project: give its folder in
PYTHONPATH to have the comparison.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from watchkeeper.streams.adapters.receivers.frames import TICKS_PER_S
from watchkeeper.streams.adapters.receivers.modes import Beast
from watchkeeper.streams.adapters.receivers.squitter import decoded
from watchkeeper.streams.foreign.decode import from_json

FLIGHT = Path("data/adsb/traffic/data/samples/rs1090/full_flight_short.jsonl")
PIECE_BYTES = 1 << 16


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench modes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="the median of so many (5)")
    parser.add_argument("--frames", type=Path, default=FLIGHT, metavar="JSONL", help="frames as rs1090 writes them")
    args = parser.parse_args(argv)
    if not args.frames.exists():
        print(f"no {args.frames}: run `make data`")
        return 1
    messages = [from_json(line) for line in args.frames.read_bytes().splitlines()]
    squitter = [(m["frame"], m["timestamp"]) for m in messages if m["df"] in ("17", "18")]
    every = [(m["frame"], m["timestamp"]) for m in messages]
    # a rate of nothing but what is compiled already
    _samples(_beast(every[:100]))
    streams = _beast(squitter), _beast(every)
    runs: list[tuple[str, int, Callable[[], object]]] = [
        ("rs1090, extended squitter", len(squitter), lambda: decoded([frame for frame, _ in squitter])),
        ("Beast to samples, extended squitter", len(squitter), lambda: _samples(streams[0])),
        ("Beast to samples, all formats", len(every), lambda: _samples(streams[1])),
    ]
    try:
        pymodes = importlib.import_module("pyModeS")
    except ModuleNotFoundError:
        print("pyModeS is not installed: no comparison")
    else:
        runs.insert(0, ("pyModeS, extended squitter", len(squitter), lambda: _theirs(pymodes.PipeDecoder(), squitter)))
    # rounds in turn, so that another program's load meets all of them
    took: dict[str, list[float]] = {name: [] for name, _, _ in runs}
    for _ in range(args.rounds):
        for name, _, run in runs:
            began_s = time.process_time()
            run()
            took[name].append(time.process_time() - began_s)
    base = runs[0][1] / median(took[runs[0][0]])
    for name, count, _ in runs:
        rate = count / median(took[name])
        print(f"{name:38} {rate:10,.0f} frames/s  {rate / base:5.2f}x")
    return 0


def _beast(frames: list[tuple[str, float]]) -> bytes:
    began = frames[0][1]
    out = bytearray()
    for frame, t in frames:
        raw = int((t - began) * TICKS_PER_S).to_bytes(6, "big") + b"\x20" + bytes.fromhex(frame)
        out += (b"\x1a3" if len(frame) == 28 else b"\x1a2") + raw.replace(b"\x1a", b"\x1a\x1a")
    return bytes(out)


def _samples(data: bytes) -> int:
    feed, samples = Beast(), 0
    for at in range(0, len(data), PIECE_BYTES):
        feed.push(data[at : at + PIECE_BYTES], math.nan)
        samples += len(feed.take() or ())
    return samples


def _theirs(decoder: object, frames: list[tuple[str, float]]) -> None:
    decode = decoder.decode  # type: ignore[attr-defined]
    for frame, t in frames:
        decode(frame, timestamp=t)
