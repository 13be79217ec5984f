"""Types for command-line arguments: what a word must look like. A wrong one is a usage error, exit code 2."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError

from watchkeeper.streams.logs.pacing import parse_speed
from watchkeeper.streams.mqtt.wiring import parse_url
from watchkeeper.streams.split import BUCKETS


def mqtt_url(word: str) -> str:
    """mqtt://HOST[:PORT] or mqtts://HOST[:PORT]."""
    try:
        parse_url(word)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return word


def speed(word: str) -> float:
    """A multiple of real time, or max."""
    try:
        return parse_speed(word)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def positive(word: str) -> int:
    """A whole number from 1."""
    if not word.isdecimal() or int(word) < 1:
        raise ArgumentTypeError(f"{word!r}: expected a whole number from 1")
    return int(word)


def workers(word: str) -> int:
    """A number of processes: there are as many buckets of vehicles as there can be of these."""
    if not word.isdecimal() or not 1 <= int(word) <= BUCKETS:
        raise ArgumentTypeError(f"{word!r}: expected a number of workers, 1 to {BUCKETS}")
    return int(word)


def seconds(word: str) -> float:
    """A time in seconds, from a tenth to a day."""
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not 0.1 <= found <= 86_400:
        raise ArgumentTypeError(f"{word!r}: expected seconds, 0.1 to 86400")
    return found


def port(word: str) -> int:
    """A TCP port; 0 is any free one."""
    if not word.isdecimal() or int(word) > 65_535:
        raise ArgumentTypeError(f"{word!r}: expected a port, 0 to 65535")
    return int(word)
