"""The pieces that settings are made of: a section, and what is said about each key (range, unit, reason).

`settings()` reads a section's annotations back as a flat table of `Setting`s. The loader checks values with it,
the reference and the command line print it. A section may also be the item of an array of tables: the array is one
`Setting`, and `columns()` are those of its items. Items may be of several types, each with keys of its own: then
`tag` is the key that chooses the type, the `tag_field` of their common base, and `variants()` has a section for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields, replace


def about(unit: str, reason: str, *, ge: float | None = None, le: float | None = None, live: bool = False) -> Meta:
    """Range, unit and reason of a numeric setting. One that is `live` takes effect while the daemon runs (SIGHUP)."""
    return Meta(ge=ge, le=le, description=reason, extra={"unit": unit, "live": live})


def text(reason: str, *, pattern: str | None = None, form: str = "", secret: bool = False, live: bool = False) -> Meta:
    """The reason of a setting that is text; `form` says in words what `pattern` asks, a `secret` is never shown."""
    return Meta(description=reason, pattern=pattern, extra={"unit": "", "form": form, "secret": secret, "live": live})


def tables(reason: str, *, at_most: int, live: bool = False, variants: Variants | None = None) -> Meta:
    """The reason of an array of tables, how many it may hold, and of which types, if there are several."""
    return Meta(description=reason, max_length=at_most, extra={"unit": "", "live": live, "variants": variants})


def texts(reason: str, *, form: str, at_most: int, live: bool = False) -> Meta:
    """The reason of an array of texts, what they are, and how many it may hold; the items' pattern is their own."""
    return Meta(description=reason, max_length=at_most, extra={"unit": "", "form": form, "live": live})


Flag = Annotated[bool, text("on or off")]
# An item of such an array.
Name = Annotated[str, Meta(pattern=r"\S")]


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the TOML file. Unknown keys are errors: a misspelt threshold must not pass silently."""

    def clashes(self) -> Iterable[tuple[str, str]]:
        """For an item of an array of tables: the rules between its keys that it breaks, as key to blame and reason."""
        return ()


class Extensible(Section, frozen=True):
    """A section to which components of other packages add sections of their own (guests.py)."""

    guests: tuple[tuple[str, Section], ...] = ()

    def __getattr__(self, name: str) -> Section:
        for known, section in self.guests:
            if known == name:
                return section
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def sections(self) -> dict[str, Section]:
        """Every section in this one by name, those of guests last."""
        own = {name: getattr(self, name) for name in self.__struct_fields__ if name != "guests"}
        return {name: section for name, section in own.items() if isinstance(section, Section)} | dict(self.guests)

    def replaced(self, sections: Mapping[str, Section]) -> Self:
        """The same with these sections instead of those of the same names."""
        guests = tuple((name, sections.get(name, section)) for name, section in self.guests)
        own = {name: section for name, section in sections.items() if name not in dict(self.guests)}
        return replace(self, guests=guests, **own)


# The sections of an array whose tables are of several types; asked late, because packages may bring more of them.
Variants = Callable[[], Mapping[str, type[Section]]]

# How each type is called in messages. TOML's own words, except that "string" is "text".
_WORD: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text",
    list: "an array", tuple: "an array", dict: "a table",
}  # fmt: skip
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
# Lone surrogates are how Python carries environment bytes that are not UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def word_of(value: object) -> str:
    """What kind of thing a wrong value is, in the words of the messages."""
    return {**_WORD, bool: "a flag", float: "a decimal number"}.get(type(value), f"a {type(value).__name__}")


def spell(number: float) -> str:
    """A number as one would type it into the file: 0.05, 30, 4_194_304."""
    if isinstance(number, float) and not number.is_integer():
        return repr(number)
    return f"{int(number):_}" if abs(number) >= 10_000 else str(int(number))


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: where it is, what it may hold, and why it is there.

    `kind` is the type of its value; a `tuple` holds any number of the `choices`, up to `high` of the `table`, or up to
    `high` texts of the `pattern`. The default of a key that must be given is msgspec.NODEFAULT, that of one that may be
    absent None. `live`: a new value takes effect while the daemon runs, any other waits for a restart.
    """

    path: tuple[str, ...]
    kind: type
    default: Any
    unit: str
    reason: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    pattern: str = ""
    form: str = ""
    secret: bool = False
    table: type[Section] | None = None
    live: bool = False
    variants: Variants | None = None

    @property
    def tag(self) -> Setting:
        """The key that says of which type a table of this array is."""
        assert self.table is not None
        assert self.variants is not None
        name = self.table.__struct_config__.tag_field or ""
        return Setting((name,), str, NODEFAULT, "", "which of these it is", choices=tuple(self.variants()))

    @property
    def key(self) -> str:
        """The dotted key, as in TOML."""
        return ".".join(self.path)

    @property
    def allowed(self) -> str:
        """Range with unit, or the choices, or the form of a text."""
        return f"{self.span} {self.unit}".rstrip()

    @property
    def span(self) -> str:
        """The same without the unit, for tables that have a column for it."""
        if self.kind in (int, float):
            return f"{spell(self.low)} to {spell(self.high)}"
        if self.table is not None:
            return f"up to {spell(self.high)} tables [[{self.key}]]"
        if self.choices:
            listed = ", ".join(f'"{choice}"' for choice in self.choices)
            return f"an array of {listed}" if self.kind is tuple else listed
        if self.kind is tuple:
            return f"an array of up to {spell(self.high)} {self.form}"
        return self.form or _WORD[self.kind]

    def accept(self, value: object) -> Any:
        """The value, arrays as tuples; ValueError says what is wrong with it."""
        if self.kind is tuple and isinstance(value, list):
            value = tuple(value)
        # a bool is no int here, but an int is a fine float
        if type(value) is not self.kind and not (self.kind is float and type(value) is int):
            raise ValueError(f"expected {_WORD[self.kind]}, got {word_of(value)}")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._accept_number(value)
        elif isinstance(value, str):
            self._accept_text(value)
        elif isinstance(value, tuple):
            self._accept_array(value)
        return value

    def _accept_number(self, value: float) -> None:
        # only floats: an integer in the file may be too large to convert, but compares well
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("not a finite number")
        if value < self.low:
            raise ValueError("too small")
        if value > self.high:
            raise ValueError("too large")

    def _accept_text(self, value: str) -> None:
        if _UNPRINTABLE.search(value):
            raise ValueError("contains control characters or bytes that are not UTF-8")
        if self.choices and value not in self.choices:
            raise ValueError("not a valid choice")
        if self.pattern and not re.search(self.pattern, value):
            raise ValueError("does not have the right form")

    def _accept_array(self, value: tuple[object, ...]) -> None:
        if len(value) > self.high:
            raise ValueError(f"too many: {len(value)}")
        for item in value:
            if self.table is not None and not isinstance(item, Mapping):
                raise ValueError(f"expected an array of tables, got {word_of(item)} in it")
            if self.choices and item not in self.choices:
                raise ValueError(f"{item!r:.40} is not a valid choice")
            if self.table is None and not self.choices:
                self._accept_item(item)

    def _accept_item(self, item: object) -> None:
        if not isinstance(item, str):
            raise ValueError(f"expected an array of texts, got {word_of(item)} in it")
        try:
            self._accept_text(item)
        except ValueError as error:
            raise ValueError(f"{item!r:.40} {error}") from None

    def parse(self, written: str) -> Any:
        """The value that an environment variable means; arrays are separated by commas."""
        if self.table is not None:
            raise ValueError("an array of tables can only be set in the file")
        if self.kind is str:
            return self.accept(written)
        word = written.strip()
        if self.kind is tuple:
            return self.accept(tuple(item.strip() for item in word.split(",")) if word else ())
        if self.kind is bool:
            if word.lower() not in _TRUE + _FALSE:
                raise ValueError(f"expected {_WORD[bool]}")
            return word.lower() in _TRUE
        try:
            number = self.kind(word)
        except ValueError:
            raise ValueError(f"expected {_WORD[self.kind]}") from None
        return self.accept(number)


