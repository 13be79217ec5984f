"""What must hold in a world, from what was heard at the broker, what is retained there and what /readyz said.

    lost       an alarm of the undisturbed run was not heard
    other_id   an alarm was heard that the undisturbed run has under another id, or not at all (`false`)
    doubled    raised or cleared twice under one id, or heard after its end
    uncleared  an alarm that the undisturbed run ends was never heard to end
    ghost      a topic is retained for an alarm that is over; `hidden`: none is for one that is active
    unready    /readyz said that all was well while the daemon could not be heard or could not write
    unused     a message was not lost, and its sample was never judged
    status     the retained status said online while nobody was there, or offline while somebody was
    crash, start, stop   the daemon ended by itself, did not start, did not stop

What an outage itself hides is no loss: a message that the broker lost (see oracle.py); and alarms about silent or slow
links, which an outage makes and hides by itself (faults.py). The same process may repeat an event of which the broker's
confirmation has not arrived (QoS 1), the next one only where the broker or the disk has forgotten it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from chaos.calm import active_alarms
from chaos.census import counted
from chaos.faults import ABOUT_US, SILENT, Outage
from chaos.oracle import WAITS_S, Life, expected
from chaos.scenes import END_S, T0
from chaos.timeline import EPOCH_S

if TYPE_CHECKING:
    from watchkeeper.detectors.alarms.events import AlarmEvent

    from chaos.broker import Message
    from chaos.world import Said, World

# So long around messages that nobody has, time itself may not be judged: an alarm may begin earlier or later.
UNHEARD_S = 5.0
# A fault may be on for this long before /readyz must say so: a write must fail first, a silent line be given up.
UNNOTICED_S = {"no broker": 1.5, "silent line": 9.0, "disk": 6.0, "no folder": 14.0, "detector": 3.0}
TOPICS = ("watchkeeper/alarm/", "watchkeeper/incident/")
# Alarms about the daemon itself follow from the world's faults, not from telemetry: no replay has them.
DAEMON = "watchkeeper/alarm/watch/watchkeeper~"


class Event(msgspec.Struct, frozen=True):
    """What is looked at of an alarm event."""

    id: str
    kind: str
    state: str
    subjects: tuple[str, ...]
    t: float
    t_onset: float


_decode = msgspec.json.Decoder(Event).decode


def _of(event: AlarmEvent) -> Event:
    return Event(event.id, event.kind, event.state, event.subjects, event.t, event.t_onset)


def judge(world: World) -> list[tuple[str, str]]:
    """Every violation, as (invariant, words)."""
    return [*world.problems, *_Verdict(world).problems()]


def _of_telemetry(topic: str) -> bool:
    return topic.startswith(TOPICS) and not topic.startswith(DAEMON)


class _Verdict:
    def __init__(self, world: World) -> None:
        self._world = world
        messages = [message for due in world.messages.values() for _, message in due]
        app = world.daemon.process.app
        self._judged = counted(app.pipeline) if app is not None else set()
        self._unheard = sorted({round(message.t) for message in messages if self._is_missing(message)})
        # nobody was silent while nobody listened: what the daemon cannot know about, it does not judge
        self._outages = [*world.outages, *(Outage(*span, SILENT) for span in world.broker.unheard)]
        if self._unheard:
            self._outages.append(Outage(self._unheard[0] - EPOCH_S, self._unheard[-1] - EPOCH_S, SILENT))
        self._expected = expected(world.scene.number, messages, self._judged)
        self._said: dict[str, list[tuple[Event, Said]]] = defaultdict(list)
        for said in world.said:
            if said.message.payload and _of_telemetry(said.message.topic):
                event = _decode(said.message.payload)
                self._said[event.id].append((event, said))
        # alarms that an outage made and that the daemon itself still has: they are over soon
        self._active = {
            event.id for event in (active_alarms(app) if app is not None else ()) if self._excused(_of(event), event.t)
        }
        self._found: list[tuple[str, str]] = []

    def problems(self) -> list[tuple[str, str]]:
        self._lost_and_false()
        for events in self._said.values():
            self._doubled(events)
            self._uncleared(events)
        self._retained()
        self._ready()
        self._unused()
        return self._found

    def _say(self, invariant: str, life: Life | Event, more: str = "") -> None:
        words = f"{life.kind} {'~'.join(life.subjects)} {life.id} onset {life.t_onset - T0:.1f} {more}"
        self._found.append((invariant, words.strip()))

    def _is_missing(self, message: Message) -> bool:
        """Whether it is in no state, and rightly so."""
        return message.lost or (message.doubtful and (message.sender, message.t) not in self._judged)

    def _excused(self, alarm: Life | Event, t_last: float | None) -> bool:
        """Whether an outage may have made, moved or hidden this alarm."""
        first_s = alarm.t_onset - EPOCH_S
        last_s = first_s if t_last is None else t_last - EPOCH_S
        if any(abs(alarm.t_onset - t) < UNHEARD_S for t in self._unheard):
            return True
        return alarm.kind in ABOUT_US or any(
            outage.excuses(alarm.kind, alarm.subjects, first_s, last_s) for outage in self._outages
        )

    def _lost_and_false(self) -> None:
        certain, possible = self._expected.certain, self._expected.possible
        named = {(life.kind, life.subjects) for life in possible.values()}
        for life in certain.values():
            if life.id not in self._said and not self._excused(life, life.t_cleared):
                self._say("lost", life)
        for events in self._said.values():
            event = events[0][0]
            if event.id not in possible and not self._excused(event, events[-1][0].t):
                self._say("other_id" if (event.kind, event.subjects) in named else "false", event)

    def _doubled(self, events: list[tuple[Event, Said]]) -> None:
        ended = False
        first: dict[str, Said] = {}
        for event, said in events:
            earlier = first.get(event.state) if event.state != "updated" else None
            if earlier is not None and not self._repeats(earlier, said):
                self._say("doubled", event, f"{event.state} twice")
            if ended and event.state != "cleared" and not self._repeats(first["cleared"], said):
                self._say("doubled", event, f"{event.state} after its end")
            first[event.state] = said
            ended |= event.state == "cleared"

    def _repeats(self, earlier: Said, later: Said) -> bool:
        """Whether the daemon could not know that the broker had the earlier one."""
        known = earlier.confirmed_s is not None and earlier.confirmed_s <= later.at_s
        if earlier.start == later.start:
            return not known
        # the broker has a note of what it was told, unless it lost its memory since or the daemon its journal
        return earlier.unkept or self._world.broker.forgot(earlier.at_s, later.at_s)

    def _uncleared(self, events: list[tuple[Event, Said]]) -> None:
        event = events[-1][0]
        life = self._expected.possible.get(event.id)
        active = event.id in self._active or (life is not None and life.t_cleared is None)
        if not active and not any(event.state == "cleared" for event, _ in events):
            self._say("uncleared", event)

    def _retained(self) -> None:
        shown = {
            _decode(payload).id: _decode(payload)
            for topic, payload in self._world.broker.retained.items()
            if _of_telemetry(topic)
        }
        active = {i: life for i, life in self._expected.possible.items() if life.t_cleared is None}
        for event in shown.values():
            if event.id not in active and event.id not in self._active:
                self._say("ghost", event)
        for life in active.values():
            wanted = life.id in self._expected.certain and not self._excused(life, None)
            if wanted and life.id not in shown:
                self._say("hidden", life)

    def _ready(self) -> None:
        since, wrong = 0.0, ""
        for probe in self._world.probes:
            if probe.wrong != wrong or probe.said:
                since, wrong = probe.at_s, probe.wrong
            if wrong and not probe.said and probe.at_s - since > UNNOTICED_S[wrong]:
                self._found.append(("unready", f"said nothing {probe.at_s - since:.1f} s after: {wrong}"))
                return

    def _unused(self) -> None:
        for name, due in self._world.messages.items():
            if any(outage.subjects and name in outage.subjects for outage in self._world.outages):
                continue
            missing = [message.t - T0 for _, message in due if self._is_unused(message)]
            if missing:
                when = ", ".join(f"{at:.1f}" for at in missing[:5])
                self._found.append(("unused", f"{len(missing)} samples of {name}, from {when}"))

    def _is_unused(self, message: Message) -> bool:
        known = message.lost or message.doubtful or message.t > T0 + END_S - WAITS_S
        return not known and (message.sender, message.t) not in self._judged
