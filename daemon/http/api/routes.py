"""Every route of the API, in one list: what is served, and what /api/v1/openapi.json documents."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from watchkeeper.daemon.http.api import about, alarms, past, replaying, shelving, vehicles
from watchkeeper.daemon.http.api.openapi import document
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.table import Bytes, Call, Route

OPENAPI = "/openapi.json"


def all_routes(served: Served) -> list[Route]:
    """All of them, this document's own last."""
    parts = (alarms, shelving, vehicles, past, about, replaying)
    routes = [route for part in parts for route in part.routes(served)]

    @cache
    def text() -> bytes:
        return msgspec.json.format(msgspec.json.encode(document([*routes, own], version("watchkeeper"))), indent=1)

    async def openapi(_call: Call) -> Bytes:
        return Bytes(text(), "application/json")

    own = Route(method="GET", path=OPENAPI, summary="This document", answer=dict[str, Any], handle=openapi)
    return [*routes, own]
