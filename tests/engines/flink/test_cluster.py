"""On a real cluster of two TaskManagers the events are the bytes of one Pipeline: `make flink`.

Whatever the number of workers; with TaskManagers and Python workers killed, in files and on a broker; over savepoints
with another number of workers; and after a worker that ran out of memory.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyflink")

from tests.engines.flink.cluster import Cluster
from tests.engines.flink.faults import LeakyVehicles
from tests.engines.flink.subscriber import Subscriber
from tests.engines.flink.worlds import everything, of_one_pipeline, written
from watchkeeper.config.flink import Flink
from watchkeeper.config.schema import Config
from watchkeeper.engines.flink.job import Order, submit

pytestmark = pytest.mark.flink
# Sixteen operators of vehicles and one slot for the other stages.
SLOTS = 9
DONE_S = 240.0


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("log") / "world.wklog", everything(1100.0, 60))


@pytest.fixture(scope="module")
def single(log: Path) -> list[bytes]:
    events = of_one_pipeline(log)
    text = b"\n".join(events)
    for kind in (b"incident", b"silence", b"conflict", b"gnss_interference", b"intent", b"link", b"gps_imu"):
        assert b'"kind":"' + kind in text
    assert text.count(b'"diagnosis":{') > 100
    return sorted(events)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("flink") / "cluster", managers=2, slots=SLOTS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subscriber | None]:
    """Somebody who hears what is published; None where there is no mosquitto."""
    if shutil.which("mosquitto") is None:
        warnings.warn("mosquitto is not installed: nothing is published", stacklevel=1)
        yield None
        return
    with Subscriber(tmp_path_factory.mktemp("broker")) as subscriber:
        yield subscriber


def config(cluster: Cluster, parallelism: int, **more: Any) -> Config:
    flink = Flink(parallelism=parallelism, checkpoint_s=1.0, frames=2, checkpoint_dir=cluster.checkpoints, **more)
    return msgspec.structs.replace(Config(), flink=flink)


def events(folder: Path) -> list[bytes]:
    return sorted(line for path in folder.rglob("alarms*.jsonl") for line in path.read_bytes().splitlines())


def running(cluster: Cluster, job: str) -> bool:
    cluster.heal()
    found = cluster.get(f"/jobs/{job}")
    assert found["state"] != "FAILED", cluster.get(f"/jobs/{job}/exceptions")
    return found["state"] == "RUNNING" and all(vertex["status"] == "RUNNING" for vertex in found["vertices"])


def ended(cluster: Cluster, job: str) -> bool:
    cluster.heal()
    state = cluster.state(job)
    assert state != "FAILED", cluster.get(f"/jobs/{job}/exceptions")
    return state == "FINISHED"


@pytest.mark.parametrize("at_once", [(1, 2, 4), (16,)])
def test_same_bytes(cluster: Cluster, log: Path, single: list[bytes], tmp_path: Path, at_once: tuple[int, ...]) -> None:
    """Several jobs at once: to start Python workers takes longer than to judge the log."""
    jobs = {
        n: str(submit(config(cluster, n), Order((str(log),), str(tmp_path / str(n)), cluster.address)).get_job_id())
        for n in at_once
    }
    for n, job in jobs.items():
        cluster.wait(lambda job=job: ended(cluster, job), DONE_S)
        assert events(tmp_path / str(n)) == single


def test_killed_ten_times(
    cluster: Cluster, log: Path, single: list[bytes], tmp_path: Path, broker: Subscriber | None
) -> None:
    """In the files each event is once; on the broker in the same bytes, perhaps more than once."""
    chance = random.Random(18)
    url = "" if broker is None else broker.url
    order = Order((str(log),), str(tmp_path), cluster.address, speed=20.0, mqtt=url)
    client = submit(config(cluster, 2, restart_delay_s=0.2), order)
    job = str(client.get_job_id())
    for victim in chance.sample(["TaskManager", "worker"] * 5, 10):
        cluster.wait(lambda: running(cluster, job) and len(cluster.pythons()) >= 3, DONE_S)
        time.sleep(chance.uniform(0.0, 2.0))
        assert running(cluster, job)
        before = restarted_at(cluster, job)
        if victim == "worker":
            chance.choice(cluster.pythons()).send_signal(signal.SIGKILL)
        else:
            cluster.kill(chance.choice([i for i in range(len(cluster.workers)) if cluster.pythons(i)]))
        cluster.wait(lambda t=before: restarted_at(cluster, job) > t, DONE_S)
    cluster.wait(lambda: ended(cluster, job), DONE_S)
    assert events(tmp_path) == single
    if broker is not None:
        heard = {payload for _, payload in broker.heard() if payload}
        assert sorted(heard) == single
        last = {event["id"]: event["state"] for event in map(json.loads, of_one_pipeline(log))}
        shown = {json.loads(payload)["id"] for payload in broker.retained().values()}
        assert shown == {name for name, state in last.items() if state != "cleared"}


def test_savepoints_with_another_number_of_workers(
    cluster: Cluster, log: Path, single: list[bytes], tmp_path: Path
) -> None:
    savepoint, given = "", []
    for parallelism in (2, 4):
        order = Order((str(log),), str(tmp_path / "alarms"), cluster.address, speed=40.0, savepoint=savepoint)
        client = submit(config(cluster, parallelism), order)
        job = str(client.get_job_id())
        cluster.wait(lambda job=job, n=parallelism: running(cluster, job) and len(cluster.pythons()) > n, DONE_S)
        time.sleep(8.0)
        savepoint = cluster.stop(job, tmp_path / "savepoints")
        given.append(len(events(tmp_path / "alarms")))
    assert 0 < given[0] < given[1] < len(single)
    client = submit(
        config(cluster, 2), Order((str(log),), str(tmp_path / "alarms"), cluster.address, savepoint=savepoint)
    )
    cluster.wait(lambda: ended(cluster, str(client.get_job_id())), DONE_S)
    assert events(tmp_path / "alarms") == single


def test_a_worker_that_runs_out_of_memory(cluster: Cluster, log: Path, single: list[bytes], tmp_path: Path) -> None:
    mark = tmp_path / "leaked"
    order = Order((str(log),), str(tmp_path / "alarms"), cluster.address, vehicles=LeakyVehicles.marking(mark))
    client = submit(config(cluster, 2, worker_memory_mb=1200), order)
    job = str(client.get_job_id())
    cluster.wait(mark.exists, DONE_S)
    cluster.wait(lambda: restarted_at(cluster, job) > 0, 60.0)
    assert "MemoryError" in str(cluster.get(f"/jobs/{job}/exceptions"))
    cluster.wait(lambda: ended(cluster, job), DONE_S)
    assert events(tmp_path / "alarms") == single


def restarted_at(cluster: Cluster, job: str) -> int:
    """When the job last had to start again, in ms; 0: never."""
    return int(cluster.get(f"/jobs/{job}")["timestamps"]["RESTARTING"])


def test_nothing_is_left(cluster: Cluster) -> None:
    """Python workers end with their job."""
    cluster.wait(lambda: not cluster.pythons(), 30.0)
