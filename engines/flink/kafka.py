"""Kafka as source and sink, with the connector jar that the user brings: Flink's own distribution has none.

One message of the topic is one frame (frames.py), and the topic has one partition: samples are judged in the order in
which they arrive. Alarm events are written in transactions, so that readers of committed messages see each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.serialization import ByteArraySchema, SimpleStringSchema
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.util.java_utils import add_jars_to_context_class_loader

from watchkeeper.config.flink import Flink

# Longer than any pause between two checkpoints, a restart included; the most that brokers allow unless told otherwise.
TRANSACTION_MS = 900_000


class NoConnectorError(Exception):
    """The jar of the connector is missing, or one that does not fit."""


def from_kafka(env: StreamExecutionEnvironment, flink: Flink, jars: Sequence[str]) -> DataStream:
    """Frames of a topic, from where the last checkpoint was. NoConnectorError."""
    offsets = _made(jars, lambda: KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST))
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(flink.kafka_servers)
        .set_topics(flink.kafka_in)
        .set_group_id(flink.kafka_group)
        .set_starting_offsets(offsets)
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "frames", Types.PRIMITIVE_ARRAY(Types.BYTE()))


def to_kafka(flink: Flink, jars: Sequence[str]) -> KafkaSink:
    """Alarm events to a topic, each once. NoConnectorError."""
    record = _made(jars, KafkaRecordSerializationSchema.builder)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(flink.kafka_servers)
        .set_record_serializer(
            record.set_topic(flink.kafka_out).set_value_serialization_schema(SimpleStringSchema()).build()
        )
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(flink.kafka_group)
        .set_property("transaction.timeout.ms", str(TRANSACTION_MS))
        .build()
    )


def _made(jars: Sequence[str], make: Any) -> Any:
    """The first object of the connector; this is where a missing jar shows."""
    add_jars_to_context_class_loader([Path(jar).resolve().as_uri() for jar in jars])
    try:
        return make()
    except TypeError as error:
        raise NoConnectorError(
            "Flink's connector for Kafka is not there: give flink-sql-connector-kafka-….jar with --jar"
        ) from error
