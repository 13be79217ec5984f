"""A diagnosis in words for a person: what is wrong and where, and each thing that it rests on.

Events carry the short words of the tools (`scan`, `led`), which programs can rely on. Reports call the functions here;
the live page (clues.js) puts the same sentences together from `VOCABULARY`, which the API serves with the kinds.
tests/daemon/live/test_clues.py compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from watchkeeper.detectors.incidents.declaration import fault_words, likely, place_words

# Streams named for one sign; further ones are counted.
MOST_STREAMS = 8
# Alternatives named, of those that are not as good as ruled out.
MOST_OTHERS, MAY_BE = 3, 0.01
# Between a finding and the device that it is about.
ABOUT = ":"


class Vocabulary(msgspec.Struct, frozen=True):
    """Words for what events call by a short name. A finding or a pattern ends where the name of a device follows."""

    faults: dict[str, str]
    signs: dict[str, str]
    tools: dict[str, str]
    findings: dict[str, str]
    patterns: dict[str, str]


SIGNS: dict[str, str] = {
    "silence": "silent",
    "latency": "arrives later than usual",
    "early": "arrives earlier than usual",
    "loss": "samples are missing",
    "rate": "fewer samples than usual",
    "gps": "GPS contradicts the IMU",
    "imu": "IMU contradicts the GPS",
    "gps_imu": "GPS and IMU contradict each other",
    "accuracy": "says itself that it is inaccurate",
}
TOOLS: dict[str, str] = {
    "status": "status of",
    "ping": "round trip to",
    "discover": "neighbours of",
    "interfaces": "ports of",
    "traceroute": "way to",
    "scan": "samples of",
}
FINDINGS: dict[str, str] = {
    "plain": "nothing unusual",
    "silent": "no answer",
    "busy": "overloaded, or slower than usual",
    "noisy": "noise in the receiver's band",
    "even": "all satellites equally strong, as from one transmitter",
    "failing": "fails its self-test",
    "clock": "its clock is off",
    "turned": "axes are turned or exchanged",
    "scaled": "off by one fixed factor",
    "led": "pulled aside by an offset that grows",
    "erratic": "stuck, noisy or irregular",
    "slow": "delayed",
    "lossy": "packets are lost",
    "slow:": "most of the delay is added at",
    "lossy:": "most packets are lost at",
    "no-way:": "no way on to",
    "quiet:": "nothing comes back from",
    "around:": "traffic takes another way and comes back at",
    "missing:": "nothing is heard of",
    "down:": "no signal on the port to",
    "filtered:": "a rule refuses packets on the port to",
    "errors:": "damaged packets on the port to",
    "backlog:": "packets wait at the port to",
    "idle:": "hardly anything is heard on the port to",
}
PATTERNS: dict[str, str] = {
    "spoofing": "spoofing",
    "jamming": "jamming",
    "receiver_fault": "a faulty receiver",
    "frozen_receiver": "a receiver that repeats itself",
    "clock": "a wrong clock",
    "imu_bias": "an IMU with an offset",
    "imu_scale": "an IMU with a wrong factor",
    "imu_stuck": "an IMU that is stuck",
    "imu_saturation": "an IMU beyond its range",
}


def vocabulary() -> Vocabulary:
    """All of it, as the API serves it."""
    return Vocabulary(fault_words(), SIGNS, TOOLS, FINDINGS, PATTERNS)


def fault_at(fault: Mapping[str, Any]) -> str:
    """A diagnosis, or one of its alternatives.

    >>> fault_at({"type": "performance_degradation", "location": "broker~wing-4"})
    'delays or losses on the link between broker and wing-4'
    """
    words = fault_words().get(fault["type"], fault["type"].replace("_", " ") + " at")
    return f"{words} {place_words(fault['location'])}"


def others(alternatives: Iterable[Mapping[str, Any]]) -> list[str]:
    """What else it may be, with its probability; not what is as good as ruled out.

    >>> others([{"type": "gps_jamming", "location": "q/gps", "confidence": p} for p in (0.21, 0.004)])
    ['jamming of the GPS of q (21 %)']
    """
    rivals = [fault for fault in alternatives if fault["confidence"] >= MAY_BE]
    return [f"{fault_at(fault)} ({likely(fault['confidence'])})" for fault in rivals[:MOST_OTHERS]]


def clues(evidence: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each thing that a diagnosis rests on; the streams that show one sign share a line.

    >>> clues([{"alarm": "gps_imu", "stream": "quad-3"}, {"pattern": "spoofing", "probability": "0.94"}])
    ['GPS and IMU contradict each other: quad-3', 'what it has shown looks like spoofing (94 %)']
    >>> clues([{"tool": "traceroute", "target": "uav-1", "found": "slow:gw-1"}])
    ['way to uav-1: most of the delay is added at gw-1']
    """
    signs: dict[str, list[str]] = {}
    lines = []
    for clue in evidence:
        if "tool" in clue:
            tool = TOOLS.get(clue["tool"], clue["tool"])
            lines.append(f"{tool} {place_words(clue['target'])}: {_found(clue['found'])}")
        elif "pattern" in clue:
            pattern = PATTERNS.get(clue["pattern"], clue["pattern"])
            lines.append(f"what it has shown looks like {pattern} ({likely(float(clue['probability']))})")
        elif "declared" in clue:
            lines.append(f"declared: {clue['declared']}; found: {clue['found']}")
        elif "alarm" in clue:
            signs.setdefault(clue["alarm"], []).append(place_words(clue["stream"]))
    return [f"{SIGNS.get(sign, sign)}: {_some(streams)}" for sign, streams in signs.items()] + lines


def _found(word: str) -> str:
    finding, about, device = word.partition(ABOUT)
    words = FINDINGS.get(finding + about, finding)
    return f"{words} {place_words(device)}" if about else words


def _some(streams: list[str]) -> str:
    more = len(streams) - MOST_STREAMS
    return ", ".join(streams[:MOST_STREAMS]) + (f" and {more} more" if more > 0 else "")
