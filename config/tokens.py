"""Settings of a token: who may use the page and the API from another machine, and for what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from watchkeeper.config.section import Section, text


class Token(Section, frozen=True, kw_only=True):
    """A secret word that lets somebody in from another machine."""

    name: Annotated[
        str,
        text(
            "whose it is: in logs, and in the acknowledgements made with it",
            pattern=r"^[A-Za-z0-9 ._-]{1,64}$",
            form="1 to 64 letters, digits, blanks, dots, _ and -",
        ),
    ]
    role: Annotated[
        Literal["view", "operate"], text("view: look only; operate: acknowledge, accept and shelve too")
    ] = "view"
    token_file: Annotated[str, text("file with the token; empty: see token_env")] = ""
    token_env: Annotated[str, text("environment variable with the token")] = ""

    def clashes(self) -> Iterator[tuple[str, str]]:
        """None, or two of them."""
        if bool(self.token_file) == bool(self.token_env):
            yield "token_env", "the token is either in token_file or in token_env"
