"""docs/alarms.md is what the declarations say, and names every kind and metric."""

from __future__ import annotations

from watchkeeper.detectors.catalog import gauges, kinds
from watchkeeper.detectors.reference import reference_markdown

from where import DOCS

PAGE = DOCS / "alarms.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == reference_markdown(), "run `make docs`"


def test_every_kind_and_every_figure_is_on_it():
    text = PAGE.read_text()
    assert all(f"## {kind}\n" in text for kind in kinds())
    incident = {metric for key, (metric, _) in gauges().items() if not key.startswith("topology_")}
    assert all(f"`watchkeeper_{metric}" in text for metric in incident)
