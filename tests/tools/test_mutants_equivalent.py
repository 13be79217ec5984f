"""The list of mutants that no test can notice: an entry names exactly one mutant, or it is reported."""

from __future__ import annotations

from tools.mutants.equivalent import LIST, reasons
from tools.mutants.mutate import mutants
from tools.mutants.rooms import ROOMS
from tools.rooms import ROOT

SOURCE = """
def both(a, b):
    if a:
        a.n = 0
    if b:
        b.n = 0
        a.n = 0
"""
HEAD = '[[group]]\nfile = "m.py"\nreason = "It is\\n the same."\nmutants = [\n'


def judged(*entries: str) -> tuple[list[tuple[int, str, str]], list[str]]:
    found, wrong = reasons(HEAD + ",\n".join(entries) + "]", {"m.py": mutants(SOURCE)})
    return [(mutant.line, mutant.after, reason) for (_, mutant), reason in found.items()], wrong


def test_an_entry_leaves_out_one_mutant_with_its_reason():
    assert judged('{before = "b.n = 0", after = "pass"}') == ([(6, "pass", "It is the same.")], [])


def test_a_line_that_is_there_twice_needs_the_statement_around_it():
    found, wrong = judged('{before = "a.n = 0", after = "b.n = 1"}', '{before = "a.n = 0", after = "a.n = 1"}')
    assert found == []
    assert [line.rpartition(": ")[2] for line in wrong] == ["fits no mutant", "fits 2 mutants; say `under`"]
    found, wrong = judged('{before = "a.n = 0", after = "a.n = 1", under = "if b:"}')
    assert (found, wrong) == ([(7, "a.n = 1", "It is the same.")], [])
    assert len(judged('{before = "a.n = 0", after = "a.n = 1", within = "if b:"}')[1]) == 1


def test_an_entry_without_the_text_after_leaves_out_all_mutants_of_one_line():
    found, wrong = judged('{before = "b.n = 0"}')
    assert ([after for _, after, _ in found], wrong) == (["pass", "b.n = 1"], [])
    assert len(judged('{before = "a.n = 0"}')[1]) == 1


def test_a_module_that_is_not_asked_about_is_not_looked_at():
    assert reasons(HEAD + '{before = "x", after = "y"}]', {}) == ({}, [])


def test_every_entry_of_the_list_names_one_mutant_of_the_source():
    modules = {module for room in ROOMS.values() for module in room.modules}
    found, wrong = reasons(LIST.read_text(), {module: mutants((ROOT / module).read_text()) for module in modules})
    assert wrong == []
    assert found
