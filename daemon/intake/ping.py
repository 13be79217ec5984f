"""Pings gateways, so that the diagnosis knows which of them answer and how fast.

    <output>/ping/<gateway>     QoS 0, JSON {"t": our wall clock}, every `diagnosis.ping_s`
    <telemetry>/link/<gateway>  the answer: a sample of the stream `link` with "echo_t": that t

A gateway that supports it may answer with more: its load, and a `link` sample for each vehicle with the state of the
port (carrier, heard, filtered, errors, backlog_s, rtt_s). One that does not support it is not asked for anything else,
and the diagnosis goes on without. Answers come in like all telemetry, so a recorded log has them too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.messages import escape_id
from watchkeeper.streams.mqtt.transport import Transport

# How often the task looks whether it should ping, when it should not.
OFF_S = 1.0


async def ping_gateways(pipeline: Pipeline, transport: Transport, config: Callable[[], Config]) -> None:
    """Task: ping every gateway that samples have come through. Without a connection there is nobody to ping."""
    while True:
        period_s = config().diagnosis.ping_s
        await asyncio.sleep(period_s or OFF_S)
        if not period_s or not transport.connected or pipeline.incidents is None:
            continue
        for gateway in filter(None, pipeline.gateways):
            payload = msgspec.json.encode({"t": round(time.time(), 6)})
            transport.post(f"{config().topics.output}/ping/{escape_id(gateway)}", payload, qos=0)
