"""Squitters in columns: what the kernels read is what rs1090 reads, and the table of aircraft is bounded."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
import rs1090
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.fuzz import seals
from watchkeeper.streams.adapters.receivers import heard, squitter
from watchkeeper.streams.adapters.receivers.squitter import Squitters
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.messages import ADSB

from .test_receivers import EVEN, ODD, rows

RANDOM = random.Random(1)


def sealed(me: int, address: str = "40621d") -> str:
    """A squitter with this message, and its parity."""
    message = f"8d{address}{me:014x}"
    return message + seals.parity(bytes.fromhex(message)).hex()


def read(frame: str) -> tuple[np.ndarray, tuple[bool, bool, int, int] | None]:
    """The values that the kernels find, and the half of a position."""
    values, data = np.full(heard.WIDTH, math.nan), np.frombuffer(bytes.fromhex(frame), np.uint8)
    if data[4] >> 3 == 19:
        heard._velocity(data, values)
        return values, None
    return values, heard._position(data, values)


def same(ours: float, theirs: float | None) -> bool:
    return math.isnan(ours) if theirs is None else ours == pytest.approx(theirs, abs=1e-9)


def test_every_code_of_a_position_is_read_as_rs1090_does() -> None:
    airborne = [tc << 51 | code << 36 | RANDOM.getrandbits(34) for tc in (11, 20) for code in range(4096)]
    ground = [tc << 51 | code << 44 | RANDOM.getrandbits(44) for tc in (5, 8) for code in range(128)]
    any_type = [tc << 51 | RANDOM.getrandbits(51) for tc in (*range(5, 19), 20, 21, 22) for _ in range(50)]
    frames = [sealed(me) for me in (*airborne, *ground, *any_type)]
    below_zero = unread = 0
    for frame, message in zip(frames, rs1090.decode(frames), strict=True):
        values, half = read(frame)
        if message is None:  # it refuses a frame whose altitude is no code of Gillham's, or a high one in that code
            unread += 1
            assert math.isnan(values[ADSB.alt_ft]) or values[ADSB.alt_ft] > 50_000.0
            continue
        theirs = message["parity"] == "odd", message["bds"] == "06", message["lat_cpr"], message["lon_cpr"]
        assert half == theirs
        if message["bds"] == "06":
            assert same(values[ADSB.gs_kt], message.get("groundspeed"))
            assert same(values[ADSB.trk_deg], message.get("track"))
        elif values[ADSB.alt_ft] <= 0.0:  # which it leaves out of Gillham's
            below_zero += 1
            assert values[ADSB.alt_ft] > -1300.0
            assert message.get("altitude") in (None, values[ADSB.alt_ft])
        else:
            barometric = message["source"] == "barometric"
            assert same(values[ADSB.alt_ft], message.get("altitude") if barometric else None)
    assert 0 < below_zero < 200
    assert 0 < unread < len(frames) // 2


def test_velocities_are_read_as_rs1090_does() -> None:
    frames = [sealed(19 << 51 | RANDOM.getrandbits(51)) for _ in range(3000)]
    spoken = 0
    for frame, message in zip(frames, rs1090.decode(frames), strict=True):
        values, _ = read(frame)
        assert message is not None
        assert same(values[ADSB.vs_fpm], message.get("vertical_rate"))
        supersonic = int(frame[8:10], 16) & 7 == 2
        if math.isnan(values[ADSB.gs_kt]):
            # air speed, or a half of the velocity is not there, of which it makes a speed of 1 kt
            me = int(frame[8:22], 16)
            assert message.get("groundspeed") is None or not (me >> 35 & 0x3FF and me >> 24 & 0x3FF)
        else:
            spoken += 1
            # in 4 kt, which it takes for 1 kt
            assert same(values[ADSB.gs_kt] / (4.0 if supersonic else 1.0), message["groundspeed"])
            assert same(values[ADSB.trk_deg], message["track"])
    assert spoken > 500


PAIRS = [(EVEN, ODD)[k % 2] for k in range(6)]


def of(address: int) -> list[str]:
    """A pair, three times, of another aircraft."""
    return [sealed(int(frame[8:22], 16), f"{address:06x}") for frame in PAIRS]


def test_the_table_is_bounded_and_the_longest_unheard_of_make_room() -> None:
    squitters = Squitters(Counter(), limit=40)
    first, crowd = of(1), [of(100 + k) for k in range(100)]
    squitters.add([(frame, 0.1 * k) for k, frame in enumerate(first)])
    assert rows(squitters.take())
    squitters.add([(frames[0], 1.0) for frames in crowd])
    assert int(squitters._sky.counts[0]) <= 40
    # its place was taken, so that it must be found again; the last of the crowd is still there
    squitters.add([(first[0], 2.0)])
    assert squitters.take() is None
    squitters.add([(frame, 2.0 + 0.1 * k) for k, frame in enumerate(crowd[-1][1:])])
    assert {name for name, _, _ in rows(squitters.take())} == {f"{199:06x}"}


def test_an_aircraft_unheard_of_for_long_is_forgotten() -> None:
    squitters = Squitters(Counter())
    squitters.add([(frame, 0.1 * k) for k, frame in enumerate(of(1))])
    squitters.add([(of(2)[0], 290.0)])
    assert int(squitters._sky.counts[0]) == 2
    squitters.add([(of(2)[0], 321.0)])
    assert int(squitters._sky.counts[0]) == 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=60), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_rows_do_not_depend_on_pieces_or_on_what_was_decoded_before(
    heard_of: list[tuple[int, int]], piece: int
) -> None:
    """Positions of some aircraft, with squitters among them that rs1090 decodes: kept for long, or hardly."""
    state = [28 << 51 | 1 << 48 | code << 45 for code in range(4)]
    frames = [
        (of(1 + who)[what] if what < 6 else sealed(state[what - 6], f"{1 + who:06x}"), 0.2 * k)
        for k, (who, what) in enumerate(heard_of)
    ]
    whole, pieces = Squitters(Counter()), Squitters(Counter())
    whole.add(frames)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(squitter, "PIECE", piece)
        patch.setattr(squitter, "KEPT", 8)
        hardly = Squitters(Counter())
        hardly.add(frames)
    for frame in frames:
        pieces.add([frame])
    assert rows(whole.take()) == rows(pieces.take()) == rows(hardly.take())


@given(st.lists(st.floats(0.0, 1e4), max_size=30), st.sampled_from([math.nan, 1000.0]))
def test_times_of_many_messages_are_those_of_each(seconds: list[float], now: float) -> None:
    one, many = SenderClock(), SenderClock()
    assert [one.time(s, now) for s in seconds] == many.times(np.array(seconds), now).tolist()
