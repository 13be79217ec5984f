"""The job: sources, stages and sinks wired together, with the settings that make Flink keep our promises.

    submit(config, Order(...)) -> JobClient

Everything that this job cannot do without is set here, whatever the cluster's own configuration says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import pyflink
from pyflink.common import Configuration, Row, Types, WatermarkStrategy
from pyflink.datastream import DataStream, KeyedProcessFunction, KeyedStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.java_gateway import get_gateway

from watchkeeper.config.schema import Config
from watchkeeper.engines.flink.frames import Frames
from watchkeeper.engines.flink.front import MESSAGE, TO_FLEET, FrontFunction
from watchkeeper.engines.flink.kafka import from_kafka, to_kafka
from watchkeeper.engines.flink.merge import MergeFunction
from watchkeeper.engines.flink.messages import ONLY, Plan, key_of
from watchkeeper.engines.flink.mqtt import MqttFunction
from watchkeeper.engines.flink.operators import ANSWER, FleetFunction, VehiclesFunction
from watchkeeper.engines.flink.sinks import to_files, to_nowhere
from watchkeeper.streams.split import BUCKETS

# A message is one frame, thousands of samples: a few fill a bundle. What waits in a bundle also waits for a checkpoint.
BUNDLE_SIZE = 16
BUNDLE_MS = 100
ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Order:
    """What to run where. `cluster` is HOST:PORT of a JobManager, "" a small cluster within this process.

    `alarms` is a folder for files of events, `mqtt` the address of a broker, or both; without them Kafka gets them.
    """

    logs: tuple[str, ...]
    alarms: str
    cluster: str = ""
    speed: float = 0.0
    savepoint: str = ""
    jars: tuple[str, ...] = ()
    mqtt: str = ""
    # another class for this stage, and further settings of Flink
    vehicles: Callable[[Plan], KeyedProcessFunction] = VehiclesFunction
    more: dict[str, str] = field(default_factory=dict)


def submit(config: Config, order: Order) -> Any:
    """Start the job; the JobClient."""
    env = environment(config, order)
    plan = Plan(config, config.flink.parallelism, key_of(_group_of))
    frames = _numbers(env, config, order) if order.logs else from_kafka(env, config.flink, order.jars)
    front = _forward(_one(frames, "frames")).process(FrontFunction(plan, order.logs, order.speed), MESSAGE)
    _one(front, "front")
    vehicles = _keyed(front).process(order.vehicles(plan), ANSWER)
    _named(vehicles, "vehicles", plan.shards).slot_sharing_group("vehicles")
    fleet = _keyed(DataStream(front._j_data_stream.getSideOutput(TO_FLEET.get_java_output_tag())))
    fleet = _one(fleet.process(FleetFunction(plan), ANSWER), "fleet").slot_sharing_group("default")
    answers = _keyed(vehicles.union(fleet))
    events = _one(answers.process(MergeFunction(plan), Types.STRING()), "merge").slot_sharing_group("default")
    if order.mqtt:
        published = events.process(MqttFunction(config, order.mqtt), Types.STRING())
        events = _one(published, "mqtt").slot_sharing_group("default")
    sink = events.sink_to(_sink(config, order)).name("alarms").uid("alarms").set_parallelism(1)
    sink.slot_sharing_group("default")
    return env.execute_async("watchkeeper")


def _sink(config: Config, order: Order) -> Sink:
    if order.alarms:
        return to_files(order.alarms)
    return to_nowhere() if order.mqtt else to_kafka(config.flink, order.jars)


def environment(config: Config, order: Order) -> StreamExecutionEnvironment:
    """Where the job runs, and how."""
    flink, found = config.flink, Configuration()
    jar = next(Path(pyflink.__file__).parent.glob("opt/flink-python-*.jar"))
    jars = ";".join([jar.as_uri(), *(Path(path).resolve().as_uri() for path in order.jars)])
    settings: dict[str, str] = {
        "pipeline.jars": jars,
        "pipeline.max-parallelism": str(BUCKETS),
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.execution-mode": flink.python_runs,
        "python.fn-execution.bundle.size": str(BUNDLE_SIZE),
        "python.fn-execution.bundle.time": str(BUNDLE_MS),
        "execution.checkpointing.interval": f"{round(1000 * flink.checkpoint_s)} ms",
        # one late barrier must not let another wait behind it
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.unaligned.enabled": "false",
        # a job that runs and cannot save its state is a silence that means nothing
        "execution.checkpointing.tolerable-failed-checkpoints": "0",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "state.backend.type": "rocksdb",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": str(flink.restarts),
        "restart-strategy.fixed-delay.delay": f"{round(1000 * flink.restart_delay_s)} ms",
    }
    if flink.checkpoint_dir:
        settings["execution.checkpointing.dir"] = flink.checkpoint_dir
    if order.savepoint:
        settings["execution.state-recovery.path"] = order.savepoint
    if order.cluster:
        host, _, port = order.cluster.rpartition(":")
        settings |= {"execution.target": "remote", "rest.address": host, "rest.port": port}
    else:
        # a cluster within this process has as many slots as the job needs; another one does not read this
        settings["taskmanager.numberOfTaskSlots"] = str(flink.parallelism + 1)
    for key, value in (settings | order.more).items():
        found.set_string(key, value)
    if not order.cluster:
        # within `flink run` or Flink's operator that is the cluster that runs us
        return StreamExecutionEnvironment.get_execution_environment(found)
    made = get_gateway().jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    return StreamExecutionEnvironment(made(found._j_configuration))


def _numbers(env: StreamExecutionEnvironment, config: Config, order: Order) -> DataStream:
    """One number for the frames of each message, and one for the end; Front reads the frames."""
    frames = Frames(order.logs)
    last = ENDLESS if frames.endless else ceil(len(frames) / config.flink.frames)
    return env.from_source(NumberSequenceSource(0, last), WatermarkStrategy.no_watermarks(), "frames", Types.LONG())


def _one(stream: DataStream, name: str) -> DataStream:
    return _named(stream, name, 1)


def _named(stream: DataStream, name: str, parallelism: int) -> DataStream:
    return stream.name(name).uid(name).set_parallelism(parallelism)


def _keyed(stream: DataStream) -> KeyedStream:
    """By the first field. `key_by` would send all bytes through Python once more, to have it read that field."""
    keyed = stream._j_data_stream.keyBy(get_gateway().jvm.KeyByKeySelector(), _KEY.get_java_type_info())
    return KeyedStream(keyed, _value_type(stream), stream)


def _forward(stream: DataStream) -> KeyedStream:
    """A stream of one key, in the task that it is in: numbers that wait in a buffer would wait before a checkpoint."""
    value = stream.get_type()
    rows = stream.map(_with_key, Types.ROW([Types.INT(), value]))
    _one(rows, "next")
    gateway = get_gateway()
    utils = gateway.jvm.org.apache.flink.streaming.api.datastream.DataStreamUtils
    keyed = utils.reinterpretAsKeyedStream(
        rows._j_data_stream, gateway.jvm.KeyByKeySelector(), _KEY.get_java_type_info()
    )
    return KeyedStream(keyed, value, rows)


_KEY = Types.ROW([Types.INT()])


def _with_key(value: Any) -> Row:
    return Row(ONLY, value)


def _value_type(stream: DataStream) -> Any:
    return stream.get_type().get_field_types()[1]


def _group_of(key: int) -> int:
    """The key group that Flink puts a key into: keys travel in a row."""
    gateway = get_gateway()
    fields = gateway.new_array(gateway.jvm.Object, 1)
    fields[0] = key
    row = gateway.jvm.org.apache.flink.types.Row.of(fields)
    return int(gateway.jvm.org.apache.flink.runtime.state.KeyGroupRangeAssignment.assignToKeyGroup(row, BUCKETS))
