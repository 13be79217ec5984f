"""The other half of the BlueSky adapter: a process of its own that runs or joins a simulation and tells it in lines.

    python -m watchkeeper.streams.adapters.bluesky.process run [--scenario FILE] [--commands "CRE …; HDG …"]
    python -m watchkeeper.streams.adapters.bluesky.process join HOST:PORT

BlueSky is a set of global objects that print and take over signals, so it does not live in the daemon. What goes to
standard output is JSON, a line each; adapter.py reads it, live and from a recorded run:

    {"t": …, "simt": …, "id": […], "lat": […], "lon": […], "alt_m": […], "gs_ms": […], "trk_deg": […], "vs_ms": […],
     "sel_alt_m": […], "conflicts": [[…, …], …]}                                   all aircraft of one moment
    {"t": …, "simt": …, "id": …, "heading_delta_deg": …, "speed_delta_ms": …}      what a controller commanded
    {"refused": …}                                                                 a command that BlueSky did not take

`t` is BlueSky's UTC, `simt` its seconds since the start, units are its own (m, m/s, deg). A command is told as the
change it asks for: the selected heading against the track flown, the selected speed as true airspeed against the true
airspeed flown, nothing for an altitude (`sel_alt_m` has it). `conflicts` is BlueSky's own list at that moment, for who
wants to compare. What only a running simulation knows (selected altitude, conflicts) is not there when one is joined.

Joining is listening only: a subscriber that sends nothing. Commands are those that other clients send over the
network; what a scenario file of the joined simulation does is not told to anybody.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import floor
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.periods import periods_over

Tell = Callable[[dict[str, Any]], None]
# How long a simulation that is on hold is left alone before the next look, in seconds.
HOLD_S = 0.05
# Where BlueSky's bytes of a topic begin and end: the group or node it is for, and the sender.
ID_BYTES = 5
EVERYBODY = b"*" * ID_BYTES
RECEIVE_PORT = 11_000


class Running:
    """A simulation of our own, without a screen and without a network."""

    def __init__(self, tell: Tell, *, scenario: Path | None, commands: str, period_s: float) -> None:
        import bluesky as bs  # noqa: PLC0415  the extra `bluesky`; it prints, so our output is out of its reach by now
        from bluesky.core.timedfunction import hooks  # noqa: PLC0415
        from bluesky.stack import simstack  # noqa: PLC0415

        bs.init(mode="sim", detached=True, workdir=_folder())
        self._bs, self._tell, self._period_s = bs, tell, period_s
        self._next = 0
        self._selected: dict[str, tuple[float, float, float]] = {}
        self._moment: dict[str, Any] | None = None
        bs.net.send = self._heard
        hooks.preupdate["watchkeeper"] = self._before
        hooks.update["watchkeeper"] = self._after
        if scenario is not None:
            planned = simstack.readscn(scenario) or []
            bs.stack.set_scendata([t for t, _ in planned], [command for _, command in planned])
        if commands:
            bs.stack.stack(commands)

    def run(self, *, speed: float, seconds: float) -> None:
        """Until it quits; with a speed of 0 as fast as it goes, and then only while something is still to come."""
        bs = self._bs
        due = time.monotonic()
        while bs.sim.state != bs.END and bs.sim.simt < seconds:
            self._selected = self._selections()
            bs.sim.step()
            if bs.sim.state != bs.OP:
                if speed == 0.0:  # on hold, reset or at its end: nobody is there who would go on with it
                    return
                time.sleep(HOLD_S)
                due = time.monotonic()
            if speed == 0.0:
                if not bs.traf.ntraf and not bs.stack.get_scendata()[0] and bs.sim.simt > 0.0:
                    return
            elif not bs.sim.ffmode:
                due += bs.sim.simdt / (speed * bs.sim.dtmult)
                time.sleep(max(0.0, due - time.monotonic()))

    def _selections(self) -> dict[str, tuple[float, float, float]]:
        traf = self._bs.traf
        chosen = zip(traf.ap.trk.tolist(), traf.selspd.tolist(), traf.selalt.tolist(), strict=True)
        return dict(zip(traf.id, chosen, strict=True))

    def _stamp(self) -> dict[str, Any]:
        sim = self._bs.sim
        return {"t": sim.utc.replace(tzinfo=UTC).timestamp(), "simt": sim.simt}

    def _before(self) -> None:
        """Commands have been taken in, nothing has moved yet: the state that BlueSky looks for conflicts in."""
        bs, traf, stamp = self._bs, self._bs.traf, self._stamp()
        for i, (name, now) in enumerate(self._selections().items()):
            was = self._selected.get(name, now)
            if was != now:
                turn_deg = (now[0] - traf.trk[i] + 180.0) % 360.0 - 180.0 if was[0] != now[0] else 0.0
                faster_ms = self._airspeed_ms(now[1], i) - traf.tas[i] if was[1] != now[1] else 0.0
                changes = {"heading_delta_deg": float(turn_deg), "speed_delta_ms": float(faster_ms)}
                self._tell({**stamp, "id": name, **changes})
        period = periods_over(bs.sim.simt, self._period_s)
        if period >= self._next or period < self._next - 2:
            self._next = period + 1
            arrays = {
                "lat": traf.lat, "lon": traf.lon, "alt_m": traf.alt, "gs_ms": traf.gs, "trk_deg": traf.trk,
                "vs_ms": traf.vs, "sel_alt_m": traf.selalt,
            }  # fmt: skip
            told = {name: array.tolist() for name, array in arrays.items()}
            self._moment = {**stamp, "id": list(traf.id), **told}

    def _airspeed_ms(self, speed: float, i: int) -> float:
        """A selected speed, calibrated in m/s or a Mach number, as true airspeed."""
        from bluesky.tools.aero import vcasormach  # noqa: PLC0415

        return float(vcasormach(speed, self._bs.traf.alt[i])[0])

    def _after(self) -> None:
        if self._moment is not None:
            self._tell({**self._moment, "conflicts": sorted(map(sorted, self._bs.traf.cd.confpairs_unique))})
            self._moment = None

    def _heard(self, topic: Any, data: Any = "", to_group: Any = b"") -> None:  # noqa: ARG002
        """What BlueSky would send to its screen; errors of commands are among it."""
        if topic == "ECHO" and data.get("flags"):
            self._tell({"refused": data.get("text", "")})


class Joined:
    """A simulation that somebody else runs, heard over BlueSky's network."""

    def __init__(self, tell: Tell, *, host: str, port: int, period_s: float) -> None:
        import zmq  # noqa: PLC0415  comes with BlueSky

        self._tell, self._period_s = tell, period_s
        self._line: Any = zmq.Context.instance().socket(zmq.SUB)
        for topic in (EVERYBODY + b"ACDATA", EVERYBODY + b"SIMINFO", EVERYBODY + b"STACK", b"S"):
            self._line.setsockopt(zmq.SUBSCRIBE, topic)
        self._line.connect(f"tcp://{host}:{port}")
        self._node = b""
        self._began: float | None = None
        self._last: dict[str, Any] = {"simt": -1.0}

    def run(self) -> None:
        """As long as somebody reads what we tell."""
        from bluesky.network.npcodec import decode_ndarray  # noqa: PLC0415
        from msgpack import unpackb  # noqa: PLC0415

        while True:
            head, *body = self._line.recv_multipart()
            topic, sender = head[ID_BYTES:-ID_BYTES], head[-ID_BYTES:]
            if topic not in (b"ACDATA", b"SIMINFO", b"STACK") or not body:
                continue
            data = unpackb(body[0], object_hook=decode_ndarray, raw=False)
            if topic == b"STACK":
                self._commands(str(data))
            elif topic == b"SIMINFO":
                self._clock(sender, data)
            else:
                self._aircraft(sender, data)

    def _clock(self, sender: bytes, data: Any) -> None:
        """(speed, step, simt, UTC without its fraction, …) of the first node that is heard; the others are not ours."""
        self._node = self._node or sender
        if sender == self._node:
            utc = datetime.fromisoformat(data[3]).replace(tzinfo=UTC).timestamp()
            # the clock starts at a whole second, so this is exact
            self._began = utc - floor(data[2])

    def _aircraft(self, sender: bytes, data: Any) -> None:
        if sender != self._node or self._began is None:
            return
        found = data[1]
        simt, last = float(found["simt"]), float(self._last["simt"])
        if last < simt < last + self._period_s - 1e-6 or simt == last:
            return
        self._last = found
        arrays = {"lat": "lat", "lon": "lon", "alt_m": "alt", "gs_ms": "gs", "trk_deg": "trk", "vs_ms": "vs"}
        told = {ours: found[theirs].tolist() for ours, theirs in arrays.items()}
        self._tell({"t": self._began + simt, "simt": simt, "id": list(found["id"]), **told})

    def _commands(self, lines: str) -> None:
        if self._began is None or "id" not in self._last:
            return
        names = [name.upper() for name in self._last["id"]]
        stamp = {"t": self._began + self._last["simt"], "simt": self._last["simt"]}
        for line in lines.split(";"):
            words = line.replace(",", " ").upper().split()
            if len(words) >= 3 and words[0] in names:  # KL204 HDG 120 is HDG KL204 120
                words[:2] = words[1], words[0]
            if len(words) >= 3 and words[1] in names and (asked := self._change(words, names.index(words[1]))):
                self._tell({**stamp, "id": self._last["id"][names.index(words[1])], **asked})

    def _change(self, words: list[str], i: int) -> dict[str, float] | None:
        """What a command changes; None if it is not one of a controller's."""
        from bluesky.tools.aero import vcasormach  # noqa: PLC0415

        turn_deg = faster_ms = 0.0
        try:
            if words[0] in ("HDG", "HEADING", "TURN"):
                turn_deg = (float(words[2]) - self._last["trk"][i] + 180.0) % 360.0 - 180.0
            elif words[0] in ("SPD", "SPEED"):
                speed = float(words[2].lstrip("M"))
                if words[2].startswith("M"):  # M78, M078 and M.78 are the same
                    speed = speed if speed < 1.0 else speed / 100.0
                wanted = vcasormach(speed if speed < 1.0 else speed * KT_MS, self._last["alt"][i])[0]
                faster_ms = wanted - self._last["tas"][i]
            elif words[0] != "ALT":
                return None
        except ValueError:
            self._tell({"refused": " ".join(words)})
            return None
        return {"heading_delta_deg": float(turn_deg), "speed_delta_ms": float(faster_ms)}


