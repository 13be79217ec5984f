"""The tests of a room without any change: which of them run a line, and how long each takes.

A trial needs only the tests that run the changed line. A line that is run while modules are imported or while the
fixtures of several tests are made says nothing about single tests: then all of the room are needed.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

from tools.mutants.mutate import Mutant
from tools.mutants.process import forked
from tools.mutants.rooms import Room
from tools.rooms import ROOT

IMPORTED, PREPARED = "", "prepared"
# A trial may take this many times as long as its tests usually do.
PATIENCE, PATIENCE_LEAST_S = 4.0, 10.0
# Characters of what failing tests say.
TAIL = 3000


@dataclass
class Measured:
    """By module and line the tests that run it, and by test its duration, measured slower than it is."""

    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def running(self, module: str, mutant: Mutant) -> set[str]:
        """The tests that run the changed line, IMPORTED, PREPARED."""
        lines = self.tests[module]
        return {test for line in range(mutant.line, mutant.last + 1) for test in lines.get(line, ())}

    def rank(self, test: str) -> tuple[float, str, float]:
        """Sorts fast files first, and in each the fast tests first."""
        file = test.partition("::")[0]
        return sum(s for other, s in self.seconds.items() if other.startswith(file + "::")), file, self.seconds[test]

    def patience_s(self, tests: set[str]) -> float:
        """How long a trial with these tests may take: a loop may have become endless."""
        return max(PATIENCE_LEAST_S, PATIENCE * sum(self.seconds[test] for test in tests))


class FastFirst:
    """A plugin of pytest that sorts the tests."""

    def __init__(self, base: Measured) -> None:
        self.base = base

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """See pytest."""
        items.sort(key=lambda item: self.base.rank(item.nodeid))


def options(room: Room) -> list[str]:
    """What pytest is told: tests of the room, stop at the first that fails, keep no notes."""
    tests = (str(ROOT / "tests" / test) for test in room.tests)
    return ["-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long", *tests]


def measured(room: Room) -> Measured:
    """Run the tests of a room. RuntimeError: one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        answer, words = Path(folder, "answer"), Path(folder, "words")
        _, status = os.waitpid(forked(lambda: _measure(room, answer, words)), 0)
        if status:
            raise RuntimeError("the tests fail without any change:\n" + words.read_text(errors="replace")[-TAIL:])
        found = pickle.loads(answer.read_bytes())  # noqa: S301 - our own
        assert isinstance(found, Measured)
        return found


def _measure(room: Room, answer: Path, words: Path) -> int:
    with words.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        # real paths: src/watchkeeper has links
        cover = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / m) for m in room.modules])
        watch = _Watch(cover)
        cover.start()
        code = int(pytest.main(options(room), plugins=[watch]))
        cover.stop()
    data = cover.get_data()
    found = Measured(seconds=watch.seconds)
    for module in room.modules:
        found.tests[module] = {n: set(tests) for n, tests in data.contexts_by_lineno(str(ROOT / module)).items()}
    answer.write_bytes(pickle.dumps(found))
    return code


class _Watch:
    """Says to the coverage which test runs, and takes the time."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self._cover = cover
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_setup(self) -> None:
        self._cover.switch_context(PREPARED)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._cover.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._cover.switch_context(PREPARED)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
