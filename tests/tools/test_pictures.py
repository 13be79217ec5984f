"""Pictures of detectors: one of each, on its page, drawn from what its scenario gives."""

from __future__ import annotations

import pytest

from tools.pictures import draw, play
from watchkeeper.detectors.catalog import REGISTRY

from where import DOCS

OWN = [name for name, detector in REGISTRY.items() if detector.__module__.startswith("watchkeeper.")]


@pytest.mark.parametrize("name", OWN)
def test_every_detector_has_its_picture_on_its_page(name: str) -> None:
    page = (DOCS / "detectors" / f"{name}.md").read_text()
    assert f"](../images/detectors/{name}.svg)" in page
    assert (DOCS / "images" / "detectors" / f"{name}.svg").is_file()


def test_a_picture_shows_the_alarm_that_lasts_longest() -> None:
    played = play("silence")
    events = played.longest()
    assert max(score for _, score in played.scores[events[0].subjects[0]]) > 1.0
    (axes,) = draw(played).axes
    assert axes.get_title(loc="left") == events[0].say
