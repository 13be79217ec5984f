"""The parts of each compose folder by hand on loopback, with the folder's own files: an alarm pages once, with a link.

mosquitto, the daemon, Prometheus and Alertmanager are real programs; what differs from the containers are host names,
ports and folders. Two aircraft meet, and part again. Takes most of a minute per folder.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from waiting import wait_for

from watchkeeper.daemon.demo.broker import free_port

DEGREES_A_SECOND = 450.0 / 3600.0 / 60.0
Run = Callable[..., Any]


class Rig:
    """Ports of the parts, and their configuration files with these ports and folders instead of the containers'."""

    def __init__(self, deploy: Path, situation: str, folder: Path) -> None:
        self.deploy, self.situation, self.folder = deploy, situation, folder
        names = ("mosquitto", "watchkeeper", "prometheus", "alertmanager", "receiver", "mavlink")
        self.port = {name: free_port() for name in names}
        self.page = f"http://127.0.0.1:{self.port['watchkeeper']}"

    def file(self, name: str, source: Path, **more: str) -> Path:
        text = source.read_text()
        for part, port in (("mosquitto", 1883), ("alertmanager", 9093), ("watchkeeper", 9108), ("receiver", 30005)):
            text = text.replace(f"{part}:{port}", f"127.0.0.1:{self.port[part]}")
        text = text.replace("127.0.0.1:9108", f"127.0.0.1:{self.port['watchkeeper']}")
        for old, new in more.items():
            assert old in text, f"{source}: {old}"
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, run: Run, tool: Callable[[str, str], str]) -> None:
        self.folder.chmod(0o777)
        swap = {"listener 1883": f"listener {self.port['mosquitto']} 127.0.0.1", "/mosquitto/data/": f"{self.folder}/"}
        conf = self.file("mosquitto.conf", self.deploy / "mosquitto" / "compose.conf", **swap)
        run(tool("mosquitto", "mosquitto"), "-c", str(conf))
        swap = {"/var/lib/watchkeeper": f"{self.folder}/state", '"0.0.0.0"': '"127.0.0.1"'}
        if self.situation == "drone":
            swap["udp://0.0.0.0:14550"] = f"udp://127.0.0.1:{self.port['mavlink']}"
        own = self.file("watchkeeper.toml", self.deploy / "compose" / self.situation / "watchkeeper.toml", **swap)
        own.write_text(own.read_text().replace("[http]\n", f"[http]\nport = {self.port['watchkeeper']}\n"))
        with (self.folder / "daemon.log").open("w") as log:
            run(sys.executable, "-m", "watchkeeper.daemon.cli", "run", "-c", str(own), stderr=log)
        rules = str(self.deploy / "prometheus" / "rules.yml")
        swap = {"/etc/prometheus/rules.yml": rules, "_interval: 5s": "_interval: 1s"}
        config = self.file("prometheus.yml", self.deploy / "prometheus" / "prometheus.yml", **swap)
        listen = f"--web.listen-address=127.0.0.1:{self.port['prometheus']}"
        storage = f"--storage.tsdb.path={self.folder / 'tsdb'}"
        run(tool("prometheus", "prometheus"), f"--config.file={config}", storage, listen)
        config = self.file("alertmanager.yml", self.deploy / "prometheus" / "alertmanager.yml")
        words = (f"--config.file={config}", f"--storage.path={self.folder / 'am'}", "--cluster.listen-address=")
        program = tool("prometheus-alertmanager", "prometheus-alertmanager")
        run(program, *words, f"--web.listen-address=127.0.0.1:{self.port['alertmanager']}")


def fly(port: int, seconds: int) -> None:
    """Two aircraft towards each other on the equator, 24 NM apart, a report of each every second."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    wait_for(lambda: not client.connect("127.0.0.1", port))
    client.loop_start()
    for second in range(seconds):
        gone = second * DEGREES_A_SECOND
        for name, lon, track in (("east", gone, 90), ("west", 0.4 - gone, 270)):
            report = {
                "t": time.time(), "lat": 0.0, "lon": lon, "alt_ft": 30000, "gs_kt": 450, "trk_deg": track, "vs_fpm": 0
            }  # fmt: skip
            client.publish(f"telemetry/adsb/{name}", json.dumps(report), qos=1)
        time.sleep(1.0)
    client.disconnect()
    client.loop_stop()


@pytest.mark.long
@pytest.mark.parametrize("situation", ["receiver", "drone", "bench"])
def test_an_alarm_reaches_alertmanager_once_and_its_link_opens_it(
    situation: str, deploy: Path, tool: Callable[[str, str], str], tmp_path: Path, run: Run,
    answer: Callable[..., Any], browser: Any,
) -> None:  # fmt: skip
    rig = Rig(deploy, situation, tmp_path)
    rig.start(run, tool)
    answer(f"{rig.page}/readyz", within_s=240.0)
    alerts = f"http://127.0.0.1:{rig.port['alertmanager']}/api/v2/alerts"
    prometheus = f"http://127.0.0.1:{rig.port['prometheus']}/api/v1"
    answer(f"{prometheus}/query?query=up", until=lambda a: a["data"]["result"])
    fly(rig.port["mosquitto"], 12)
    raised = answer(f"{alerts}?active=true", until=lambda a: any(x["labels"].get("subject") == "east~west" for x in a))

    pairs = [alert for alert in raised if "east~west" in json.dumps(alert) or "onflict" in alert["labels"]["alertname"]]
    assert [alert["labels"]["kind"] for alert in pairs] == ["conflict"], "once, and by nobody else"
    (alert,) = pairs
    link = alert["generatorURL"]
    assert link == alert["annotations"]["link"]
    assert link.startswith(f"{rig.page}/#alarm=")
    with browser.new_page() as page:
        page.goto(link)
        # no wait_for_function: it would ask in the page's own script, which its content policy forbids
        row = page.locator(f'[data-id="{alert["annotations"]["alarm_id"]}"]')
        row.locator("[aria-expanded=true]").wait_for()
        assert "east" in row.inner_text()
        assert "alarm=" in page.url

    answer(f"{prometheus}/query?query=watchkeeper_ready", until=lambda a: a["data"]["result"][0]["value"][1] == "1")
    rules = [rule for group in answer(f"{prometheus}/rules")["data"]["groups"] for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}
    assert "ConflictPredicted" not in {rule["name"] for rule in rules}
    targets = answer(
        f"{prometheus}/targets", until=lambda a: all(t["health"] != "unknown" for t in a["data"]["activeTargets"])
    )
    health = {target["labels"]["job"]: target["health"] for target in targets["data"]["activeTargets"]}
    assert health["watchkeeper"] == "up"
    # they are not heard any more: the alarm ends, and Alertmanager is told
    answer(f"{alerts}?active=true", until=lambda a: all(x["labels"].get("subject") != "east~west" for x in a))
