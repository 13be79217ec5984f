"""The API against its own OpenAPI: whatever is asked, the answer is one that the document has, and never a 500.

Schemathesis makes requests that follow the document, and requests that break it in one place. `make proofs` asks for
many more of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, checks

from api_rig import Rig

SMALL, LARGE = 4, 150
# What aiohttp reads of a request's first line.
LINE_MAX = 8000
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
# Of a query that breaks the document little may be left when it is written as text: `kind=true` is a fine list.
BODY_CHECKS = [*CHECKS, checks.negative_data_rejection]


class Listening:
    """A site on a loop of its own."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self.url = rig, ""
        self._up, self._loop, self._end = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)
        self._thread.start()
        assert self._up.wait(20.0)

    async def _run(self) -> None:
        async with self._rig.site() as site:
            self.url = site.url
            self._up.set()
            await self._end.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rig = Rig(tmp_path_factory.mktemp("fuzz"), seconds=600.0)
    listening = Listening(rig)
    yield listening.url
    listening.stop()
    rig.close()


def fuzz(url: str, examples: int) -> Counter[int]:
    """Ask every operation in good and in bad ways; how often each status was the answer."""
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    answers: Counter[int] = Counter()
    calm = settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate],
    )  # fmt: skip
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @calm
            @given(case=operation.as_strategy(mode))
            def ask(case: schemathesis.Case) -> None:
                answer = case.call()
                answers[answer.status_code] += 1
                if len(answer.request.url or "") > LINE_MAX:
                    return  # the parser of HTTP refuses it, before there is a path
                # a body that is too large is refused with 413, which this check does not know
                strict = case.method != "GET" and answer.status_code != 413
                case.validate_response(answer, checks=BODY_CHECKS if strict else CHECKS)

            try:
                ask()
            except Exception as error:
                if "Unsatisfiable" in type(error).__name__ or "without parameters" in str(error):
                    continue  # there is nothing to get wrong
                raise
    return answers


def test_no_request_breaks_it(url: str) -> None:
    answers = fuzz(url, SMALL)
    assert not any(status >= 500 for status in answers)
    assert answers[200] > 10
    assert answers[400] > 5


@pytest.mark.long
def test_no_request_of_many_breaks_it(url: str) -> None:
    answers = fuzz(url, LARGE)
    print(dict(answers))
    assert not any(status >= 500 for status in answers)
