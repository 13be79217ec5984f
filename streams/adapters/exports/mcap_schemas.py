"""The JSON Schemas of our MCAP files: our own kinds, made from messages.py, and the ones that Foxglove's panels know.

Foxglove tells a message by the name of its schema, `foxglove.LocationFix` for example, and plots what the schema calls
a number. https://docs.foxglove.dev/docs/sdk/schemas has the fields of theirs.
"""

from __future__ import annotations

from typing import Any

from watchkeeper.streams.messages import FIELDS, SIGNAL, Kind

Schema = dict[str, Any]
_NUMBER, _TEXT, _COUNT = {"type": "number"}, {"type": "string"}, {"type": "integer", "minimum": 0}
_TIME: Schema = {
    "type": "object",
    "title": "time",
    "properties": {"sec": _COUNT, "nsec": {**_COUNT, "maximum": 999_999_999}},
}

LOCATION_FIX: Schema = {
    "type": "object",
    "properties": {
        "timestamp": _TIME,
        "frame_id": {**_TEXT, "description": "the vehicle"},
        "latitude": {**_NUMBER, "description": "degrees"},
        "longitude": {**_NUMBER, "description": "degrees"},
        "altitude": {**_NUMBER, "description": "metres; ADS-B: pressure altitude"},
        "position_covariance": {"type": "array", "items": _NUMBER, "minItems": 9, "maxItems": 9},
        "position_covariance_type": {**_COUNT, "maximum": 3},
    },
}
LOG: Schema = {
    "type": "object",
    "properties": {
        "timestamp": _TIME,
        "level": {**_COUNT, "maximum": 5},
        "message": _TEXT,
        "name": {**_TEXT, "description": "the kind of alarm"},
        "file": _TEXT,
        "line": _COUNT,
    },
}
ALARM: Schema = {
    "type": "object",
    "properties": {
        "id": _TEXT, "kind": _TEXT, "state": _TEXT, "severity": _TEXT, "subjects": {"type": "array", "items": _TEXT},
        "t": _NUMBER, "t_onset": _NUMBER, "t_raised": _NUMBER, "t_cleared": {"type": ["number", "null"]},
        "score": {"type": ["number", "null"]}, "threshold": {"type": ["number", "null"]}, "say": _TEXT,
        "evidence": {"type": "object"}, "diagnosis": {"type": ["object", "null"]},
    },
}  # fmt: skip


def kind_schema(kind: Kind) -> Schema:
    """What a sample of this kind may say."""
    fields = {
        field.name: {**_NUMBER, "description": f"{field.doc} [{field.unit}]" if field.unit else field.doc}
        for field in (FIELDS[kind] if kind is not Kind.SIGNAL else FIELDS[kind][: SIGNAL.name_0])
    }
    texts = {
        "id": {**_TEXT, "description": "the vehicle"},
        "callsign": _TEXT,
        **({"signal": {**_TEXT, "description": "which number it is"}} if kind is Kind.SIGNAL else {}),
        "via": {**_TEXT, "description": "the gateway that it came through"},
    }
    return {
        "type": "object",
        "properties": {"t": {**_NUMBER, "description": "Unix seconds"}, **texts, **fields},
        "required": ["t", "id"],
    }
