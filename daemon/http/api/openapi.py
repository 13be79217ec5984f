"""OpenAPI 3.1, made from the table of routes and the types that it names. Nothing is written down twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from watchkeeper.daemon.http.api.table import Bytes, Problem, Route

_TEMPLATE = "#/components/schemas/{name}"
_PATH_PARAMETER = re.compile(r"{(\w+)}")
_ABOUT = """\
Alarms now and past, vehicles, tracks, scores, and what is watched. Times are event time in Unix seconds unless a name
ends in `_wall`; a number that is not known is null. Every refusal is one JSON object: `code`, `message`, `field`.
"""
# What any route may refuse with, besides its own refusals.
REFUSALS = {
    400: "A parameter or the body is not as described; `field` names it",
    401: "From another machine, and without a token",
    403: "Another web site asks, the host name is not ours, or the token's role does not allow it",
    408: "The body did not come in time",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many wrong tokens; wait a minute",
    503: "The history cannot be read now, or there is none",
}
_WITH_BODY = {408, 413, 415}


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The whole document."""
    types = [Problem, *(route.query for route in routes), *(r.body for r in routes if r.body is not None)]
    answers = [route.answer for route in routes if route.answer not in (None, Bytes)]
    schemas, components = msgspec.json.schema_components([*types, *answers], ref_template=_TEMPLATE)
    queries = {route.query.__name__ for route in routes}
    schema_of = dict(zip(map(_key, [*types, *answers]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.url, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Watchkeeper", "version": version, "description": _ABOUT,
                 "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in sorted(components.items()) if name not in queries},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "watchkeeper"},
            },
        },
        "security": [{}, {"token": []}, {"session": []}],
    }  # fmt: skip


def _key(shape: Any) -> str:
    return repr(shape)


def _operation(route: Route, schema_of: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    refusals = REFUSALS | route.refusals
    if route.body is None:
        refusals = {status: words for status, words in refusals.items() if status not in _WITH_BODY}
    problem = {"application/json": {"schema": schema_of[_key(Problem)]}}
    words = re.sub(r"\W+", "_", route.path.strip("/")).strip("_")
    said: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{words}",
        "summary": route.summary,
        "description": f"Role: {route.role}.",
        "parameters": [*_path_parameters(route), *_query_parameters(route, components)],
        "responses": {
            str(route.status): _success(route, schema_of),
            **({"304": {"description": "As you know it (If-None-Match)"}} if route.method == "GET" else {}),
            **{str(status): {"description": text, "content": problem} for status, text in sorted(refusals.items())},
        },
    }
    if route.body is not None:
        said["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[_key(route.body)]}},
        }
    return said


def _success(route: Route, schema_of: dict[str, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"description": "Done"}
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in route.others}
    if route.answer is not Bytes:
        content["application/json"] = {"schema": schema_of[_key(route.answer)]}
    else:
        content = {kind: {} for kind in route.others}
    return {"description": "Success", "content": content}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 256}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema} for name in _PATH_PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    """Each field of the query's type; a value that may be absent is never null."""
    shape = components.get(route.query.__name__, {})
    found = []
    for name, schema in shape.get("properties", {}).items():
        plain = _without_null(schema)
        described = plain.pop("description", "")
        more: dict[str, Any] = {"style": "form", "explode": False} if plain.get("type") == "array" else {}
        found.append(
            {"name": name, "in": "query", "required": False, "description": described, "schema": plain, **more}
        )
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    rest = {
        name: value for name, value in schema.items() if name != "anyOf" and not (name == "default" and value is None)
    }
    if len(options) == 1:
        return {**options[0], **rest}
    return {**rest, "anyOf": options} if options else rest
