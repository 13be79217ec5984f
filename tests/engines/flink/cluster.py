"""A real Flink cluster on this machine: a JobManager and TaskManagers as processes, from the `apache-flink` wheel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyflink

ROOT = Path(__file__).parents[3]
HOME = Path(pyflink.__file__).parent
# A heartbeat that is missed is noticed within seconds; the default of 50 s suits networks, not proofs.
SETTINGS = {
    "jobmanager.rpc.address": "localhost",
    "jobmanager.bind-host": "localhost",
    "jobmanager.memory.process.size": "1024m",
    "taskmanager.bind-host": "localhost",
    "taskmanager.host": "localhost",
    "taskmanager.memory.process.size": "2048m",
    "taskmanager.load-balance.mode": "SLOTS",
    "rest.bind-address": "localhost",
    "rest.address": "localhost",
    "heartbeat.interval": "1000",
    "heartbeat.timeout": "5000",
    "web.submit.enable": "false",
    # an exception that nobody catches ends the process: a job that only looks alive is worse than one that failed
    "cluster.uncaught-exception-handling": "FAIL",
    "taskmanager.jvm-exit-on-oom": "true",
}


class Cluster:
    """`with Cluster(folder, managers=2, slots=3) as cluster`; `cluster.address` is its HOST:PORT."""

    def __init__(self, folder: Path, *, managers: int = 2, slots: int = 3, **settings: str) -> None:
        self.folder, self.slots = folder, slots
        self.checkpoints = (folder / "checkpoints").as_uri()
        self._managers = managers
        self._port, rpc = _free_port(), _free_port()
        conf = folder / "conf"
        conf.mkdir(parents=True)
        for name in ("log4j-console.properties", "log4j-cli.properties", "log4j.properties"):
            (conf / name).write_text((HOME / "conf" / name).read_text())
        found = SETTINGS | {
            "jobmanager.rpc.port": str(rpc),
            "rest.port": str(self._port),
            "rest.bind-port": str(self._port),
            "taskmanager.numberOfTaskSlots": str(slots),
            "execution.checkpointing.dir": self.checkpoints,
            "execution.checkpointing.savepoint-dir": (folder / "savepoints").as_uri(),
            "io.tmp.dirs": str(folder / "tmp"),
            "env.java.opts.all": f"-XX:+UseSerialGC -XX:ErrorFile={folder}/crash-%p.log",
            **settings,
        }
        (folder / "tmp").mkdir()
        (conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in found.items()))
        self._env = os.environ | {
            "FLINK_CONF_DIR": str(conf),
            "FLINK_HOME": str(HOME),
            "FLINK_LOG_DIR": str(folder),
            "FLINK_ENV_JAVA_OPTS": "",
            "OMP_NUM_THREADS": "1",
            # workers import faults.py
            "PYTHONPATH": str(ROOT),
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        self._jobmanager: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT of the REST interface."""
        return f"localhost:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._jobmanager = self._start("jobmanager.sh", "jobmanager")
            for _ in range(self._managers):
                self.add()
            self.wait(lambda: self.get("/overview")["taskmanagers"] == self._managers, 180.0)
        except BaseException:
            # nobody else would end what has started
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in [*self.workers, self._jobmanager]:
            if process is not None:
                _end(process)

    def add(self) -> subprocess.Popen[bytes]:
        """One more TaskManager."""
        worker = self._start("taskmanager.sh", f"taskmanager-{len(self.workers)}")
        self.workers.append(worker)
        return worker

    def heal(self) -> None:
        """One TaskManager for each that has ended, as Kubernetes does it."""
        for _ in range(self._managers - sum(worker.poll() is None for worker in self.workers)):
            self.add()

    def kill(self, index: int) -> None:
        """kill -9 of a TaskManager; its Python workers notice and end (worker.py)."""
        self.workers[index].send_signal(signal.SIGKILL)

    def pythons(self, manager: int | None = None) -> list[psutil.Process]:
        """The Python workers of one or all TaskManagers."""
        chosen = self.workers if manager is None else [self.workers[manager]]
        return [
            child
            for worker in chosen
            if worker.poll() is None
            for child in psutil.Process(worker.pid).children(recursive=True)
            if "pyflink.fn_execution.beam.beam_boot" in _words(child)
        ]

    def get(self, path: str) -> Any:
        """The REST interface's answer."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)

    def stop(self, job: str, folder: Path) -> str:
        """Stop a job with a savepoint; where that is."""
        body = json.dumps({"targetDirectory": folder.as_uri(), "drain": False}).encode()
        asked = urllib.request.Request(
            f"http://{self.address}/jobs/{job}/stop", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=10) as answer:
            path = f"/jobs/{job}/savepoints/{json.load(answer)['request-id']}"
        found = self.wait(lambda: (done := self.get(path))["status"]["id"] == "COMPLETED" and done, 120.0)
        return str(found["operation"]["location"])

    def state(self, job: str) -> str:
        """Of a job: RUNNING, RESTARTING, FINISHED …"""
        return str(self.get(f"/jobs/{job}")["state"])

    @staticmethod
    def wait(found: Any, seconds: float, step_s: float = 0.25) -> Any:
        """What a function answers once that is true. TimeoutError."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if answer := found():
                    return answer
            except OSError:
                pass
            time.sleep(step_s)
        raise TimeoutError(f"not within {seconds:.0f} s")

    def _start(self, script: str, name: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("wb")
        command = [str(HOME / "bin" / script), "start-foreground"]
        return subprocess.Popen(command, env=self._env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
