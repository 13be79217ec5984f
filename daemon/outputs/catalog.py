"""Every kind of sink, one line each, and the making of those that a configuration asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from watchkeeper.config.guests import load_guests, section_of
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Section
from watchkeeper.daemon.live.view import LIVE_PAGE
from watchkeeper.daemon.outputs.alertmanager import ALERTMANAGER
from watchkeeper.daemon.outputs.base import AnyDeclaration, Context, Sink, SinkError
from watchkeeper.daemon.outputs.cockpit.gdl90 import GDL90_OUT
from watchkeeper.daemon.outputs.fence import Fenced, fenced
from watchkeeper.daemon.outputs.guests import GROUP, GUESTS, take
from watchkeeper.daemon.outputs.home_assistant import HOME_ASSISTANT
from watchkeeper.daemon.outputs.journal_sink import JOURNAL
from watchkeeper.daemon.outputs.mqtt import MQTT
from watchkeeper.daemon.outputs.notify.sink import NOTIFY
from watchkeeper.daemon.outputs.terminal import TERMINAL
from watchkeeper.daemon.outputs.vehicle.integrity import GNSS_INTEGRITY
from watchkeeper.daemon.outputs.webhook import WEBHOOK

# In the order in which each event is put to them; the journal is the first stage, see journal_sink.py.
BUILT_IN: tuple[AnyDeclaration, ...] = (
    JOURNAL,
    MQTT,
    LIVE_PAGE,
    TERMINAL,
    HOME_ASSISTANT,
    WEBHOOK,
    ALERTMANAGER,
    NOTIFY,
    GDL90_OUT,
    GNSS_INTEGRITY,
)


def discover() -> None:
    """Register the sinks of other packages. Raises GuestError when one cannot be used."""
    load_guests(GROUP, take)


def declarations() -> tuple[AnyDeclaration, ...]:
    """All of them, those of other packages last."""
    return (*BUILT_IN, *GUESTS.values())


def make_sinks(config: Config, context: Context) -> list[Fenced]:
    """The sinks after the journal, each behind its fence.

    OSError: a built-in one cannot be made; SinkError: a guest, or two of one name.
    """
    made = [*_make(BUILT_IN[1:], config, context), *_make_guests(GUESTS.values(), config, context)]
    names = Counter([JOURNAL.name, *(sink.name for sink in made)])
    if twice := [name for name, n in names.items() if n > 1]:
        raise SinkError(f"two sinks have one name: {', '.join(twice)}")
    return [fenced(sink) for sink in made]


def _make(kinds: Iterable[AnyDeclaration], config: Config, context: Context) -> Iterator[Sink]:
    for kind in kinds:
        for settings in asked(kind, config):
            yield kind.make(settings, context)


def _make_guests(kinds: Iterable[AnyDeclaration], config: Config, context: Context) -> Iterator[Sink]:
    for kind in kinds:
        try:
            yield from _make([kind], config, context)
        except Exception as error:  # whatever somebody else's code raises
            raise SinkError(f"sink {kind.name!r}: {type(error).__name__}: {error}") from error


def asked(kind: AnyDeclaration, config: Config) -> Iterable[Section]:
    """The settings of each sink of this kind that the configuration asks for."""
    if kind.asked is not None:
        return kind.asked(config)
    section = section_of(config, "sinks", kind.name)
    return [section] if section.enabled else []
