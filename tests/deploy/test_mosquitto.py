"""deploy/mosquitto in a real mosquitto, by the commands of docs/deploy.md: TLS, logins, each vehicle for itself."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from waiting import PATIENCE_S, end_program, until, wait_for

from watchkeeper.config.schema import Broker
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.streams.mqtt.transport import make_transport

from where import DOCS

LOGINS = {"watchkeeper": "w-secret", "viewer": "v-secret", "gateway": "g-secret", "drone7": "d-secret"}


@dataclass(frozen=True)
class Secured:
    port: int
    ca: Path


def commands() -> list[str]:
    """What docs/deploy.md tells to type for the broker, line by line."""
    text = (DOCS / "deploy.md").read_text()
    at = text.index("## The broker, with TLS and an ACL")
    section = text[at : text.index("\n## ", at + 1)]
    return [line[4:] for line in section.splitlines() if line.startswith("    ")]


def type_them(folder: Path, deploy: Path) -> None:
    """The commands, each by itself, with /etc/mosquitto in `folder` and localhost as the broker's name."""
    (folder / "certs").mkdir()
    typed = commands()
    assert typed[-1] == "systemctl restart mosquitto"
    at = deploy.parent
    for line in typed[:-1]:
        words = shlex.split(line.replace("/etc/mosquitto", str(folder)).replace("broker.example", "localhost"))
        if words[0] == "cd":
            at = Path(words[1])
            continue
        if words[0] == "mosquitto_passwd":  # it would ask on the terminal
            words = [*words[:1], "-b", *words[1:], LOGINS[words[-1]]]
        if words[0] == "echo":
            (at / words[-1]).write_text(words[1] + "\n")
            continue
        subprocess.run(words, cwd=at, check=True, capture_output=True)


@pytest.fixture(scope="module")
def secured(
    deploy: Path, tool: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    program = tool("mosquitto", "mosquitto")
    tool("mosquitto_passwd", "mosquitto")
    tool("openssl", "openssl")
    if os.geteuid() != 0 or "mosquitto" not in {group.gr_name for group in grp.getgrall()}:
        pytest.skip("the commands are for root, on a machine with Debian's mosquitto")
    folder, port = tmp_path_factory.mktemp("mosquitto"), free_port()
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    type_them(folder, deploy)
    data = folder / "data"
    data.mkdir()
    shutil.chown(data, "mosquitto")  # as Debian's package makes /var/lib/mosquitto
    conf = folder / "mosquitto.conf"
    text = conf.read_text().replace("listener 8883", f"listener {port} 127.0.0.1")
    conf.write_text(text.replace("/etc/mosquitto", str(folder)).replace("/var/lib/mosquitto/", f"{data}/"))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, "-c", str(conf)], stderr=log)
    wait_for(lambda: "running" in (folder / "log").read_text() or process.poll() is not None)
    assert process.poll() is None, (folder / "log").read_text()
    assert Path(f"/proc/{process.pid}").stat().st_uid == pwd.getpwnam("mosquitto").pw_uid, "it runs as root"
    yield Secured(port, folder / "certs" / "ca.crt")
    end_program(process)


