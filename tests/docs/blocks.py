"""The code blocks of a page, fenced or indented, and which of them are for a shell.

A block in a shell's language, one with lines that begin with `$ `, and one whose first word is a command, is for a
shell; what is neither tagged nor begins with a command is output. Right before a block a comment may say more:

    <!-- not run: needs a PX4 vehicle -->     it is shown and not run, and why
    <!-- long: a minute -->                   it is run by `make proofs` only
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHELLS = {"sh", "bash", "shell", "console"}
# Commands that need not be installed to be commands.
COMMANDS = {
    "watchkeeper", "pip", "make", "git", "mosquitto", "mosquitto_pub", "mosquitto_sub", "curl", "pytest", "nc",
    "docker", "kubectl", "systemctl", "sudo", "apt", "npm", "for", "while", "export", "cd", "jq",
}  # fmt: skip
REMARK = re.compile(r"<!-- (not run|long): (.+?) -->\s*$")
FENCE = re.compile(r"\s*```(\w*)\s*$")
ASSIGNMENT = re.compile(r"[A-Za-z_]+=")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: where it is, in which language it says it is, its text, and the remark before it."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""
    long: str = ""

    @property
    def is_shell(self) -> bool:
        """Whether somebody would type it."""
        if self.language:
            return self.language in SHELLS
        lines = [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]
        return bool(lines) and (any(line.startswith("$ ") for line in lines) or _is_command(lines[0].split()[0]))

    @property
    def shown(self) -> list[tuple[str, list[str]]]:
        """Of a block with prompts: each command, and the output below it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and line.strip():
                found[-1][1].append(line.rstrip())
        return found


def _is_command(word: str) -> bool:
    return word in COMMANDS or ASSIGNMENT.match(word) is not None or shutil.which(word) is not None


def blocks_of(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    return list(_blocks(page, page.read_text().splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
            body, after = lines[at + 1 : end], end + 1
        elif _indent(lines[at]) >= 4 and (at == 0 or not lines[at - 1].strip()):
            end = next((i for i in range(at, len(lines)) if lines[i].strip() and _indent(lines[i]) < 4), len(lines))
            body, after = lines[at:end], end
        else:
            at += 1
            continue
        depth = min((_indent(line) for line in body if line.strip()), default=0)
        text = "\n".join(line[depth:] for line in body).strip("\n")
        before = next((line for line in reversed(lines[:at]) if line.strip()), "")
        remark = REMARK.search(before)
        said = {remark[1].replace(" ", "_"): remark[2]} if remark else {}
        yield Block(page, at + 1, fence[1] if fence else "", text, **said)
        at = after


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
