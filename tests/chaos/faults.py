"""What can go wrong, each as a function that plans it on a world's timeline; and which alarms that makes or hides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from watchkeeper.daemon.outputs.mqtt import RETRY_S

from chaos.broker import MANY_IN_FLIGHT, Memory, Message
from chaos.network import NOTICED_S
from chaos.scenes import BEGIN_S, BUSY_S
from chaos.timeline import EPOCH_S, START_S

if TYPE_CHECKING:
    from chaos.world import World

Fault = Callable[["World", Random], None]


# Alarms that slow telemetry makes, moves or hides by itself; and those that missing telemetry does.
SLOW = frozenset({"link", "incident"})
SILENT = SLOW | {"silence"}
# About Watchkeeper itself and about senders' clocks: an undisturbed run has nothing to say of what is wrong here.
ABOUT_US = frozenset({"watch", "clock"})
# An outage shows in alarms about links until the link's statistics are over it: for the rest of a scene.
BEFORE_S, AFTER_S = 20.0, 60.0


@dataclass(frozen=True, slots=True)
class Outage:
    """From and to on the timeline; of these kinds (None: all), about these vehicles (None: all)."""

    from_s: float = -inf
    to_s: float = inf
    kinds: frozenset[str] | None = None
    subjects: frozenset[str] | None = None

    def excuses(self, kind: str, subjects: Iterable[str], first_s: float, last_s: float) -> bool:
        """Whether an alarm of this kind, about these, between these times may be there or not."""
        return (
            (self.kinds is None or kind in self.kinds)
            and (self.subjects is None or not self.subjects.isdisjoint(subjects))
            and self.from_s - BEFORE_S <= last_s
            and first_s <= self.to_s + AFTER_S
        )


def _when(random: Random) -> float:
    return START_S + random.uniform(BEGIN_S + 1, BEGIN_S + BUSY_S - 12)


def _kill(world: World, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 3))):
        world.timeline.at(_when(random), lambda: world.daemon.end("kill -9"))


def _kill_at_disk(world: World, random: Random) -> None:
    def arm() -> None:
        world.disk.fuse = random.randint(1, 25)
        world.disk.fuse_after = random.random() < 0.5

    world.timeline.at(_when(random), arm)


def _term(world: World, random: Random) -> None:
    world.timeline.at(_when(random), world.daemon.terminate)


def _hup(world: World, random: Random) -> None:
    for _ in range(3):
        world.timeline.at(_when(random), world.daemon.hang_up)


def _power(world: World, random: Random) -> None:
    def cut() -> None:
        world.daemon.end("power cut")
        world.note("disk", f"lost {world.disk.lose_power()} writes")

    world.timeline.at(_when(random), cut)


def _broker(memory: Memory) -> Fault:
    def plan(world: World, random: Random) -> None:
        at, away_s = _when(random), random.uniform(0.3, 6.0)

        def stop() -> None:
            world.broker.stop(memory)
            for sender in world.senders.values():
                sender.cut()

        def start() -> None:
            world.broker.start()
            for sender in world.senders.values():
                world.timeline.after(random.uniform(0.05, 0.3), sender.reconnect)

        world.timeline.at(at, stop)
        world.timeline.at(at + away_s, start)
        world.outages.append(Outage(at, at + away_s + 1.0, SILENT))

    return plan


def _network(kind: Any, longest_s: float) -> Fault:
    def plan(world: World, random: Random) -> None:
        at, away_s = _when(random), random.uniform(0.1, longest_s)

        def cut() -> None:
            world.note("network", f"{kind} for {away_s:.1f} s")
            world.cut = kind
            for line in world.lines:
                line.fall_silent() if kind == "silent" else line.broken()

        def mend() -> None:
            world.cut = ""

        world.timeline.at(at, cut)
        world.timeline.at(at + away_s, mend)
        # a line that is silent is noticed after a while; until then the vehicles are, as far as the daemon knows
        noticed_s = NOTICED_S if kind == "silent" else 0.0
        world.outages.append(Outage(at, at + away_s + noticed_s + 2.0, SILENT if kind == "silent" else SLOW))

    return plan


def _slow_network(world: World, random: Random) -> None:
    at = _when(random)

    def slow(factor: float) -> None:
        world.slow = factor

    end = at + random.uniform(2, 10)
    world.timeline.at(at, slow, random.uniform(10, 30))
    world.timeline.at(end, slow, 1.0)
    world.outages.append(Outage(at, end, SLOW))


def _duplicates(world: World, random: Random) -> None:
    share = random.uniform(0.05, 0.5)
    world.broker.duplicate = lambda: random.random() < share


def _forget_unread(world: World) -> None:
    """What the run before has left is gone, unless a process has read it and can write it again."""
    if not (world.daemon.app and world.daemon.app.memory.complete):
        world.forgotten()


def _disk(name: str) -> Fault:
    def plan(world: World, random: Random) -> None:
        at, lasts_s = _when(random), random.uniform(1, 16)

        def change(on: bool) -> None:
            world.note("disk", f"{name} {'begins' if on else 'ends'}")
            setattr(world.disk, name, on)
            if name == "broken" and on:
                _forget_unread(world)

        world.timeline.at(at, change, True)
        world.timeline.at(at + lasts_s, change, False)

    return plan


def _deleted(world: World, random: Random) -> None:
    def delete() -> None:
        world.note("disk", "state folder deleted")
        world.disk.remove()
        _forget_unread(world)

    world.timeline.at(_when(random), delete)


def _slow_disk(world: World, random: Random) -> None:
    at = _when(random)

    def slow(delay_s: float) -> None:
        world.slow_disk_s = delay_s

    world.timeline.at(at, slow, random.uniform(0.1, 3.0))
    world.timeline.at(at + random.uniform(2, 10), slow, 0.0)


def _flood(world: World, random: Random) -> None:
    """Somebody sends what nobody can read, faster than it can be thrown away."""
    at = _when(random)
    world.broker.in_flight = MANY_IN_FLIGHT
    for i in range(random.randint(150, 400)):
        world.timeline.at(at + 0.00001 * i, world.broker.publish, Message("telemetry/gps/flood", b"?" * 50))


def _sender_cut(world: World, random: Random) -> None:
    """One vehicle loses its line: it is late, and nobody else is."""
    name = random.choice(list(world.senders))
    at, away_s = _when(random), random.uniform(1, 12)
    sender = world.senders[name]

    def cut() -> None:
        world.note("network", f"{name} is cut off for {away_s:.1f} s")
        world.cut_off.add(name)
        sender.cut()

    def mend() -> None:
        world.cut_off.discard(name)
        sender.reconnect()

    world.timeline.at(at, cut)
    world.timeline.at(at + away_s, mend)
    world.outages.append(Outage(subjects=frozenset({name})))


def _sender_clock(world: World, random: Random) -> None:
    """One vehicle's clock is off from some moment on: by seconds, by an hour, or ever more.

    Where only one other is heard all the time nobody can say which of the two is right.
    """
    steady = sum(not name.startswith("quad") for name in world.senders)
    offenders = [name for name in world.senders if steady - (not name.startswith("quad")) >= 2]
    if not offenders:
        return
    name = random.choice(offenders)
    since = _when(random) + EPOCH_S
    offset_s = random.choice((-3600.0, -40.0, -20.0, 2.5, 20.0, 40.0, 3600.0))
    creeping = random.random() < 0.3
    world.note("senders", f"the clock of {name} is off by {offset_s} s{' more each second' if creeping else ''}")
    for _, message in world.messages[name]:
        if message.t >= since:
            fields = msgspec.json.decode(message.payload)
            fields["t"] += offset_s * (message.t - since if creeping else 1.0)
            message.payload = msgspec.json.encode(fields)
    world.outages.append(Outage(subjects=frozenset({name})))


def _detector_raises(world: World, random: Random) -> None:
    """A detector fails at every tick for a while."""
    name = random.choice(("kinematics", "conflict", "silence", "link"))
    at, lasts_s = _when(random), random.uniform(0.5, 8)

    def fail(_window: Any) -> list[Any]:
        # nobody can know before it is called, and while input waits for the disk it is not
        world.failing = world.daemon.app
        raise ZeroDivisionError("planted")

    def begin() -> None:
        if (app := world.daemon.app) is None:
            return
        world.note("detector", f"{name} raises for {lasts_s:.1f} s")
        fence = next(fence for fence in app.pipeline.guard.fences if fence.name == name)
        make = fence._make
        fence._make = lambda config, fleet: _failing(make(config, fleet), fail)
        _failing(fence.detector, fail)
        world.timeline.after(lasts_s, end, fence, make)

    def end(fence: Any, make: Any) -> None:
        fence._make = make
        vars(fence.detector).pop("step", None)
        world.failing = None

    world.timeline.at(at, begin)
    kinds = {"conflict": {"conflict", "los"}, "silence": SILENT, "link": SLOW}.get(name, {name})
    world.outages.append(Outage(kinds=frozenset(kinds)))


def _failing(detector: Any, step: Any) -> Any:
    detector.step = step
    return detector


def _sink_raises(world: World, random: Random) -> None:
    """The live page's sink fails with every event for a while."""
    at, lasts_s = _when(random), random.uniform(1, 15)

    def fail(_event: Any) -> None:
        raise ZeroDivisionError("planted")

    def begin() -> None:
        if (app := world.daemon.app) is not None:
            world.note("sink", f"the live page raises for {lasts_s:.1f} s")
            app.live.put = fail  # type: ignore[method-assign]
            world.timeline.after(lasts_s, lambda: vars(app.live).pop("put", None))

    world.timeline.at(at, begin)