def settings(section: type[Section], path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting of a section and of the sections in it, in the order of the schema."""
    # the default of a nested section is the instance that its parent makes, not that of its class:
    # every detector has its own debounce counts
    yield from _settings(section(), path)


def _settings(defaults: Section, path: tuple[str, ...]) -> Iterator[Setting]:
    for name, hint in get_type_hints(type(defaults), include_extras=True).items():
        if name == "guests" and isinstance(defaults, Extensible):
            continue
        default = getattr(defaults, name)
        if isinstance(default, Section):
            yield from _settings(default, (*path, name))
        else:
            yield _setting((*path, name), hint, default)


@cache
def columns(table: type[Section]) -> tuple[Setting, ...]:
    """The keys of a section that is the item of an array of tables: a flat one, where some keys must be given."""
    hints = get_type_hints(table, include_extras=True)
    return tuple(_setting((f.name,), hints[f.name], f.default) for f in fields(table))


def _setting(path: tuple[str, ...], hint: Any, default: object) -> Setting:
    if get_origin(hint) is Union:  # a key that may be absent: X | None
        hint = get_args(hint)[0]
    kind, *metas = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not metas:
        raise TypeError(f"{'.'.join(path)}: no reason given")
    meta: Meta = metas[-1]
    extra = meta.extra or {}
    choices: tuple[str, ...] = ()
    table: type[Section] | None = None
    pattern = meta.pattern or ""
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    elif get_origin(kind) is tuple:
        item = get_args(kind)[0]
        kind = tuple
        if get_origin(item) is Literal:
            choices = get_args(item)
        elif get_origin(item) is Annotated:
            pattern = get_args(item)[1].pattern
        else:
            table = item
    if table is not None:
        columns(table)  # what is wrong with the items shows when the schema is read, not when a file has some
    if kind not in (bool, int, float, str, tuple):
        raise TypeError(
            f"{'.'.join(path)}: settings are flags, numbers, text, choices, or tuples of choices, texts or tables"
        )
    if kind in (int, float) and (meta.ge is None or meta.le is None):
        raise TypeError(f"{'.'.join(path)}: every number needs a range")
    return Setting(
        path=path,
        kind=kind,
        default=default,
        unit=extra.get("unit", ""),
        reason=meta.description or "",
        low=-math.inf if meta.ge is None else meta.ge,
        high=next((limit for limit in (meta.le, meta.max_length) if limit is not None), math.inf),
        choices=choices,
        pattern=pattern,
        form=extra.get("form", ""),
        secret=extra.get("secret", False),
        table=table,
        live=extra.get("live", False),
        variants=extra.get("variants"),
    )
