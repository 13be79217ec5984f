"""docs/messages.md from the schema: `python -m watchkeeper.streams.codec.reference > docs/messages.md`."""

from __future__ import annotations

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.codec.reasons import REASONS
from watchkeeper.streams.messages import FIELDS, ID_MAX, Drop, Kind
from watchkeeper.streams.signals import SIGNAL_NAME_MAX

INTRO = """# Messages

Generated from `streams/messages.py` by `make docs`; edit that file, not this one.

## In: one sample per message

Topic `{telemetry}/<kind>/<id>`, payload a MessagePack map or, when its first byte is `{{`, a JSON object with `t`
(Unix seconds, or seconds of a simulation) and the fields below. `id` may be repeated in the payload and must then
agree with the topic. `via` names the gateway a sample came through, `callsign` is shown to people. Fields that are
missing, null or NaN are absent; fields not listed here are ignored. Ids have at most {id_max} printable characters;
in topics `/ + # ~ %` and blanks are percent-encoded.

    mosquitto_pub -t {telemetry}/adsb/4ca7b3 -m \\
      '{{"t": 1700000000, "lat": 50.03, "lon": 8.57, "alt_ft": 35000, "gs_kt": 450, "trk_deg": 90, "vs_fpm": 0}}'

## In: frames

Topic `{telemetry}/<kind>`, a map `{{"v": 1, "id": [...], "t": ..., "<field>": ...}}`. Each field is a column with one
value per id: MessagePack bin of little-endian f8 (or f4), or a list of numbers (which is what JSON has). `t` is one
number for all, or a column. `via` is one name or a list. A frame of 100 samples costs about as much as three single
messages.

## Streams
"""

SIGNALS = """
### signal

Any numbers that a vehicle sends, by names of its own. Names have at most {name_max} characters of
`A-Z a-z 0-9 _ . : / [ ] -`; numbers are in the sender's own unit; true and false are 1 and 0; a word is a state, of
which the first eight characters count. `armed` and `mode` say in which state the vehicle was
([signal](detectors/signal.md)).

    {telemetry}/signal/quad-3   {{"t": 1700000000, "battery_v": 15.2, "motor_1_rpm": 5210, "armed": true,
                               "mode": "MISSION"}}

A frame has a column for each name, with one value per id; or, long, one row per value:
`{{"v": 1, "id": [...], "t": ..., "signal": ["battery_v", ...], "value": ...}}`. In tables (CSV, Parquet, frames of
pandas) a row of the kind `signal` has its name in the column `signal` and its number in `value`.
"""

OUTRO = """
## What is refused

Nothing bad stops the stream. Each refused payload or sample is counted in
`watchkeeper_drops_total{{stream, reason}}`, and payloads go (rate-limited) to `{output}/deadletter` with topic, reason
and the first bytes.

| reason | when |
|---|---|
{reasons}

## Out

| topic | payload |
|---|---|
| `{output}/alarm/<kind>/<subject>` | one step of an alarm's life; QoS 1, retained while active, its end for a moment |
| `{output}/incident/<id>` | alarms with one cause, as an alarm event of kind `incident`; QoS 1, retained while open |
| `{output}/ping/<gateway>` | `{{"t"}}`, our wall clock, every `diagnosis.ping_s`; QoS 0 |
| `{output}/status` | `{{"state": "online"}}` or `offline` (also the last will); retained |
| `{output}/watch/<id>` | who watches a vehicle, since when, who does not and why ([coverage](coverage.md)); retained |
| `{output}/deadletter` | `{{"topic", "reason", "size", "payload"}}` of a refused payload; QoS 0, rate-limited |

An alarm event (a pair's subject is `<a>~<b>` with a < b):

| field | meaning |
|---|---|
| `id` | stable through the alarm's whole life, over restarts too: derives from kind, subjects and onset |
| `kind` | what is wrong; [alarms.md](alarms.md) lists the kinds with their evidence |
| `state` | `raised`, `updated` (worse, or fresh evidence after `alarms.update_s`), `cleared` |
| `severity` | `advisory`, `caution`, `warning`; how it [changes](detectors/incidents.md#how-steady-an-alarm-is) |
| `subjects` | one vehicle id, two in order, or the name of a place |
| `t` | event time of this step; `t_onset`, `t_raised`, `t_cleared` (null until then) likewise |
| `score`, `threshold` | the measure of the anomaly, and the value from which it counts |
| `evidence` | numbers with units in their names, `causes` where a detector names them |
| `diagnosis` | null, or what is wrong and where: `type`, `location`, `confidence`, `evidence`, `alternatives` |
| `ended` | null until `cleared`, then [how it ended](alarms.md#how-an-alarm-ended) |
| `say` | the event as one sentence for a person, with callsigns where they are known; every output shows these words |
| `incident` | null, or the id of the incident that this alarm is a symptom of |
| `worst` | the worst moment since `raised`: `t`, `score`, `evidence`; of the highest score or the least separation |

## Gateways that answer

A ping on `{output}/ping/<gateway>` is answered by a sample of the stream `link` about the gateway itself, with the
ping's `t` as `echo_t`. We fill in `rtt_s` when it arrives:

    {telemetry}/link/gw-1   {{"t": 1700000000.2, "echo_t": 1700000000.1, "load": 0.3}}

A gateway that knows more may say so, every few seconds or when it is pinged: one `link` sample per vehicle about its
port. The broker's host may do the same for gateways, and a vehicle for its sensors (id `<vehicle>/gps`).

    {telemetry}/link/uav-3  {{"t": 1700000000.2, "carrier": 1, "heard": 0.0, "filtered": 0, "errors": 0, "backlog_s": 0,
                            "rtt_s": 0.04}}

Nothing of this is required. Without it the diagnosis cannot tell some faults apart, and its confidence says so.
"""


def reference_markdown() -> str:
    """The whole page."""
    topics, limits = Topics(), Limits()
    parts = [INTRO.format(telemetry=topics.telemetry, id_max=ID_MAX)]
    for kind in Kind:
        if kind is Kind.SIGNAL:
            parts.append(SIGNALS.format(telemetry=topics.telemetry, name_max=SIGNAL_NAME_MAX))
            continue
        parts.append(f"\n### {kind.word}\n\n| field | unit | range | required | meaning |\n|---|---|---|---|---|")
        for f in FIELDS[kind]:
            needed = "yes" if f.required else ""
            least = f", none below {f.least:g} but 0" if f.least else ""
            parts.append(f"| `{f.name}` | {f.unit or '-'} | {f.lo:g} to {f.hi:g}{least} | {needed} | {f.doc} |")
        if kind is Kind.GPS:
            parts.append("\nEither `gps_x` and `gps_y` or `lat` and `lon` must be there.")
    reasons = "\n".join(f"| `{r}` | {REASONS[r].format(sample=limits.max_sample_bytes)} |" for r in Drop.ALL)
    parts.append(OUTRO.format(telemetry=topics.telemetry, output=topics.output, reasons=reasons))
    return "\n".join(parts)


if __name__ == "__main__":
    print(reference_markdown(), end="")
