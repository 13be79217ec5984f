"""Settings of `watchkeeper flink`: the same pipeline as a job of an Apache Flink cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from watchkeeper.config.section import Section, about, text

_HOSTS = "HOST:PORT, several by comma"


class Flink(Section, frozen=True):
    """The job that `watchkeeper flink` submits; `watchkeeper run` does not read this section."""

    parallelism: Annotated[
        int, about("workers", "operators of vehicles; a power of two. Pairs and areas have one more", ge=1, le=64)
    ] = 2
    checkpoint_s: Annotated[
        float,
        about(
            "s",
            "how often the state is saved; after a failure so much input is judged again, unseen from outside",
            ge=0.5,
            le=3600,
        ),
    ] = 30.0
    checkpoint_dir: Annotated[
        str,
        text(
            "where checkpoints and savepoints go, as Flink writes it: file:///…, s3://…; every worker must reach it",
            pattern=r"^([a-z0-9]+://?\S+)?$",
            form="an address that begins with file:/// or another file system of Flink; empty: the cluster's own",
        ),
    ] = ""
    frames: Annotated[
        int,
        about(
            "frames",
            "of logs in one message to the operators, if there are so many: each message has its price",
            ge=1,
            le=1000,
        ),
    ] = 8
    redo_mb: Annotated[
        int,
        about(
            "MB",
            "input since the last saved state that a checkpoint may hold; when full, the state is saved at once",
            ge=1,
            le=4096,
        ),
    ] = 64
    worker_memory_mb: Annotated[
        int,
        about(
            "MB",
            "a Python worker that needs more fails, and the job goes on from its last checkpoint; 0: no limit",
            ge=0,
            le=1_048_576,
        ),
    ] = 0
    restart_delay_s: Annotated[float, about("s", "pause before the job starts again after a failure", ge=0, le=600)] = (
        1.0
    )
    restarts: Annotated[
        int,
        about("times", "so often the job starts again before it is given up", ge=0, le=2_147_483_647),
    ] = 1_000_000
    python_runs: Annotated[
        Literal["process", "thread"],
        text("Python in processes of its own, or in threads of the TaskManager's JVM, one of which runs at a time"),
    ] = "process"
    kafka_servers: Annotated[str, text(f"Kafka brokers: {_HOSTS}; needs Flink's connector jar")] = ""
    kafka_in: Annotated[str, text("topic with one partition whose messages are frames of telemetry")] = "telemetry"
    kafka_out: Annotated[str, text("topic that alarm events are written to, in transactions")] = "alarms"
    kafka_group: Annotated[str, text("consumer group, and the beginning of the names of transactions")] = "watchkeeper"
