"""Home Assistant on a real broker: what it would discover, what it would show, and that it all goes away again.

The keys and types are those of Home Assistant's documentation of MQTT discovery, sensor.mqtt and binary_sensor.mqtt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import paho.mqtt.client as paho
from waiting import PATIENCE_S

from watchkeeper.config.outputs import HomeAssistant
from watchkeeper.config.schema import Config
from watchkeeper.daemon.outputs.home_assistant import announcements
from watchkeeper.detectors.catalog import kinds

SHARED = {"name", "unique_id", "state_topic", "value_template", "availability", "device", "origin", "qos", "icon"}
ALLOWED = {
    "sensor": SHARED | {"state_class", "device_class", "unit_of_measurement"},
    "binary_sensor": SHARED
    | {"device_class", "payload_on", "payload_off", "json_attributes_topic", "json_attributes_template"},
}
BINARY_CLASSES = {"safety", "problem"}
TOPIC = re.compile(r"^homeassistant/(sensor|binary_sensor)/([a-zA-Z0-9_-]+)/([a-zA-Z0-9_-]+)/config$")


def on(config: Config, **changes: Any) -> Config:
    return msgspec.structs.replace(config, home_assistant=HomeAssistant(enabled=True, **changes))


def retained(port: int, wait_for: Callable[..., Any], *topics: str) -> dict[str, str]:
    """What somebody who comes now is told."""
    found: dict[str, str] = {}
    done = threading.Event()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)

    def keep(_c: Any, _u: Any, message: Any) -> None:
        if message.topic == "test/end":
            done.set()
        elif message.retain:
            found[message.topic] = message.payload.decode()

    client.on_message = keep
    client.on_connect = lambda *_: client.subscribe([(t, 1) for t in (*topics, "test/end")])
    # retained messages come before anything that is published after the subscription
    client.on_subscribe = lambda *_: client.publish("test/end", b"x", qos=1)
    client.connect("127.0.0.1", port)
    client.loop_start()
    assert done.wait(PATIENCE_S)
    client.disconnect()
    client.loop_stop()
    return found


def test_every_announcement_has_the_documented_form() -> None:
    found = announcements(HomeAssistant(enabled=True), "tower 1/äst", "watchkeeper", "1.2.3")
    assert len(found) == 2 * len(kinds()) + 2
    ids = set()
    for topic, payload in found.items():
        match = TOPIC.match(topic)
        assert match, topic
        assert set(payload) <= ALLOWED[match[1]], topic
        ids.add(payload["unique_id"])
        assert payload["state_topic"] == "watchkeeper/summary"
        (available,) = payload["availability"]
        assert available["topic"] == "watchkeeper/status"
        assert set(available) == {"topic", "value_template", "payload_available", "payload_not_available"}
        assert payload["device"]["identifiers"] == ["tower_1__st"]
        assert payload["origin"]["name"]
        if match[1] == "binary_sensor":
            assert payload["device_class"] in BINARY_CLASSES
        else:
            assert payload["state_class"] == "measurement"
    assert len(ids) == len(found)


def shown(template: str, message: str) -> str:
    """What Home Assistant makes of a message; its templates are Jinja's, of which ours use two forms."""
    value = json.loads(message)
    path = re.search(r"value_json\.([a-z_.]+)", template)
    assert path
    for name in path[1].split("."):
        value = value[name]
    if "'ON' if" in template:
        assert re.fullmatch(r"\{\{ 'ON' if value_json\.[a-z_.]+ > 0 else 'OFF' \}\}", template)
        return "ON" if value > 0 else "OFF"
    assert re.fullmatch(r"\{\{ value_json\.[a-z_.]+ \}\}", template)
    return str(value)


def test_on_a_real_broker_it_appears_counts_and_goes_away(
    broker: Any,
    listener: Any,
    configure: Callable[..., Config],
    wait_for: Callable[..., Any],
    start: Callable[..., Any],
) -> None:
    config = configure(broker.url)
    watch = start(on(config))
    everything = ("homeassistant/#", "watchkeeper/summary", "watchkeeper/status")
    found = wait_for(lambda: len(f := retained(broker.port, wait_for, *everything)) == 2 * len(kinds()) + 4 and f)
    silent = json.loads(found["homeassistant/binary_sensor/watchkeeper/silence/config"])
    assert shown(silent["value_template"], found["watchkeeper/summary"]) == "OFF"
    assert shown(silent["availability"][0]["value_template"], found["watchkeeper/status"]) == "online"
    listener.fixes("d1 d2", 1000, 1010)
    listener.fixes("d1", 1011, 1030)

    def alarm() -> bool:
        summary = retained(broker.port, wait_for, "watchkeeper/summary")["watchkeeper/summary"]
        return shown(silent["value_template"], summary) == "ON" and json.loads(summary)["vehicles"] == 2

    wait_for(alarm)
    summary = json.loads(retained(broker.port, wait_for, "watchkeeper/summary")["watchkeeper/summary"])
    published = [event["say"] for event in listener.alarms() if event["kind"] == "silence"]
    assert silent["json_attributes_template"] == "{{ value_json.said.silence | tojson }}"
    assert summary["said"]["silence"]["alarm"] in published
    watch.stop()
    gone = retained(broker.port, wait_for, *everything)
    assert json.loads(gone["watchkeeper/status"])["state"] == "offline"
    # another prefix: the old announcements go, new ones come
    watch = start(on(config, prefix="other"))
    wait_for(lambda: not retained(broker.port, wait_for, "homeassistant/#"))
    # they come one by one
    wait_for(lambda: len(retained(broker.port, wait_for, "other/#")) == 2 * len(kinds()) + 2)
    watch.stop()
    # turned off: nothing is left, and nothing is published again
    watch = start(config)
    wait_for(lambda: not retained(broker.port, wait_for, "other/#", "homeassistant/#", "watchkeeper/summary"))
    watch.stop()
