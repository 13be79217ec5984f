"""What each hypothesis would make a tool answer, in words; and which word a report amounts to.

Both sides of the comparison are here: `expected(hypothesis, tool, device)` and `observed(report)`. A word that is about
one neighbour or hop carries its name, `down:uav-3`. Cases that look alike get the same word from a tool that cannot
tell them apart (a dead vehicle and a cut link are both `silent` to `status`) and different ones from the one that can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from watchkeeper.detectors.incidents.faults import STOPPING, Form, Hypothesis
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import Topology, Way, link_name, sensor_kind

# Where a reading stops being usual. Readings are over the stream's own past where they have one.
BUSY = 0.6  # load of a processor
SLOW_SHARE = 0.6  # samples per second, over what is usual
NOISY_DB = 5.0  # five times the noise power is past what a receiver sees in a city
EVEN_DB = 2.6  # satellites differ by 4 dB or more; one transmitter that plays them all does not
LOSSY = 0.15  # two packets of ten
ERRORS = 0.04
BACKLOG_S = 0.06
FILTERED = 2.0  # packets per second that a rule refuses
IDLE = 0.3  # traffic from a neighbour, over what is usual
EXPLAINED = 0.5  # share of a contradiction that one cause explains
CLOCK_S = 0.08
# A radio hop and a backbone take this long when all is well, three times out of four.
USUAL_RTT_S = 0.12

_STATUS = {Form.RATE: "busy", Form.JAM: "noisy", Form.SPOOF: "even", Form.IMU: "failing"}
_SCAN = {
    Form.RATE: "busy", Form.JAM: "noisy", Form.SPOOF: "led", Form.IMU: "erratic", Form.FRAME: "turned",
    Form.AXIS: "turned", Form.UNIT: "scaled", Form.CLOCK: "clock",
}  # fmt: skip
_PORT = {
    Form.CUT: "down", Form.BLOCKED: "filtered", Form.LOSS: "errors", Form.LATENCY: "backlog",
}  # fmt: skip
_HOP = {Form.CUT: "no-way", Form.DEAD: "quiet", Form.BLOCKED: "quiet", Form.LOSS: "lossy", Form.LATENCY: "slow"}
PLAIN, SILENT = "plain", "silent"


def expected(h: Hypothesis, tool: Tool, device: str, topology: Topology) -> str:
    """The word that this tool should give for this device if the hypothesis is true."""
    on_path = h.device in topology.path(device)
    around = h.around(topology).get(device) if on_path else None
    if tool is Tool.TRACEROUTE:
        if around is not None:
            return f"around:{_rejoins(around, topology)}"
        return f"{_HOP[h.form]}:{h.device}" if on_path and h.form in _HOP else PLAIN
    if on_path and h.form in STOPPING and around is None:
        return SILENT
    if tool is Tool.PING:
        if around is not None:
            return "slow"
        return _HOP[h.form] if on_path and h.form in _HOP else PLAIN
    if tool is Tool.INTERFACES:
        return _port_expected(h, device, topology)
    if tool is Tool.DISCOVER:
        hears = topology.parent.get(h.device) == device
        hears |= h.form is Form.DEAD and h.device in topology.standby.get(device, ())
        return f"missing:{h.device}" if h.form in STOPPING and hears else PLAIN
    if device != h.device:
        return PLAIN
    return (_STATUS if tool is Tool.STATUS else _SCAN).get(h.form, PLAIN)


def _port_expected(h: Hypothesis, device: str, topology: Topology) -> str:
    """A fault of a link shows at both its ends, a dead device at every port that leads to it."""
    if h.form is Form.DEAD:
        return f"idle:{_port(device, h.device, topology)}" if h.device in topology.neighbours(device) else PLAIN
    near = device in (h.device, topology.parent.get(h.device))
    return f"{_PORT[h.form]}:{h.device}" if near and h.form in _PORT else PLAIN


def _port(device: str, peer: str, topology: Topology) -> str:
    """What a port is called: an uplink by the end that is further from the broker, a standby link by both."""
    if topology.parent.get(device) == peer:
        return device
    return link_name(device, peer) if peer in topology.standby.get(device, ()) else peer


def _rejoins(way: Way, topology: Topology) -> str:
    """The first device on a way around that is not reached over its uplink."""
    return next(device for before, device in pairwise(way) if topology.parent[device] != before)


def observed(report: Report, topology: Topology, latency_s: float) -> str:
    """The word that a report amounts to; `latency_s` is what the alarms say has been added to the latency, if any."""
    if report.tool is Tool.TRACEROUTE:
        return _hops(report, topology, latency_s)
    if not report.answered:
        return SILENT
    own = report.readings[report.target]
    if report.tool is Tool.PING:
        return _trip(own, latency_s)
    if report.tool is Tool.INTERFACES:
        return _ports(report, topology)
    if report.tool is Tool.DISCOVER:
        return _missing(report)
    return _inside(own, sensor_kind(report.target))


def _trip(own: Mapping[str, float], latency_s: float) -> str:
    if own["lost"] >= LOSSY:
        return "lossy"
    return "slow" if own["rtt_s"] > USUAL_RTT_S + 0.5 * max(latency_s, 0.1) else PLAIN


def _hops(report: Report, topology: Topology, latency_s: float) -> str:
    """Where the way ends, or which hop adds most of a delay or a loss."""
    if (device := _went_around(report, topology)) is not None:
        return f"around:{device}"
    before_rtt_s = before_lost = 0.0
    slow: tuple[float, str] = (0.5 * max(latency_s, 0.1) + 0.5 * USUAL_RTT_S, "")
    lossy: tuple[float, str] = (LOSSY, "")
    for device in topology.path(report.target):
        hop = report.readings.get(device)
        if hop is None:
            continue
        if hop["stop"] > 0.5:
            return f"{'no-way' if hop['stop'] < 1.5 else 'quiet'}:{device}"
        # a hop may not say how long it took
        rtt_s, lost = hop.get("rtt_s", before_rtt_s), hop.get("lost", before_lost)
        slow = max(slow, (rtt_s - before_rtt_s, device))
        lossy = max(lossy, (lost - before_lost, device))
        before_rtt_s, before_lost = rtt_s, lost
    if lossy[1]:
        return f"lossy:{lossy[1]}"
    return f"slow:{slow[1]}" if slow[1] else PLAIN


def _went_around(report: Report, topology: Topology) -> str | None:
    """Where the way comes back to the usual one, if it left it. A hop that says nothing leaves a gap in the numbers."""
    usual = topology.path(report.target)
    before = (0, topology.broker)
    for number, device in sorted((int(own["hop"]), d) for d, own in report.readings.items() if "hop" in own):
        if device in usual and number > 0:
            skipped = number == before[0] + 1 and before[1] != usual[usual.index(device) - 1]
            if skipped or number != usual.index(device):
                return device
        before = (number, device)
    return None


def _missing(report: Report) -> str:
    """The neighbour of which nothing is heard; of several the one that was heard last, for that one is news."""
    missing = [
        (own.get("age_s", math.inf), device)
        for device, own in report.readings.items()
        if device != report.target and own["heard"] < IDLE
    ]
    return f"missing:{min(missing)[1]}" if missing else PLAIN


def _ports(report: Report, topology: Topology) -> str:
    """The most telling port: one without a signal says more than one with a queue."""
    found: list[tuple[int, float, str]] = []
    for peer, port in report.readings.items():
        if peer == report.target:
            continue
        end = _port(report.target, peer, topology)
        states = (
            # a dark lamp over a port that carries traffic is a broken lamp
            ("down", port["carrier"] < 0.5 and port["heard"] < IDLE, 1.0 - port["heard"]),
            ("filtered", port["filtered"] >= FILTERED, port["filtered"]),
            ("errors", port["errors"] >= ERRORS, port["errors"]),
            ("backlog", port["backlog_s"] >= BACKLOG_S, port["backlog_s"]),
            ("idle", port["heard"] < IDLE, 1.0 - port["heard"]),
        )
        for rank, (word, on, size) in enumerate(states):
            if on:
                found.append((-rank, size, f"{word}:{end}"))
                break
    return max(found)[2] if found else PLAIN


def _inside(own: Mapping[str, float], kind: str) -> str:
    """What a device says about itself (status) or what its samples give away (scan)."""
    tests = [
        ("noisy", own.get("noise_db", 0.0) - NOISY_DB),
        ("busy", max(own.get("load", 0.0) - BUSY, SLOW_SHARE - own.get("rate", 1.0))),
        ("failing", 0.5 - own.get("self_test", 1.0)),
        ("clock", abs(own.get("clock_s", 0.0)) - CLOCK_S),
    ]
    for word, over in tests:
        if over > 0.0:
            return word
    shares = {word: own.get(word, 0.0) for word in ("turned", "scaled", "led", "erratic")}
    if max(shares.values()) >= EXPLAINED:
        return max(shares, key=lambda word: shares[word])
    return "even" if kind == "gps" and own.get("spread_db", EVEN_DB) < EVEN_DB else PLAIN
