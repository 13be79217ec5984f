"""The configuration as a JSON Schema, for editors: completion, ranges and reasons while the file is being written.

`watchkeeper check-config --schema` prints it, `watchkeeper init` writes it next to the file, whose first line names it
as Taplo and Even Better TOML read it: `#:schema watchkeeper.schema.json`. Sections of other installed packages are in
it.

What the loader refuses for its type, range, form or name, the schema refuses too; rules between keys are the loader's.
Draft 4, because there a whole number written with a point is no integer, as for the loader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import NODEFAULT

from watchkeeper.config.guests import SECTIONS, SETTINGS, default
from watchkeeper.config.reference import about, about_section
from watchkeeper.config.section import Section, Setting, columns

# Next to the configuration file.
FILE_NAME = "watchkeeper.schema.json"
TITLE = "Watchkeeper configuration"
# Text of the file has no control characters.
_PRINTABLE = "^[^\\u0000-\\u001f\\u007f]*$"
_TYPE = {bool: "boolean", int: "integer", float: "number", str: "string", tuple: "array"}

Schema = dict[str, Any]


def json_schema() -> Schema:
    """The schema of the whole file."""
    root = _table((), f"every setting of `watchkeeper run -c FILE`; {len(SETTINGS)} keys, each with a default")
    return {"$schema": "http://json-schema.org/draft-04/schema#", "title": TITLE, **root}


def _table(path: tuple[str, ...], words: str) -> Schema:
    """A table of the file: its keys, and the tables in it."""
    keys = {s.path[-1]: _key(s) for s in SETTINGS.values() if s.path[:-1] == path}
    below = [inner for name in SECTIONS if (inner := tuple(name.split(".")))[:-1] == path]
    tables = {inner[-1]: _table(inner, about_section(default(), ".".join(inner))) for inner in below}
    return _object(keys | tables, words)


def _object(properties: Schema, words: str, required: Iterable[str] = ()) -> Schema:
    found = {"type": "object", "description": words, "additionalProperties": False, "properties": properties}
    names = list(required)
    return found | ({"required": names} if names else {})


def _key(setting: Setting) -> Schema:
    unit = f" [{setting.unit}]" if setting.unit else ""
    live = "; a reload takes it" if setting.live else ""
    found: Schema = {"type": _TYPE[setting.kind], "description": f"{setting.reason}{unit}; {setting.allowed}{live}"}
    if setting.default is not NODEFAULT and setting.default is not None and setting.table is None:
        found["default"] = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    if setting.kind in (int, float):
        found |= {"minimum": setting.low, "maximum": setting.high}
    elif setting.kind is str:
        found |= _text(setting)
    elif setting.kind is tuple:
        found["items"] = _items(setting)
        if setting.high != float("inf"):
            found["maxItems"] = int(setting.high)
    return found


def _text(setting: Setting) -> Schema:
    if setting.choices:
        return {"enum": list(setting.choices)}
    forms = [{"pattern": pattern} for pattern in (_PRINTABLE, setting.pattern) if pattern]
    return forms[0] if len(forms) == 1 else {"allOf": forms}


def _items(setting: Setting) -> Schema:
    if setting.table is None:
        return {"type": "string", **_text(setting)}
    if setting.variants is None:
        return _item(setting.table)
    tag = setting.tag
    return {"oneOf": [_item(section, {tag.key: {"enum": [name]}}) for name, section in setting.variants().items()]}


def _item(section: type[Section], tag: Schema | None = None) -> Schema:
    """One table of an array, of the type that the tag names if there are several."""
    own = columns(section)
    required = [*(tag or {}), *(s.key for s in own if s.default is NODEFAULT)]
    return _object((tag or {}) | {s.key: _key(s) for s in own}, about(section), required)
