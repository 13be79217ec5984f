"""The functions of the job without a cluster: stopped after any turn and started again, with another number of
operators too, they give the events of one Pipeline, each once."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyflink")

from tests.engines.flink.worlds import everything, of_one_pipeline, written
from watchkeeper.config.flink import Flink
from watchkeeper.config.schema import Config
from watchkeeper.engines.flink.frames import Frames, frame, frame_of
from watchkeeper.engines.flink.front import FrontFunction
from watchkeeper.engines.flink.merge import MergeFunction
from watchkeeper.engines.flink.messages import ONLY, Plan, key_of
from watchkeeper.engines.flink.operators import FleetFunction, VehiclesFunction
from watchkeeper.streams.logs.wkframe import DamageError
from watchkeeper.streams.logs.wklog import LogReader
from watchkeeper.streams.split import BUCKETS

State = dict[tuple[str, int, str], list[Any]]


class Kept:
    """A value or a list in Flink's state, by stage and current key."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name

    @property
    def _values(self) -> list[Any]:
        return self._stage.state.setdefault((self._stage.name, self._stage.key, self._name), [])

    def value(self) -> Any:
        return self._values[0] if self._values else None

    def update(self, value: Any) -> None:
        self._values[:] = [value]

    def add(self, value: Any) -> None:
        self._values.append(value)

    def get(self) -> list[Any]:
        return list(self._values)

    def clear(self) -> None:
        self._values.clear()


class Counter:
    def inc(self, n: int = 1) -> None: ...


class Stage:
    """A function with the state of its stage; also its runtime context, its context and its metrics."""

    def __init__(self, name: str, function: Any, state: State) -> None:
        self.name, self.function, self.state, self.key = name, function, state, ONLY
        function.open(self)

    def get_state(self, descriptor: Any) -> Kept:
        return Kept(self, descriptor.name)

    get_list_state = get_state

    def get_metrics_group(self) -> Stage:
        return self

    def add_group(self, _: str) -> Stage:
        return self

    def gauge(self, _: str, read: Any) -> None:
        read()

    def counter(self, _: str) -> Counter:
        return Counter()

    def get_current_key(self) -> int:
        return self.key

    def take(self, key: int, value: Any) -> list[Any]:
        self.key = key
        return list(self.function.process_element(value, self))


class Job:
    """All stages, with one state."""

    def __init__(self, plan: Plan, paths: tuple[str, ...], state: State) -> None:
        self.plan, self.state = plan, state
        self.front = Stage("front", FrontFunction(plan, paths), state)
        self.vehicles = [Stage("vehicles", VehiclesFunction(plan), state) for _ in range(plan.shards)]
        self.fleet = Stage("fleet", FleetFunction(plan), state)
        self.merge = Stage("merge", MergeFunction(plan), state)

    def take(self, value: Any = 0) -> Iterator[str]:
        for sent in self.front.take(ONLY, value):
            key, message = sent[1] if isinstance(sent, tuple) else sent
            if isinstance(sent, tuple):
                stage = self.fleet
            else:
                group = GROUPS[self.plan.keys.index(key)]
                stage = self.vehicles[group * self.plan.shards // BUCKETS]
            for _, answer in stage.take(key, message):
                yield from self.merge.take(ONLY, answer)


KEYS = key_of(lambda key: key * 7 % BUCKETS)
GROUPS = [key * 7 % BUCKETS for key in KEYS]


def plan(shards: int, **settings: Any) -> Plan:
    settings = {"checkpoint_s": 0.5, "frames": 2} | settings
    return Plan(msgspec.structs.replace(Config(), flink=Flink(**settings)), shards, KEYS)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("log") / "world.wklog", everything(130.0, 30), 512)


@pytest.fixture(scope="module")
def single(log: Path) -> list[str]:
    return [line.decode() for line in of_one_pipeline(log)]


def test_stopped_after_any_turn_and_rescaled(log: Path, single: list[str]) -> None:
    messages = ceil(len(LogReader(log)) / 2)
    shards = random.Random(4)
    job = Job(plan(2), (str(log),), {})
    found: list[str] = []
    saved: tuple[int, State, int] = (0, {}, 0)
    number = failures = 0
    while number <= messages:
        found += job.take()
        number += 1
        if shards.random() < 0.15:
            # a checkpoint, between turns as Flink's barriers are
            saved = number, copy.deepcopy(job.state), len(found)
        elif shards.random() < 0.1:
            failures += 1
            number, state, given = saved
            # a sink that takes part in checkpoints takes back what came after the last one
            del found[given:]
            job = Job(plan(shards.choice([1, 2, 4, 16])), (str(log),), copy.deepcopy(state))
    assert failures > 5
    assert found == single


def test_keys_of_one_subtask_are_buckets_of_one_part() -> None:
    for shards in (1, 2, 4, 8, 16, 32, 64):
        parts = defaultdict(set)
        for bucket, group in enumerate(GROUPS):
            parts[group * shards // BUCKETS].add(bucket % shards)
        assert all(len(found) == 1 for found in parts.values())
        assert len(parts) == shards


def test_input_since_the_last_save_is_bounded(log: Path) -> None:
    job = Job(plan(1, checkpoint_s=3600.0, redo_mb=1), (), {})
    batches = list(LogReader(log).batches())
    longest = 0
    for batch in batches * 3:
        list(job.take(frame(batch)))
        longest = max(longest, sum(map(len, job.state["front", ONLY, "since"])))
    assert (1 << 19) < longest <= (1 << 20) + max(len(frame(batch)) for batch in batches)
    # what is no frame is counted and stops nothing
    assert list(job.take(b"no frame at all, whatever it may look like to others")) == []


def test_frames_of_a_folder_in_which_a_log_grows(tmp_path: Path, log: Path) -> None:
    raw = log.read_bytes()
    frames = Frames((str(tmp_path),))
    assert frames.endless
    assert frames.next() is None
    (tmp_path / "a.wklog").write_bytes(raw[: len(raw) // 2])
    half = 0
    while frames.next() is not None:
        half += 1
    (tmp_path / "a.wklog").write_bytes(raw)
    whole = half
    while frames.next() is not None:
        whole += 1
    assert 0 < half < whole == len(LogReader(log))
    (tmp_path / "b.wklog").write_bytes(raw)
    first = frames.next()
    assert first is not None
    assert frame_of(frame(first)).t_min == first.t_min
    with pytest.raises(DamageError):
        frame_of(frame(first)[:-1])
