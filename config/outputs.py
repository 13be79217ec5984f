"""Settings of the ways out besides MQTT: webhooks, Alertmanager, Home Assistant, messages. All are off by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from watchkeeper.config.section import Flag, Section, about, text, texts

_HTTP = r"^https?://[^\s]+$"
# one or more levels of a topic
_PREFIX = r"^[^+#\s]+$"
_NAME = r"^[a-z0-9_-]{1,32}$"
_NAME_FORM = "1 to 32 of a-z, 0-9, _ and -"


class Webhook(Section, frozen=True, kw_only=True):
    """An address that alarm events are posted to, one JSON object each."""

    name: Annotated[
        str,
        text(
            "in metrics, logs and the state directory; each webhook has its own",
            pattern=_NAME,
            form=_NAME_FORM,
        ),
    ]
    url: Annotated[str, text("where to", pattern=_HTTP, form="http://HOST/PATH or https://HOST/PATH")]
    states: Annotated[
        tuple[Literal["raised", "updated", "cleared"], ...], text("which events; updates come every alarms.update_s")
    ] = ("raised", "cleared")
    form: Annotated[
        Literal["event", "cloudevents", "cloudevents-binary"],
        text(
            "event: the bytes that MQTT has; cloudevents: the same in an envelope of CloudEvents 1.0; "
            "cloudevents-binary: the envelope in headers"
        ),
    ] = "event"
    signature: Annotated[
        Literal["watchkeeper", "standard"],
        text("how a key signs; standard: as Standard Webhooks does, with a key of the form whsec_…"),
    ] = "watchkeeper"
    secret_file: Annotated[str, text("file with the key that signs each request; empty: see secret_env")] = ""
    secret_env: Annotated[str, text("environment variable with that key; both empty: requests are not signed")] = ""
    timeout_s: Annotated[float, about("s", "an answer that takes longer counts as none", ge=0.1, le=120)] = 10.0
    retry_min_s: Annotated[float, about("s", "first pause after a failure", ge=0.05, le=60)] = 0.5
    retry_max_s: Annotated[float, about("s", "pauses double up to this, with jitter", ge=0.1, le=3600)] = 60.0
    queue_events: Annotated[
        int, about("events", "waiting; when full, what later events replace leaves first", ge=10, le=1_000_000)
    ] = 10_000

    def clashes(self) -> Iterator[tuple[str, str]]:
        """Two keys, or none to sign with."""
        if self.secret_file and self.secret_env:
            yield "secret_env", "the key is either in secret_file or in secret_env"
        if self.signature == "standard" and not (self.secret_file or self.secret_env):
            yield "signature", "there is no key to sign with: secret_file or secret_env is missing"


class Notify(Section, frozen=True, kw_only=True):
    """Messages to people: phone, chat or e-mail, through Apprise (pip install "watchkeeper[notify]")."""

    name: Annotated[
        str,
        text(
            "in metrics, logs and the state directory; no other sink has it",
            pattern=_NAME,
            form=_NAME_FORM,
        ),
    ]
    url: Annotated[
        str, text("Apprise's address of the service, such as ntfy://TOPIC; better in url_file or url_env", secret=True)
    ] = ""
    url_file: Annotated[str, text("file with that address")] = ""
    url_env: Annotated[str, text("environment variable with that address")] = ""
    kinds: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$")], ...],
        texts("only alarms of these kinds; empty: of all", form="kinds of docs/alarms.md", at_most=100),
    ] = ()
    severity: Annotated[Literal["advisory", "caution", "warning"], text("alarms below it are not sent")] = "caution"
    states: Annotated[
        tuple[Literal["raised", "risen", "cleared"], ...],
        text("risen: the severity became higher; cleared: the end of an alarm that was sent"),
    ] = ("raised", "risen", "cleared")
    burst_messages: Annotated[
        int, about("messages", "at once after a quiet time; the last of them sums up what else waits", ge=1, le=1000)
    ] = 5
    pause_s: Annotated[
        float, about("s", "after these one message each; alarms of the meantime are in one summary", ge=0.01, le=86_400)
    ] = 60.0
    timeout_s: Annotated[float, about("s", "an answer that takes longer counts as none", ge=0.1, le=120)] = 20.0
    retry_min_s: Annotated[float, about("s", "first pause after a failure", ge=0.05, le=60)] = 1.0
    retry_max_s: Annotated[float, about("s", "pauses double up to this, with jitter", ge=0.1, le=3600)] = 300.0
    queue_events: Annotated[
        int, about("events", "waiting; when full, what later events replace leaves first", ge=10, le=1_000_000)
    ] = 10_000

    def clashes(self) -> Iterator[tuple[str, str]]:
        """No address, or more than one."""
        given = [key for key in ("url", "url_file", "url_env") if getattr(self, key)]
        if len(given) != 1:
            key = given[-1] if given else "url"
            yield key, "the address is in exactly one of url, url_file and url_env"


class Alertmanager(Section, frozen=True):
    """Prometheus' Alertmanager: every active alarm is an alert there."""

    url: Annotated[
        str, text("empty: off", pattern=r"^(https?://[^\s]+)?$", form="http://HOST:9093 or https://HOST; empty: off")
    ] = ""
    resend_s: Annotated[float, about("s", "active alarms are sent again this often", ge=1, le=3600)] = 30.0
    expire_s: Annotated[
        float,
        about("s", "an alarm that is not sent again is over for Alertmanager; several times resend_s", ge=5, le=86_400),
    ] = 180.0
    timeout_s: Annotated[float, about("s", "an answer that takes longer counts as none", ge=0.1, le=120)] = 10.0