def _host_clock(world: World, random: Random) -> None:
    """Somebody sets the clock of the daemon's host."""
    by_s = random.choice((-3600.0, -5.0, -0.5, 0.5, 5.0, 3600.0))

    def step() -> None:
        world.note("clock", f"the wall clock is set by {by_s} s")
        world.wall_s += by_s

    at = _when(random)
    world.timeline.at(at, step)
    world.outages.append(Outage(at, kinds=SLOW))


def _denied(world: World, random: Random) -> None:
    """Somebody's mistake in the broker's access list: for a while no alarm may be published."""
    at = START_S + BEGIN_S + random.uniform(1, 8)
    end = at + random.uniform(2, 8)

    def deny(topics: tuple[str, ...]) -> None:
        world.note("broker", f"denies {', '.join(topics) or 'nothing'}")
        world.broker.denied = topics

    world.timeline.at(at, deny, ("watchkeeper/alarm/#",))
    world.timeline.at(end, deny, ())
    # what was refused is offered again after a while
    world.refused_until_s = end + RETRY_S + 1.0


def _nothing(world: World, random: Random) -> None:
    pass


FAULTS: dict[str, Fault] = {
    "none": _nothing,
    "kill": _kill,
    "kill_at_disk": _kill_at_disk,
    "term": _term,
    "hup": _hup,
    "power": _power,
    "broker_kept": _broker("kept"),
    "broker_older": _broker("older"),
    "broker_empty": _broker("empty"),
    "net_reset": _network("reset", 8.0),
    "net_silent": _network("silent", 14.0),
    "net_slow": _slow_network,
    "no_session": _nothing,
    "duplicates": _duplicates,
    "disk_full": _disk("full"),
    "disk_read_only": _disk("read_only"),
    "disk_broken": _disk("broken"),
    "disk_deleted": _deleted,
    "disk_slow": _slow_disk,
    "denied": _denied,
    "flood": _flood,
    "sender_cut": _sender_cut,
    "sender_clock": _sender_clock,
    "detector_raises": _detector_raises,
    "sink_raises": _sink_raises,
    "host_clock": _host_clock,
}


def draw(random: Random) -> tuple[str, ...]:
    """One to three kinds of faults for a seed."""
    kinds = [name for name in FAULTS if name != "none"]
    count = random.choice((1, 1, 1, 2, 2, 3))
    return tuple(sorted(random.sample(kinds, count)))
