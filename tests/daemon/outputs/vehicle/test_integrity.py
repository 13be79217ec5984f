"""What a vehicle is told of its receiver: bytes that pymavlink reads, off by default, and nothing sent in a dry run."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import msgspec
import pytest

from watchkeeper.config.loader import load
from watchkeeper.config.outputs import GnssIntegrity
from watchkeeper.config.schema import DEFAULT, Config, FleetLimits
from watchkeeper.daemon.background import end
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.catalog import BUILT_IN, asked
from watchkeeper.daemon.outputs.vehicle.integrity import GNSS_INTEGRITY, IntegritySink
from watchkeeper.daemon.outputs.vehicle.message import State, framed, payload
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.simulate import simulate

ONSET_S = 100.0
# the pipeline's name for the first variant
VEHICLE = "0"
CONFIG = Config(fleet=FleetLimits(max_vehicles=10))
SETTINGS = GnssIntegrity(vehicle=VEHICLE, dry_run=False, url="udp://127.0.0.1:14550", system=7, receiver=1)


def read(data: bytes) -> list[Any]:
    """What pymavlink's own dialect makes of it."""
    dialect = pytest.importorskip("pymavlink.dialects.v20.development")
    found: list[Any] = dialect.MAVLink(None).parse_buffer(data) or []
    return found


@pytest.mark.parametrize("spoofing", list(State))
@pytest.mark.parametrize("jamming", list(State))
def test_pymavlink_reads_what_was_written(spoofing: State, jamming: State) -> None:
    for receiver, sequence in ((0, 0), (1, 255)):
        (message,) = read(framed(payload(receiver, spoofing, jamming), 7, 191, sequence))
        assert message.get_type() == "GNSS_INTEGRITY"
        assert (message.id, message.spoofing_state, message.jamming_state) == (receiver, spoofing, jamming)
        assert (message.raim_hfom, message.raim_vfom, message.system_errors) == (65_535, 65_535, 0)
        assert (message.authentication_state, message.raim_state, message.gnss_signal_quality) == (0, 0, 255)
        header = (message.get_srcSystem(), message.get_srcComponent(), message.get_seq())
        assert header == (7, 191, sequence)


def test_pymavlink_writes_the_same_bytes() -> None:
    dialect = pytest.importorskip("pymavlink.dialects.v20.development")
    theirs = dialect.MAVLink(None, srcSystem=7, srcComponent=191)
    message = dialect.MAVLink_gnss_integrity_message(1, 0, 0, 1, 3, 0, 65_535, 65_535, 255, 255, 255, 255)
    assert framed(payload(1, State.DETECTED, State.NONE), 7, 191, 0) == message.pack(theirs)


@pytest.fixture(scope="module")
def pipelines() -> dict[str, Pipeline]:
    """Before the vehicle is known, before it is spoofed, and while it is."""
    flight = simulated("quad-n", Recipe(901, 140, imu_hz=25)).from_zero()
    made = inject(catalogue().find("gps_bias_20m"), flight, onset_s=ONSET_S)
    pipeline = Pipeline(CONFIG)
    found = {"unknown": Pipeline(CONFIG)}
    for batch in batches([Variant(flight, made)], strict=True):
        pipeline.feed(batch)
        if "fine" not in found and pipeline.watermark > ONSET_S - 5.0:
            found["fine"] = Pipeline(CONFIG)
            found["fine"].restore(pipeline.snapshot())
    return {**found, "spoofed": pipeline}


def verdict(pipeline: Pipeline, settings: GnssIntegrity = SETTINGS) -> tuple[State, State]:
    return IntegritySink(settings, Watched(pipeline, "0")).verdict()


def test_with_gps_imu_switched_off_nothing_is_known() -> None:
    off = load(None, env={}, overrides={"detectors": {"gps_imu": {"enabled": False}}, "fleet": {"max_vehicles": 10}})
    pipeline = Pipeline(off)
    for batch in simulate("drones", seed=1, seconds=5).batches():
        pipeline.feed(batch)
    heard = next(iter(pipeline.fleet.slot_of))
    settings = msgspec.structs.replace(SETTINGS, vehicle=heard)
    assert verdict(pipeline, settings) == (State.UNKNOWN, State.UNKNOWN)


def test_a_receiver_is_unknown_then_fine_then_spoofed(pipelines: dict[str, Pipeline]) -> None:
    assert verdict(pipelines["unknown"]) == (State.UNKNOWN, State.UNKNOWN)
    assert verdict(pipelines["fine"]) == (State.NONE, State.NONE)
    assert verdict(pipelines["spoofed"]) == (State.DETECTED, State.NONE)
    # another vehicle's alarm says nothing of this one
    assert verdict(pipelines["spoofed"], msgspec.structs.replace(SETTINGS, vehicle="1"))[0] == State.UNKNOWN
    # nor does a name that is not sure enough, and neither is it fine
    assert verdict(pipelines["spoofed"], msgspec.structs.replace(SETTINGS, confidence=1.0))[0] == State.UNKNOWN


def test_it_is_off_and_would_only_log_unless_it_is_told_to_send() -> None:
    assert GNSS_INTEGRITY in BUILT_IN
    assert not list(asked(GNSS_INTEGRITY, DEFAULT))
    assert GnssIntegrity(vehicle=VEHICLE).dry_run
    assert list(GnssIntegrity(vehicle=VEHICLE, dry_run=False).clashes())


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_round_is_sent_and_a_dry_run_logs_the_same_bytes(
    dry_run: bool, pipelines: dict[str, Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle, caplog.at_level(logging.WARNING):
        vehicle.bind(("127.0.0.1", 0))
        vehicle.settimeout(0.2)
        url = f"udp://127.0.0.1:{vehicle.getsockname()[1]}"
        sink = IntegritySink(
            msgspec.structs.replace(SETTINGS, dry_run=dry_run, url=url), Watched(pipelines["spoofed"], "0")
        )
        sink.waiting = 1

        async def main() -> None:
            task = asyncio.create_task(sink.run())
            await sink.flush()
            await end(task)

        asyncio.run(main())
        (logged,) = caplog.messages
        (message,) = read(bytes.fromhex(logged.rpartition(" ")[2]))
        assert (message.get_srcSystem(), message.id, message.spoofing_state) == (7, 1, State.DETECTED)
        assert ("not sent" in logged) == dry_run
        if dry_run:
            with pytest.raises(TimeoutError):
                vehicle.recv(300)
        else:
            assert vehicle.recv(300).hex() == logged.rpartition(" ")[2]
        assert (sink.delivered, sink.waiting) == (1, 0)