class Gdl90Out(Section, frozen=True):
    """GDL 90 for tablets in the cockpit: what is watched as traffic, with the alert bit on conflicts."""

    url: Annotated[
        str,
        text(
            "where to, a broadcast address too; tablets listen on port 4000. Empty: off",
            pattern=r"^(udp://[^\s/:@]+:\d{1,5}/?)?$",
            form="udp://HOST:PORT; empty: off",
        ),
    ] = ""
    own: Annotated[str, text("the id of the aircraft that the tablet is in; empty: none")] = ""
    max_reports: Annotated[
        int, about("aircraft", "in one round, those with an alarm first; tablets show some dozens", ge=1, le=1000)
    ] = 100


class GnssIntegrity(Section, frozen=True):
    """MAVLink's GNSS_INTEGRITY of one vehicle: whether its GPS is spoofed or jammed, for its autopilot or companion."""

    vehicle: Annotated[str, text("the id of the vehicle; empty: off")] = ""
    dry_run: Annotated[bool, text("nothing is sent: each change is logged with the bytes that would be")] = True
    url: Annotated[
        str,
        text(
            "where the vehicle, its companion or a router listens; needed unless dry_run",
            pattern=r"^(udp://[^\s/:@]+:\d{1,5}/?)?$",
            form="udp://HOST:PORT; empty: nowhere",
        ),
    ] = ""
    system: Annotated[int, about("", "MAVLink system id of the message: that of the vehicle", ge=1, le=255)] = 1
    component: Annotated[int, about("", "MAVLink component id of it; 191 is a companion computer", ge=1, le=255)] = 191
    receiver: Annotated[
        int, about("", "number of the GPS receiver, as in the vehicle's own messages", ge=0, le=255)
    ] = 0
    severity: Annotated[Literal["advisory", "caution", "warning"], text("an alarm counts from here on")] = "caution"
    confidence: Annotated[
        float,
        about("", "probability from which on a name is told; below it both are unknown", ge=0.5, le=1),
    ] = 0.8

    def clashes(self) -> Iterator[tuple[str, str]]:
        """Nowhere to send to."""
        if self.vehicle and not self.dry_run and not self.url:
            yield "url", "where to send is missing; only a dry run can do without"


class HomeAssistant(Section, frozen=True):
    """Home Assistant's MQTT discovery: one device with a sensor for each kind of alarm."""

    enabled: Flag = False
    prefix: Annotated[
        str,
        text("Home Assistant's discovery prefix", pattern=_PREFIX, form="topic levels without blanks, + or #"),
    ] = "homeassistant"
    name: Annotated[str, text("what the device is called")] = "Watchkeeper"
