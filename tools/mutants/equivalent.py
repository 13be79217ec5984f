"""Mutants that no test can notice, because nothing that anyone sees depends on the change: equivalent.toml.

Each is named by its file, the text before and after, and where these are not enough by the head of a statement around
it. Without the text after, all mutants of that line are meant. An entry that fits no mutant (the source has changed) or
mutants of several places is an error, so that the list says what it leaves out and no more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.mutants.mutate import Mutant

LIST = Path(__file__).with_name("equivalent.toml")
KEYS = {"before", "after", "under"}


def reasons(text: str, modules: Mapping[str, Iterable[Mutant]]) -> tuple[dict[tuple[str, Mutant], str], list[str]]:
    """The reason for each mutant of these modules that is on the list, and what is wrong with the list."""
    found: dict[tuple[str, Mutant], str] = {}
    wrong = []
    for group in tomllib.loads(text).get("group", []):
        if group["file"] not in modules:
            continue
        for entry in group["mutants"]:
            fitting = [mutant for mutant in modules[group["file"]] if _fits(entry, mutant)]
            places = {(mutant.line, mutant.before) for mutant in fitting} if "after" not in entry else fitting
            if len(places) != 1 or entry.keys() - KEYS:
                what = f"fits {len(places)} mutants; say `under`" if fitting else "fits no mutant"
                wrong.append(f"{group['file']}: {entry}: {what}")
            for mutant in fitting if len(places) == 1 else ():
                found[group["file"], mutant] = " ".join(group["reason"].split())
    return found, wrong


def _fits(entry: Mapping[str, str], mutant: Mutant) -> bool:
    same = mutant.before == entry["before"] and mutant.after == entry.get("after", mutant.after)
    return same and ("under" not in entry or entry["under"] in mutant.under)
