"""The pieces that settings are made of: a section, and what is said about each key (range, unit, reason)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


def about(unit: str, reason: str, *, ge: float | None = None, le: float | None = None) -> Meta:
    """Range, unit and reason of a numeric setting."""
    return Meta(ge=ge, le=le, description=reason, extra={"unit": unit})


def text(reason: str, *, pattern: str | None = None) -> Meta:
    """The reason of a setting that is text."""
    return Meta(description=reason, pattern=pattern, extra={"unit": ""})


Flag = Annotated[bool, text("on or off")]


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the TOML file. Unknown keys are errors: a misspelt threshold must not pass silently."""
