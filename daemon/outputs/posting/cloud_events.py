"""Alarm events in the envelope of CloudEvents 1.0, for receivers and buses that route by it.

    specversion      1.0
    id               <alarm id>-<state>-<t>, the same for every repetition
    source           /watchkeeper/<client id>
    type             watchkeeper.alarm.raised, .updated or .cleared
    subject          <kind>/<subject>, of a pair <kind>/<a>~<b>
    time             of the event, RFC 3339; left out where the samples' time is no date, as in a simulation
    datacontenttype  application/json
    link             the alarm on the live page, if there is one; an extension
    data             the event, the bytes that MQTT subscribers see

Structured: one JSON object with all of it. Binary: the event is the body, the rest are headers that begin with ce-.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from watchkeeper.daemon.outputs.terminal import UNIX_FROM_S
from watchkeeper.detectors.alarms.events import AlarmEvent

# Printable ASCII except blank, double quote and percent: these stay as they are in a header (HTTP binding, 3.1.3.2).
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')


def attributes(event: AlarmEvent, message_id: str, client_id: str, link: str) -> dict[str, str]:
    """What the envelope says, without the data."""
    said = {
        "specversion": "1.0",
        "id": message_id,
        "source": f"/watchkeeper/{quote(client_id, safe='')}",
        "type": f"watchkeeper.alarm.{event.state}",
        "subject": f"{event.kind}/{'~'.join(event.subjects) or event.id}",
        "datacontenttype": "application/json",
    }
    if event.t >= UNIX_FROM_S:
        # a sender's clock may say anything
        with suppress(OverflowError, ValueError, OSError):
            said["time"] = datetime.fromtimestamp(event.t, UTC).isoformat(timespec="milliseconds")
    return said | ({"link": link} if link else {})


def structured(envelope: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """Headers and body of the structured form."""
    whole = {**envelope, "data": msgspec.Raw(body)}
    return {"Content-Type": "application/cloudevents+json; charset=utf-8"}, msgspec.json.encode(whole)


def binary(envelope: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """Headers and body of the binary form."""
    headers = {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in envelope.items() if name != "datacontenttype"}
    return {"Content-Type": envelope["datacontenttype"], **headers}, body
