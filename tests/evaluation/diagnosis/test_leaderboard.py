"""The leaderboard: grows, loses nothing, shows each agent's latest run, and survives torn lines and writers at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.diagnosis.leaderboard import Entry, append, ranked, read, tables

RUN = ["evaluate", "diagnosis", "--episodes", "2", "--devices", "4", "9", "--quiet", "--jobs", "1"]


def entry(agent: str, success: float | None, fingerprint: str = "sha256:one", steps: float = 1.0) -> Entry:
    return Entry(agent, fingerprint, "0.0.1", {"diagnosis_success_rate": success, "avg_steps_per_device": steps})


def test_each_run_adds_lines_and_the_table_shows_the_latest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "runs.jsonl"
    for agents in ("watchkeeper,random", "watchkeeper"):
        assert main([*RUN, "--agents", agents, "--leaderboard", str(board)]) == 0
    assert len(board.read_bytes().splitlines()) == 3
    capsys.readouterr()
    assert main(["evaluate", "diagnosis", "--show-leaderboard", str(board)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("watchkeeper ") == 1
    assert printed.index("watchkeeper") < printed.index("random")
    assert "diagnosis success" in printed
    entries, problems = read(board)
    assert not problems
    assert all(e.summary["episodes"] == 2 and e.version and e.set.startswith("sha256:") for e in entries)


ENTRIES = st.builds(
    entry,
    st.sampled_from("abc"),
    st.one_of(st.none(), st.floats(0.0, 1.0)),
    st.sampled_from(("sha256:one", "sha256:two")),
    st.floats(0.0, 2.0),
)


@given(st.lists(ENTRIES))
def test_an_agent_is_shown_once_per_set_with_its_latest_run_and_the_best_is_first(entries: list[Entry]) -> None:
    shown = ranked(entries)
    assert set(shown) == {e.set for e in entries}
    for name, best in shown.items():
        own = [e for e in entries if e.set == name]
        assert sorted(e.agent for e in best) == sorted({e.agent for e in own})
        for e in best:
            assert e is [x for x in own if x.agent == e.agent][-1]
        rates = [e.summary["diagnosis_success_rate"] for e in best]
        known = [r for r in rates if r is not None]
        assert known == sorted(known, reverse=True)
        # those without the metric come last
        assert rates[: len(known)] == known
    assert len(tables(entries)) == len(shown)


def test_a_torn_line_is_passed_over_and_the_next_begins_on_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "runs.jsonl"
    append(board, [entry("a", 0.5)])
    whole = board.read_bytes()
    board.write_bytes(whole + whole[:20])
    append(board, [entry("b", 0.9)])
    assert board.read_bytes().startswith(whole + whole[:20] + b"\n")
    entries, problems = read(board)
    assert [e.agent for e in entries] == ["a", "b"]
    assert len(problems) == 1
    assert problems[0].startswith("line 2 is left out")
    assert main(["evaluate", "diagnosis", "--show-leaderboard", str(board)]) == 0
    said = capsys.readouterr()
    assert "line 2 is left out" in said.err
    assert said.out.index("\nb ") < said.out.index("\na ")


def _write(path: Path, name: str) -> None:
    for i in range(40):
        append(path, [entry(f"{name}-{i}", 0.5), entry(f"{name}-{i}-more", 0.5)])


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    board = tmp_path / "runs.jsonl"
    spawn = multiprocessing.get_context("fork")
    writers = [spawn.Process(target=_write, args=(board, name)) for name in "wxyz"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    entries, problems = read(board)
    assert not problems
    assert {e.agent for e in entries} == {f"{n}-{i}{m}" for n in "wxyz" for i in range(40) for m in ("", "-more")}


def test_a_leaderboard_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "runs.jsonl"
    assert main(["evaluate", "diagnosis", "--show-leaderboard", str(board)]) == 1
    assert "No such file" in capsys.readouterr().err
    board.write_bytes(b"\xff\n[]\n")
    assert main(["evaluate", "diagnosis", "--show-leaderboard", str(board)]) == 1
    said = capsys.readouterr().err
    assert "line 1 is left out" in said
    assert "no entries" in said
