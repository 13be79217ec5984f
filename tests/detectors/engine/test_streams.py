"""Whom a detector judges by its streams: the table of bits says what a plain reading of the declarations does."""

import numpy as np
import pytest

from watchkeeper.config.schema import FleetLimits
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.engine.streams import FRESH_S, NOT_APPLICABLE, SENSORS, SILENT, WATCHED, covered, needs_of
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import no_stream
from watchkeeper.streams.messages import Kind

T = 1000.0
N = 400


def plainly(declaration: Declaration, heard_t: dict[Kind, float]) -> int:
    """The code of one vehicle, kind by kind and group by group."""
    code = NOT_APPLICABLE
    for kind in declaration.kinds:
        found, sends = WATCHED, False
        for group in kind.needs or (tuple(Kind),):
            newest_t = max((heard_t[stream] for stream in group if stream in heard_t), default=None)
            if newest_t is None:
                found = no_stream(group[0]) if SENSORS & set(group) else NOT_APPLICABLE
            else:
                sends = True
                found = SILENT if found == WATCHED and T - newest_t > FRESH_S else found
        if code != WATCHED and sends:
            code = found
    return code


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bits_say_what_the_declarations_do(seed: int):
    rng = np.random.default_rng(seed)
    fleet = Fleet(FleetLimits(max_vehicles=N))
    for k in range(N):
        fleet.slot_for(f"v{k}")
    ages = rng.choice([-1.0, 0.0, FRESH_S, np.nextafter(FRESH_S, 99.0), 500.0], size=(len(Kind), N))
    fleet.last_t[:, :N] = np.where(ages >= 0.0, T - ages, -np.inf)
    declarations = [make.declaration for make in REGISTRY.values()]
    codes = covered(needs_of(declarations), fleet, T)
    for d, declaration in enumerate(declarations):
        for slot in range(N):
            heard = {kind: float(fleet.last_t[kind, slot]) for kind in Kind if fleet.last_t[kind, slot] > -np.inf}
            assert codes[d, slot] == plainly(declaration, heard), (declaration.name, heard)
