"""What the settings of every live source share, and the forms of address that several types use.

A type of source is a subclass with a `tag`, which is the value of `type` in its `[[sources]]` table. Each has the keys
that mean something to it and no others.
"""

from __future__ import annotations

from typing import Annotated

from watchkeeper.config.section import Section, about, text

StreamUrl = Annotated[
    str,
    text(
        "where it is; udp:// is where we listen",
        pattern=r"^((tcp|udp)://[^\s/:@]+:\d{1,5}/?|unix:///\S+|serial:///\S+)$",
        form="a stream: tcp://HOST:PORT, udp://HOST:PORT, unix:///SOCKET or serial:///DEVICE?baud=57600",
    ),
]
DocumentUrl = Annotated[
    str,
    text(
        "where it is",
        pattern=r"^(https?://\S+|file:///\S+)$",
        form="a document: http://HOST/PATH, https://HOST/PATH or file:///PATH",
    ),
]


class Source(Section, frozen=True, kw_only=True, tag_field="type"):
    """A receiver, a vehicle or another program to listen to, next to the broker."""

    url: Annotated[str, text("where it is")]
    via: Annotated[str, text("the name of this receiver in the samples; empty: none")] = ""

    @property
    def type(self) -> str:
        """The value of `type` in the file, and the name of the adapter."""
        return type_of(self.__class__)


class Document(Source, frozen=True, kw_only=True):
    """A source that is fetched again and again."""

    url: DocumentUrl
    period_s: Annotated[float, about("s", "how often the document is fetched", ge=0.1, le=60)] = 1.0


def type_of(section: type[Source]) -> str:
    """The value of `type` that chooses this section."""
    tag = section.__struct_config__.tag
    assert isinstance(tag, str)
    return tag
