"""What the broker refuses is said: subscriptions and publications, with its reason, until it takes them again."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from mqtt_clients import LIBRARIES, Client, each_library, need_mosquitto, play, running
from waiting import until

from watchkeeper.daemon.demo.broker import EmbeddedBroker
from watchkeeper.streams.mqtt.refusals import LASTING_S, MAX_PLACES, Refusals

NATS_RIGHTS = (
    'authorization { users: [{ user: "u", password: "p", permissions: { subscribe: { deny: ["secret.>"] } } }] }'
)


class Clock:
    """A clock that a test steps."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_refused_topic_is_said_until_it_is_taken_and_has_been_for_a_while() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    refusals.refused("out/alarm/conflict/a~b", "not authorized")
    refusals.refused("out/status", "quota exceeded (later)")
    alarms = "the broker refuses what we publish on out/alarm/conflict/…: not authorized"
    assert refusals.sentences() == [alarms, "the broker refuses what we publish on out/…: quota exceeded (later)"]
    assert refusals.sentences("out/alarm/") == [alarms]
    assert refusals.counts == {"not authorized": 1, "quota exceeded": 1}
    # a neighbour that is taken says nothing of the one that was not
    refusals.taken("out/alarm/conflict/c~d")
    assert refusals.sentences("out/alarm/") == [alarms]
    clock.s = LASTING_S + 1
    refusals.taken("out/alarm/conflict/c~d")
    assert refusals.sentences("out/alarm/") == []


def test_topics_without_end_are_counted_not_remembered() -> None:
    refusals = Refusals(Clock())
    for i in range(10 * MAX_PLACES):
        refusals.refused(f"out/{i}/x", "not authorized")
    assert len(refusals.sentences()) == MAX_PLACES
    assert refusals.counts["not authorized"] == 10 * MAX_PLACES


def test_a_subscription_is_refused_until_it_is_granted() -> None:
    refusals = Refusals(Clock())
    assert not refusals.subscribed({"t/#": "not authorized"})
    assert refusals.deaf
    assert refusals.sentences("out/") == ["the broker does not let us subscribe to t/#: not authorized"]
    assert refusals.subscribed({})
    assert not refusals.deaf
    assert refusals.sentences() == []


@need_mosquitto
@each_library
def test_a_publication_that_the_brokers_rules_forbid(library: str, tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic read #\ntopic write open/#\n")
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path, rules):
        path.chmod(0o755)

    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto", settings=[f"acl_file {rules}"]) as broker:
            client = Client(broker.url, library, "open/#")
            async with running(client):
                sent = [client.transport.post(topic, b"") for topic in ("open/a", "closed/a", "closed/b", "open/b")]
                taken = await asyncio.gather(*sent)
                assert [await client.next() for _ in range(2)] == [("open/a", b""), ("open/b", b"")]
                assert client.transport.connected
                if library == "aiomqtt":
                    # MQTT 3.1.1 has no word for it: the broker acknowledges and throws away
                    assert taken == [True] * 4
                    return
                assert taken == [True, False, False, True]
                assert client.transport.refused == {"not authorized": 2}
                assert client.transport.health() == ["the broker refuses what we publish on closed/…: not authorized"]

    play(scene)


@need_mosquitto
def test_a_subscription_that_is_forbidden_and_then_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By mosquitto's dynamic security: its acl_file forbids no subscription, it only delivers nothing."""
    plugin = next(iter(Path("/usr/lib").glob("*/mosquitto_dynamic_security.so")), None) or pytest.skip("no plugin")
    monkeypatch.setattr("watchkeeper.streams.mqtt.mqtt5.RESUBSCRIBE_S", 0.05)
    rights = tmp_path / "rights.json"
    init = ["mosquitto_ctrl", "dynsec", "init", str(rights), "admin", "secret"]
    subprocess.run(init, check=True, capture_output=True)
    given = json.loads(rights.read_text())
    given["defaultACLAccess"] |= {"publishClientSend": True, "publishClientReceive": True, "subscribe": False}
    given["clients"].append(given["clients"][0] | {"username": "keeper", "roles": []})
    rights.write_text(json.dumps(given))
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path, rights):
        path.chmod(0o777)
    settings = [f"plugin {plugin}", f"plugin_opt_config_file {rights}"]

    async def scene() -> None:
        async with (
            EmbeddedBroker(kind="mosquitto", settings=settings) as broker,
            running(Client(broker.url, "mqtt5", client_id="a", username="admin", password="secret")) as admin,
        ):
            client = Client(broker.url, "mqtt5", "telemetry/#", username="keeper", password="secret")
            async with running(client):
                words = "the broker does not let us subscribe to telemetry/#: not authorized"
                assert client.transport.health("alarm/") == [words]
                assert client.transport.deaf
                # it can still speak
                assert await client.transport.publish("alarm/a", b"")
                client.up.clear()
                allow = {"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe", "allow": True}]}
                command = json.dumps({"commands": [allow]}).encode()
                await admin.transport.publish("$CONTROL/dynamic-security/v1", command)
                await until(lambda: not client.transport.deaf)
                # as after a connect: whoever depends on hearing may begin
                assert client.up.is_set()
                assert client.transport.reconnects == 0
                await client.transport.publish("telemetry/a", b"1")
                assert await client.next() == ("telemetry/a", b"1")

    play(scene)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_subscription_that_an_old_broker_refuses(library: str) -> None:
    """MQTT 3.1.1, on which `mqtt5` falls back here: the code 0x80 without a reason."""

    async def scene() -> None:
        async with EmbeddedBroker(kind="nats", settings=[NATS_RIGHTS]) as broker:
            client = Client(broker.url, library, "secret/a", "open/a", username="u", password="p")
            async with running(client):
                assert client.transport.health() == ["the broker does not let us subscribe to secret/a: refused"]
                await client.transport.publish("open/a", b"1")
                assert await client.next() == ("open/a", b"1")

    play(scene)
