"""Plays seeds and says what came of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.interpose import interposed, stage
from chaos.verdict import judge
from chaos.world import World

Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """One seed, and what was wrong in its world."""

    seed: int
    faults: tuple[str, ...]
    problems: list[Problem]
    counts: dict[str, int]
    trace: list[tuple[float, str, str]]


def play_many(seeds: Iterable[int], faults: tuple[str, ...] | None = None) -> list[Result]:
    """These seeds, one after the other."""
    with interposed():
        return [play_one(seed, faults) for seed in seeds]


def play_one(seed: int, faults: tuple[str, ...] | None = None, *, trace: bool = False) -> Result:
    """One seed, where the model is in place already."""
    lines: list[tuple[float, str, str]] = []
    world = World(seed, faults, lines if trace else None)
    with stage(world):
        world.run()
        problems = judge(world)
    assert world.faults is not None
    counts = {
        "starts": world.daemon.starts,
        "messages": sum(map(len, world.messages.values())),
        "publications": len(world.said),
        "disk operations": world.disk.operations,
    }
    return Result(seed, world.faults, problems, counts, lines)
