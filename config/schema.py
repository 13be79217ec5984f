"""The configuration, typed. One table of truth: each setting carries its default, range, unit and reason.

`check-config`, the generated reference (docs/configuration.md) and `watchkeeper detectors` all read these
annotations, so a limit is written once. Sections for detectors are in config/detectors/, for live sources in
config/adapters/, for sinks besides MQTT in config/outputs.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import field

from watchkeeper.config.adapters import source_types
from watchkeeper.config.adapters.base import Source
from watchkeeper.config.detectors import Detectors
from watchkeeper.config.flink import Flink
from watchkeeper.config.history import History
from watchkeeper.config.outputs import Alertmanager, Gdl90Out, GnssIntegrity, HomeAssistant, Notify, Webhook
from watchkeeper.config.recordings import Recordings
from watchkeeper.config.section import Extensible, Flag, Section, about, tables, text, texts
from watchkeeper.config.tokens import Token
from watchkeeper.config.topology import Topology


class Broker(Section, frozen=True):
    """The MQTT broker to listen to and to publish on."""

    url: Annotated[
        str,
        text(
            "mqtt://host:port, or mqtts:// for TLS",
            pattern=r"^mqtts?://[^\s/:@]+(:\d{1,5})?/?$",
            form="mqtt://HOST[:PORT] or mqtts://HOST[:PORT]; a login goes into username and password",
        ),
    ] = "mqtt://127.0.0.1:1883"
    transport: Annotated[
        Literal["mqtt5", "aiomqtt"],
        text("mqtt5: MQTT 5, or 3.1.1 where the broker has nothing else; aiomqtt: 3.1.1 only, at many times the CPU"),
    ] = "mqtt5"
    client_id: Annotated[str, text("fixed, so that the broker keeps our session over a restart")] = "watchkeeper"
    username: Annotated[str, text("empty: no login")] = ""
    password: Annotated[str, text("better set as WATCHKEEPER_BROKER__PASSWORD than in a file", secret=True)] = ""
    ca_file: Annotated[str, text("certificate authority for mqtts://; empty: the system's")] = ""
    qos: Annotated[int, about("", "1 survives a broken connection, 0 is cheaper", ge=0, le=1)] = 1
    keepalive_s: Annotated[int, about("s", "a dead link is noticed after 1.5 of these", ge=5, le=3600)] = 30
    receive_maximum: Annotated[
        int,
        about(
            "messages",
            "sent to us without acknowledgement at most, with MQTT 5; bounds what a crash repeats",
            ge=10,
            le=65_535,
        ),
    ] = 65_535
    session_expiry_s: Annotated[
        int, about("s", "how long the broker keeps messages for us while we are away", ge=0, le=604_800)
    ] = 300
    reconnect_min_s: Annotated[float, about("s", "first pause after a lost connection", ge=0.05, le=60)] = 0.5
    reconnect_max_s: Annotated[float, about("s", "pauses double up to this, with jitter", ge=0.1, le=600)] = 30.0


_PREFIX = "one or more topic levels without blanks, + or #"


class Topics(Section, frozen=True):
    """Topic prefixes."""

    telemetry: Annotated[str, text("what we subscribe to, below this level", pattern=r"^[^+#\s]+$", form=_PREFIX)] = (
        "telemetry"
    )
    output: Annotated[str, text("what we publish, below this level", pattern=r"^[^+#\s]+$", form=_PREFIX)] = (
        "watchkeeper"
    )


class Time(Section, frozen=True):
    """Event time: when a tick may run, and what to do about clocks that jump."""

    tick_s: Annotated[
        float, about("s", "one look at the whole fleet; ADS-B positions come about once a second", ge=0.01, le=60)
    ] = 1.0
    lateness_s: Annotated[
        float,
        about(
            "s", "a tick waits this long for stragglers; later samples are dropped and counted", ge=0, le=300, live=True
        ),
    ] = 1.0
    max_jump_s: Annotated[
        float,
        about(
            "s",
            "a sample this far ahead of (or behind) the stream is set aside as a clock jump",
            ge=1,
            le=86_400,
            live=True,
        ),
    ] = 30.0
    jump_confirm_s: Annotated[
        float,
        about(
            "s",
            "jumped samples that agree with each other for this long, undisturbed, become the new time",
            ge=0.1,
            le=600,
            live=True,
        ),
    ] = 3.0
    clock_tolerance_s: Annotated[
        float,
        about(
            "s",
            "a sender whose clock is further than this from the fleet's is named, and its samples are brought to the "
            "fleet's time; half of lateness_s leaves the other half for delays",
            ge=0.05,
            le=150,
            live=True,
        ),
    ] = 0.5
    wall_tolerance_s: Annotated[
        float,
        about(
            "s",
            "live only: a warning when the samples' time is further than this from this machine's; 0: never. "
            "Simulators and recordings, which are a day or more away, keep their own time",
            ge=0,
            le=86_400,
            live=True,
        ),
    ] = 10.0
    gap_skip_s: Annotated[
        float,
        about(
            "s",
            "live, time goes on by itself at most this far beyond the newest sample; a paced replay skips longer gaps",
            ge=10,
            le=86_400,
            live=True,
        ),
    ] = 600.0
    idle_timeout_s: Annotated[
        float,
        about(
            "s", "live only: with no input for this long, time goes on by the wall clock", ge=0.1, le=3600, live=True
        ),
    ] = 2.0


class FleetLimits(Section, frozen=True):
    """Sizes of the preallocated tables."""

    max_vehicles: Annotated[
        int, about("vehicles", "hard cap; memory is reserved, not touched, up front", ge=1, le=500_000)
    ] = 20_000
    evict_idle_s: Annotated[
        float, about("s", "a vehicle unheard for this long is forgotten and its row reused", ge=10, le=86_400)
    ] = 900.0
    ring_adsb: Annotated[int, about("samples", "history kept of each aircraft's ADS-B", ge=4, le=4096)] = 32
    ring_gps: Annotated[int, about("samples", "history kept of each vehicle's GPS", ge=4, le=4096)] = 64
    ring_imu: Annotated[int, about("samples", "history kept of each vehicle's IMU", ge=4, le=8192)] = 256


class Frames(Section, frozen=True):
    """Axes of local coordinates. Named here, never guessed."""

    local: Annotated[Literal["ned", "enu"], text("axes of gps_x/y/z and gps_vx/vy/vz")] = "ned"
    body: Annotated[Literal["frd", "flu"], text("axes of imu_*")] = "frd"


class Limits(Section, frozen=True):
    """Bounds on what one message or one moment may bring."""

    max_payload_bytes: Annotated[int, about("bytes", "larger payloads are refused unread", ge=1024, le=268_435_456)] = (
        4_194_304
    )
    max_sample_bytes: Annotated[
        int,
        about(
            "bytes",
            "a message with one sample needs a few hundred; larger ones are refused unread",
            ge=256,
            le=1_048_576,
        ),
    ] = 8192
    max_frame_rows: Annotated[int, about("rows", "samples in one columnar frame", ge=1, le=10_000_000)] = 1_000_000
    queue_messages: Annotated[
        int,
        about(
            "messages",
            "waiting between the network and the pipeline; when full none is acknowledged, so that the broker waits",
            ge=100,
            le=10_000_000,
        ),
    ] = 200_000
    max_gateways: Annotated[
        int, about("names", "distinct `via` names; further ones count as none", ge=1, le=100_000)
    ] = 1024
    pending_samples: Annotated[
        int,
        about("samples", "held back for lateness; when full new ones are dropped and counted", ge=1000, le=100_000_000),
    ] = 4_000_000


class Alarms(Section, frozen=True):
    """The alarm table."""

    max_active: Annotated[
        int, about("alarms", "further alarms are counted, not raised", ge=1, le=1_000_000, live=True)
    ] = 10_000
    update_s: Annotated[
        float, about("s", "an active alarm repeats itself with fresh evidence this often", ge=1, le=3600, live=True)
    ] = 10.0


class Diagnosis(Section, frozen=True):
    """Incidents: alarms with one cause, and what that cause is."""

    enabled: Flag = True
    settle_s: Annotated[
        float, about("s", "wait for the alarms that belong together before asking what is wrong", ge=0, le=60)
    ] = 3.0
    join_s: Annotated[
        float, about("s", "an alarm behind the same gateway joins an incident that had one this recently", ge=0, le=600)
    ] = 10.0
    retry_s: Annotated[float, about("s", "ask again this often, while answers may still change", ge=1, le=600)] = 4.0
    retries: Annotated[
        int, about("times", "ask again at most so often after the last alarm that joined", ge=0, le=100)
    ] = 5
    per_tick: Annotated[int, about("incidents", "looked into in one tick; the others wait", ge=1, le=1000)] = 4
    ping_s: Annotated[
        float, about("s", "every gateway is pinged this often, if it answers or not; 0: never", ge=0, le=3600)
    ] = 5.0
    sure: Annotated[float, about("", "probability at which no more is asked", ge=0.5, le=1)] = 0.99
    switch_odds: Annotated[
        float,
        about(
            "times",
            "another diagnosis takes the place of the one that was told when it is so many times as probable: a name "
            "that flips with every look is believed by nobody",
            ge=1,
            le=1000,
        ),
    ] = 4.0
    max_incidents: Annotated[int, about("incidents", "open at once; further alarms stand alone", ge=1, le=10_000)] = 500


class Sinks(Extensible, frozen=True):
    """Where alarms go."""

    mqtt: Flag = True
    terminal: Flag = True
    encoding: Annotated[Literal["json", "msgpack"], text("alarm payloads on MQTT")] = "json"
    state_dir: Annotated[str, text("journal and snapshot; empty: nothing survives a restart")] = "watchkeeper-state"
    snapshot_s: Annotated[float, about("s", "how often the whole state is saved", ge=1, le=3600)] = 10.0
    journal_fsync: Annotated[bool, text("have alarms on disk at once: a power cut loses milliseconds")] = True
    input_log_mb: Annotated[
        int,
        about(
            "MB",
            "disk for input that no snapshot has yet, 130 bytes a message; half full: a snapshot; full: oldest goes",
            ge=32,
            le=65_536,
        ),
    ] = 256
    input_fsync: Annotated[
        bool,
        text(
            "acknowledge a message only when it is on disk: survives a power cut, not only a crash; costs disk writes"
        ),
    ] = False


class Http(Section, frozen=True):
    """Metrics, health, the API and the live page."""

    enabled: Flag = True
    host: Annotated[str, text("0.0.0.0 or ::: other machines too, which need one of the tokens")] = "127.0.0.1"
    port: Annotated[int, about("", "0: any free port", ge=0, le=65_535)] = 9108
    page: Annotated[bool, text("serve the live page; without it there are metrics and health only")] = True
    viewers: Annotated[
        int, about("pages", "open at once; each is sent some 40 bytes per vehicle and second", ge=1, le=1000)
    ] = 32
    max_connections: Annotated[
        int, about("connections", "open at once; further ones are answered with 503", ge=4, le=10_000)
    ] = 256
    max_per_peer: Annotated[
        int, about("connections", "open at once from one address; a proxy is one address", ge=2, le=10_000)
    ] = 64
    public_name: Annotated[
        str,
        text(
            "the name in the address bar when a proxy stands before us; names of the local network need none",
            pattern=r"^[A-Za-z0-9.-]*$",
            form="a host name without port",
        ),
    ] = ""
    public_url: Annotated[
        str,
        text(
            "the page's address for others, in the links of messages; empty: made of public_name, or of host and port. "
            "A name with dots must be public_name as well",
            pattern=r"^(https?://[^\s?#]+)?$",
            form="http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]",
        ),
    ] = ""
    site: Annotated[
        str,
        text(
            "where the receiver stands: the outline of its range on the page is drawn around it",
            pattern=r"^(-?\d{1,2}(\.\d+)?,-?\d{1,3}(\.\d+)?)?$",
            form="latitude,longitude in degrees, such as 47.46,8.55",
        ),
    ] = ""
    tiles: Annotated[
        str,
        text(
            "map tiles instead of the built-in map; every browser that opens the page then asks that server",
            pattern="^(https?://[A-Za-z0-9.:-]+/[^\\s;,'\"<>]*[{]z[}][^\\s;,'\"<>]*)?$",
            form="an address with {z}, {x} and {y}",
        ),
    ] = ""
    tiles_credit: Annotated[str, text("whose map it is, shown in its corner; map servers ask for it")] = ""
    require_token: Annotated[
        bool, text("on this machine too; without it whoever is on this machine may look and operate")
    ] = False
    open_metrics: Annotated[
        bool, text("/metrics, and the reasons of /readyz, without a token from other machines; for Prometheus")
    ] = False
    trusted: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Fa-f.:]+(/\d{1,3})?$")], ...],
        texts(
            "treated as this machine: for a port that a container engine publishes on loopback only",
            form="addresses or networks such as 172.16.0.0/12",
            at_most=20,
        ),
    ] = ()
    tokens: Annotated[tuple[Token, ...], tables("who may come from other machines; see docs/api.md", at_most=100)] = ()


class Log(Section, frozen=True):
    """Structured logs on standard error."""

    level: Annotated[Literal["debug", "info", "warning", "error"], text("least severe line shown", live=True)] = "info"
    format: Annotated[Literal["text", "json"], text("json for log collectors", live=True)] = "text"


class Config(Section, frozen=True):
    """Every setting of `watchkeeper run -c FILE`."""

    profile: Annotated[
        Literal["high-sensitivity", "balanced", "high-specificity"],
        text("how many measurement epochs in a row make an alarm: 3, 5 or 10", live=True),
    ] = "balanced"
    # keys of the file itself come before the tables
    sources: Annotated[
        tuple[Source, ...],
        tables(
            "receivers, vehicles and simulations to listen to next to the broker; see docs/adapters",
            at_most=100,
            variants=source_types,
        ),
    ] = ()
    webhooks: Annotated[
        tuple[Webhook, ...], tables("addresses that alarm events are posted to; see docs/outputs/sinks.md", at_most=20)
    ] = ()
    notify: Annotated[
        tuple[Notify, ...],
        tables("phones, chats and mailboxes that alarms are sent to; see docs/outputs/sinks.md", at_most=20),
    ] = ()
    broker: Broker = field(default_factory=Broker)
    topics: Topics = field(default_factory=Topics)
    time: Time = field(default_factory=Time)
    fleet: FleetLimits = field(default_factory=FleetLimits)
    frames: Frames = field(default_factory=Frames)
    limits: Limits = field(default_factory=Limits)
    alarms: Alarms = field(default_factory=Alarms)
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    topology: Topology = field(default_factory=Topology)
    sinks: Sinks = field(default_factory=Sinks)
    alertmanager: Alertmanager = field(default_factory=Alertmanager)
    home_assistant: HomeAssistant = field(default_factory=HomeAssistant)
    gdl90: Gdl90Out = field(default_factory=Gdl90Out)
    gnss_integrity: GnssIntegrity = field(default_factory=GnssIntegrity)
    history: History = field(default_factory=History)
    recordings: Recordings = field(default_factory=Recordings)
    http: Http = field(default_factory=Http)
    log: Log = field(default_factory=Log)
    flink: Flink = field(default_factory=Flink)
    detectors: Detectors = field(default_factory=Detectors)


DEFAULT: Config = msgspec.convert({}, Config)
