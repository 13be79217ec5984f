"""Kafka's source and sink are made of the user's jar; without one it is said which. No broker is needed, or at hand."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyflink")

from watchkeeper.config.flink import Flink
from watchkeeper.engines.flink import kafka


def test_without_the_jar_it_is_said_which() -> None:
    with pytest.raises(kafka.NoConnectorError, match="--jar"):
        kafka.from_kafka(None, Flink(kafka_servers="127.0.0.1:9092"), ())
    with pytest.raises(kafka.NoConnectorError, match="--jar"):
        kafka.to_kafka(Flink(kafka_servers="127.0.0.1:9092"), ())


class Builder:
    """Notes what it is told."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    def __getattr__(self, name: str) -> Any:
        def tell(*values: Any) -> Any:
            self._told[name] = values
            return self

        return tell


def test_what_the_connector_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    for name in ("KafkaSource", "KafkaSink", "KafkaRecordSerializationSchema"):
        monkeypatch.setattr(getattr(kafka, name), "builder", lambda: Builder(told))
    monkeypatch.setattr(kafka.KafkaOffsetsInitializer, "committed_offsets", lambda reset: reset)
    flink = Flink(kafka_servers="a:1,b:2", kafka_in="frames", kafka_out="out", kafka_group="wk")
    kafka.from_kafka(Builder(told), flink, ())
    assert told["set_topics"] == ("frames",)
    assert told["set_starting_offsets"] == (kafka.KafkaOffsetResetStrategy.EARLIEST,)
    kafka.to_kafka(flink, ())
    assert told["set_bootstrap_servers"] == ("a:1,b:2",)
    assert told["set_topic"] == ("out",)
    assert told["set_delivery_guarantee"] == (kafka.DeliveryGuarantee.EXACTLY_ONCE,)
    assert told["set_transactional_id_prefix"] == ("wk",)
