"""A mutant is the module with one change; a test that looks at the changed place notices it, another one does not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.mutate import mutants
from tools.mutants.rooms import ROOMS
from tools.rooms import ROOT

from where import LINKED, NOT_LINKED

SOURCE = '''
"""Words with 1 number."""
LIMIT = 3
def over(x: int = 0) -> bool:
    """Words."""
    if not x and x != LIMIT:
        print("words", 1)
    return x > LIMIT + 1
'''


def test_every_mutant_differs_from_the_source_in_one_statement():
    found = mutants(SOURCE)
    for mutant in found:
        compile(mutant.tree, "mutant", "exec")
    assert len({ast.unparse(mutant.tree) for mutant in found}) == len(found)
    changed = [(mutant.line, mutant.after) for mutant in found]
    assert changed == [
        (3, "LIMIT = 4"),
        (4, "def over(x: int=1) -> bool:"),
        (6, "if not (not x and x != LIMIT):"),
        (6, "if not x or x != LIMIT:"),
        (6, "if x and x != LIMIT:"),
        (6, "if not x and x == LIMIT:"),
        (7, "pass"),
        (7, "print('words', 2)"),
        (8, "return x >= LIMIT + 1"),
        (8, "return x > LIMIT - 1"),
        (8, "return x > LIMIT + 2"),
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_files_that_exist(room):
    for name in (*ROOMS[room].modules, *(f"tests/{test}" for test in ROOMS[room].tests)):
        assert (ROOT / name).exists(), name


# A process of its own: this one has loaded the module.
PROGRAM = """
import sys
from tools.mutants import trial
from tools.mutants.mutate import mutants
from tools.mutants.rooms import ROOMS, Room
from tools.mutants.task import Task
from tools.rooms import ROOT

ROOMS["units"] = Room(("streams/geo.py",), (sys.argv[1],))
found = [m for m in mutants((ROOT / "streams/geo.py").read_text()) if m.before.startswith(("FT_M =", "GRAVITY_MS2 ="))]
for task, what in trial.tried([Task("units", "streams/geo.py", mutant) for mutant in found], 1):
    print(task.mutant.before, what)
"""


@pytest.mark.skipif(not LINKED, reason=NOT_LINKED)
def test_a_change_that_a_test_looks_at_is_noticed_and_another_is_not(tmp_path: Path):
    test = tmp_path / "test_units.py"
    test.write_text("from watchkeeper.streams.geo import FT_M\ndef test_a_foot(): assert FT_M == 0.3048\n")
    command = [sys.executable, "-c", PROGRAM, str(test)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT)
    assert done.stdout.splitlines() == ["FT_M = 0.3048 killed", "GRAVITY_MS2 = 9.80665 survived"]