@pytest.mark.parametrize("name", ["mosquitto.conf", "compose.conf"])
def test_a_broker_that_is_killed_does_not_bring_back_alarms_that_ended_long_before(
    name: str, deploy: Path, tool: Callable[[str, str], str], tmp_path: Path
) -> None:
    """The interval of the file, on a broker without the parts that need certificates; stepped from 5 s to 1 s."""
    text = (deploy / "mosquitto" / name).read_text()
    kept = [line for line in text.splitlines() if line.startswith(("persistence ", "autosave"))]
    assert "autosave_interval 5" in kept, "a cleared alarm is on disk within seconds"
    port = free_port()
    tmp_path.chmod(0o777)
    conf = tmp_path / "mosquitto.conf"
    lines = [*kept, f"listener {port} 127.0.0.1", "allow_anonymous true", f"persistence_location {tmp_path}/"]
    conf.write_text("\n".join(lines).replace("autosave_interval 5", "autosave_interval 1") + "\n")

    def retained() -> list[str]:
        words = (tool("mosquitto_sub", "mosquitto-clients"), "-p", str(port), "-t", "w/#", "-W", "1", "-F", "%t")
        return subprocess.run(words, check=False, capture_output=True, text=True).stdout.split()

    def say(topic: str, *what: str) -> None:
        subprocess.run(["mosquitto_pub", "-p", str(port), "-q", "1", "-r", "-t", topic, *what], check=True)

    def start() -> subprocess.Popen[bytes]:
        started = subprocess.Popen([tool("mosquitto", "mosquitto"), "-c", str(conf)], stderr=subprocess.DEVNULL)
        wait_for(lambda: listening(port))
        return started

    process = start()
    try:
        say("w/ended", "-m", "x")
        say("w/active", "-m", "x")
        wait_for((tmp_path / "mosquitto.db").exists)
        say("w/ended", "-n")
        saved = (tmp_path / "mosquitto.db").stat().st_mtime_ns
        wait_for(lambda: (tmp_path / "mosquitto.db").stat().st_mtime_ns > saved)
        process.kill()
        process.wait()
        process = start()
        assert retained() == ["w/active"]
    finally:
        process.kill()
        process.wait()


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Client:
    """A paho client that knows whether it was let in, and what it heard."""

    def __init__(self, secured: Secured, user: str, password: str | None = None, *, listen: str = "") -> None:
        self.heard: list[str] = []
        self.code: Any = None
        self._settled = threading.Event()
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        if user:
            self._client.username_pw_set(user, LOGINS.get(user, "") if password is None else password)
        self._client.tls_set(str(secured.ca))
        self._client.on_message = lambda _c, _u, m: self.heard.append(m.topic)
        self._client.on_connect = lambda _c, _u, _f, code, _p: self._connected(code, listen)
        self._client.on_subscribe = lambda *_: self._settled.set()
        self._client.connect("localhost", secured.port)
        self._client.loop_start()
        assert self._settled.wait(PATIENCE_S)

    def _connected(self, code: Any, listen: str) -> None:
        self.code = code
        if code.is_failure or not listen:
            self._settled.set()
        else:
            self._client.subscribe(listen, qos=1)

    def say(self, topic: str) -> bool:
        """True if the broker let it through: MQTT 5 tells (reason code 135 is "not authorized")."""
        answers: list[Any] = []
        self._client.on_publish = lambda _c, _u, _m, reason, _p: answers.append(reason)
        self._client.publish(topic, b"{}", qos=1)
        return not wait_for(lambda: answers)[0].is_failure

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def client(secured: Secured) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def make(*words: Any, **options: Any) -> Client:
        made.append(Client(secured, *words, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ("user", "may", "may_not"),
    [
        (
            "gateway",
            ["telemetry/gps/anyone", "telemetry/adsb"],
            ["watchkeeper/alarm/conflict/a~b", "watchkeeper/status"],
        ),
        ("drone7", ["telemetry/gps/drone7", "telemetry/imu/drone7"], ["telemetry/gps/drone8", "watchkeeper/status"]),
        ("watchkeeper", ["watchkeeper/status", "homeassistant/sensor/x/y/config"], ["telemetry/gps/drone7"]),
        ("viewer", [], ["watchkeeper/status", "telemetry/gps/drone7"]),
    ],
)
def test_the_acl_lets_everybody_say_what_is_theirs(
    client: Callable[..., Client], user: str, may: list[str], may_not: list[str]
) -> None:
    someone = client(user)
    assert [topic for topic in may if not someone.say(topic)] == []
    assert [topic for topic in may_not if someone.say(topic)] == []


def test_a_viewer_hears_alarms_and_no_telemetry(client: Callable[..., Client]) -> None:
    viewer = client("viewer", listen="#")
    daemon = client("watchkeeper", listen="telemetry/#")
    client("drone7").say("telemetry/gps/drone7")
    daemon.say("watchkeeper/alarm/silence/drone7")
    wait_for(lambda: viewer.heard and daemon.heard)
    assert viewer.heard == ["watchkeeper/alarm/silence/drone7"]
    assert daemon.heard == ["telemetry/gps/drone7"]


@pytest.mark.parametrize(("user", "password"), [("", None), ("drone7", "wrong"), ("nobody", "x")])
def test_without_a_right_login_nobody_enters(client: Callable[..., Client], user: str, password: str | None) -> None:
    assert client(user, password).code.is_failure


def test_without_tls_nobody_enters(secured: Secured) -> None:
    plain = paho.Client(paho.CallbackAPIVersion.VERSION2)
    entered = threading.Event()
    plain.on_connect = lambda *_: entered.set()
    plain.connect("127.0.0.1", secured.port)
    plain.loop_start()
    assert not entered.wait(0.5)
    plain.loop_stop()
    stranger = paho.Client(paho.CallbackAPIVersion.VERSION2)
    stranger.tls_set()  # the system's authorities, not ours
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger.connect("localhost", secured.port)


@pytest.mark.parametrize("transport", ["mqtt5", "aiomqtt"])
def test_our_own_transports_enter_and_hear(secured: Secured, client: Callable[..., Client], transport: Any) -> None:
    async def scene() -> None:
        heard: list[str] = []
        settings = Broker(
            url=f"mqtts://localhost:{secured.port}", transport=transport, client_id=f"test-{transport}",
            username="watchkeeper", password=LOGINS["watchkeeper"], ca_file=str(secured.ca), session_expiry_s=0,
        )  # fmt: skip
        made = make_transport(settings, subscribe=["telemetry/#"], on_message=lambda topic, _: heard.append(topic))
        task = asyncio.create_task(made.run())
        await until(lambda: made.connected)
        async with asyncio.timeout(PATIENCE_S):
            assert await made.publish("watchkeeper/status", b"{}", retain=True)
            # the other tests share this broker, and would hear it
            assert await made.publish("watchkeeper/status", b"", retain=True)
        drone = await asyncio.to_thread(client, "drone7")
        await asyncio.to_thread(drone.say, "telemetry/gps/drone7")
        await until(lambda: heard)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert heard == ["telemetry/gps/drone7"]

    asyncio.run(scene())
