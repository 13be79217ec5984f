"""A page stays below its limit, however many vehicles and alarms there are, and says what was left out."""

from __future__ import annotations

import re

from watchkeeper.config.loader import load
from watchkeeper.daemon.report.gather.collect import VEHICLES_MAX
from watchkeeper.daemon.report.html import page
from watchkeeper.daemon.report.make import report
from watchkeeper.streams.frames.sources import sources_of
from watchkeeper.streams.simulate import simulate

LIMIT_BYTES = 3_000_000


def test_a_crowded_sky_fits_into_a_page_that_says_what_is_missing() -> None:
    crowd = VEHICLES_MAX + 100
    config = load(None, env={}, overrides={"detectors": {"conflict": {"max_pairs": 20_000}}})
    sources = sources_of(simulate("random", vehicles=crowd, seconds=240, seed=2))
    result = report(sources, config, ["watchkeeper"])
    made = page(result)
    assert len(result.lives) > 100
    assert len(made.encode()) < LIMIT_BYTES
    assert result.collector.rows.without > 0
    plotted = re.search(r"([\d,]+) of ([\d,]+) have plots here", made)
    assert plotted is not None
    assert "more are not shown one by one" in made
    assert re.search(r"and [\d,]+ more vehicles", made)
