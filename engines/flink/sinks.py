"""Where alarm events leave the job."""

from __future__ import annotations

from pathlib import Path

from pyflink.common.serialization import Encoder
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from pyflink.java_gateway import get_gateway


def to_files(folder: str) -> FileSink:
    """Files of JSON lines, each of them whole and final once a checkpoint is: every event once.

    What is not final begins with a dot.
    """
    where = folder if "://" in folder else Path(folder).resolve().as_uri()
    names = OutputFileConfig.builder().with_part_prefix("alarms").with_part_suffix(".jsonl").build()
    return (
        FileSink.for_row_format(where, Encoder.simple_string_encoder())
        .with_output_file_config(names)
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def to_nowhere() -> Sink:
    """Events that were published before (mqtt.py)."""
    return Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink())