def _folder() -> Path:
    """Where BlueSky keeps its files: the user's own folder for it if there is one, or one next to other caches."""
    own = Path.home() / "bluesky"
    if own.is_dir():
        return own
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "watchkeeper" / "bluesky"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "output").mkdir(exist_ok=True)
    except OSError:  # a service without a home: it reads its airports again each time
        return Path(tempfile.mkdtemp(prefix="watchkeeper-bluesky-"))
    return cache


def main() -> int:
    """The process; see the module's docstring. What goes wrong is one line on standard error."""
    parser = argparse.ArgumentParser()
    ways = parser.add_subparsers(dest="way", required=True)
    run, join = ways.add_parser("run"), ways.add_parser("join")
    run.add_argument("--scenario", type=Path)
    run.add_argument("--commands", default="")
    run.add_argument("--speed", type=float, default=1.0)
    run.add_argument("--seconds", type=float, default=float("inf"))
    join.add_argument("where")
    for way in (run, join):
        way.add_argument("--period", type=float, default=1.0)
    args = parser.parse_args()

    # BlueSky prints a lot: from here on that goes nowhere, and our lines to where standard output was
    out, complaints = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    encode = msgspec.json.Encoder().encode

    def tell(line: dict[str, Any]) -> None:
        out.write(encode(line) + b"\n")
        out.flush()

    try:
        # nobody reads any more: the end
        with contextlib.suppress(BrokenPipeError):
            if args.way == "run":
                simulation = Running(tell, scenario=args.scenario, commands=args.commands, period_s=args.period)
                simulation.run(speed=args.speed, seconds=args.seconds)
            else:
                host, _, port = args.where.rpartition(":")
                Joined(tell, host=host, port=int(port), period_s=args.period).run()
    except Exception as error:
        print(f"BlueSky: {type(error).__name__}: {error}", file=complaints)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
