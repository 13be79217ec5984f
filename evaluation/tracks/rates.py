"""Match rates: how many generated trajectories begin and end where real ones do, in cells of the grid.

A generator that stops half way, or begins where nobody does, may still be near where it can be compared at all. The
rates are about all generated trajectories of enough points, compared or not. Called by report.py and slices.py.
"""

from __future__ import annotations

import msgspec

from watchkeeper.evaluation.tracks.pairs import Ends


class Rate(msgspec.Struct, frozen=True):
    """`matched` of `total`; `rate` is None where there is nothing to count."""

    matched: int
    total: int
    rate: float | None


class MatchRates(msgspec.Struct, frozen=True):
    """Shares of the generated trajectories, but for `distinct_pairs`, which is of their different pairs of cells."""

    origin: Rate
    """Its first cell is the first of some real trajectory."""
    destination: Rate
    """Its last cell is the last of some real trajectory."""
    both: Rate
    """Both of these, perhaps of two different real trajectories."""
    pair: Rate
    """One real trajectory has both: a trip that exists."""
    distinct_pairs: Rate
    """Of the different pairs of cells, those that a real trajectory has."""


def match_rates(real: Ends, gen: Ends) -> MatchRates:
    """How the ends of generated trajectories match those of real ones.

    >>> rates = match_rates([(0, (1, 2)), (1, (3, 4))], [(0, (1, 2)), (1, (1, 4)), (2, (1, 9)), (3, (8, 9))])
    >>> [rate.matched for rate in (rates.origin, rates.destination, rates.both, rates.pair)]
    [3, 2, 2, 1]
    """
    pairs = {od for _, od in real}
    origins, destinations = {origin for origin, _ in pairs}, {destination for _, destination in pairs}
    at_origin = [od[0] in origins for _, od in gen]
    at_destination = [od[1] in destinations for _, od in gen]
    made = {od for _, od in gen}
    return MatchRates(
        origin=_rate(sum(at_origin), len(gen)),
        destination=_rate(sum(at_destination), len(gen)),
        both=_rate(sum(map(bool.__and__, at_origin, at_destination)), len(gen)),
        pair=_rate(sum(od in pairs for _, od in gen), len(gen)),
        distinct_pairs=_rate(len(made & pairs), len(made)),
    )


def _rate(matched: int, total: int) -> Rate:
    return Rate(matched, total, matched / total if total else None)
