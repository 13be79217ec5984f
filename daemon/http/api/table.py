"""One route of the API: what it is asked, what it answers, and what may go wrong. Serving and OpenAPI read the same.

    Route(get, "/api/v1/alarms", "Alarms, now and past", query=AlarmQuery, answer=AlarmPage, handle=…)

A handler gets a `Call`, whose query and body have been checked against their types, and answers with a value of the
declared type (or Bytes). It refuses by raising `Refusal`. Every refusal is one form of JSON, `Problem`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from aiohttp import web

Role = Literal["view", "operate"]
PREFIX = "/api/v1"


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused: a word for programs, a sentence for people, and the field that it is about."""

    code: str
    message: str
    field: str = ""


class Refusal(Exception):  # noqa: N818  it is an answer, not an error of ours
    """An answer that is no success."""

    def __init__(self, status: int, code: str, message: str, of: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code, message, of)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked."""

    request: web.Request
    path: dict[str, str]
    query: Any
    body: Any
    by: str
    """Who asks: the name of the token, or empty."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """An answer that is not JSON."""

    data: bytes
    content_type: str
    file_name: str = ""


Handle = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One path and method. `answer` is None for 204, and `others` are content types that it also answers with."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    handle: Handle
    answer: Any
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    role: Role = "view"
    refusals: dict[int, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    status: int = 200

    @property
    def url(self) -> str:
        """The whole path."""
        return PREFIX + self.path
