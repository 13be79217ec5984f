"""docs/messages.md says what the code does."""

from watchkeeper.streams.codec.reasons import REASONS
from watchkeeper.streams.codec.reference import reference_markdown
from watchkeeper.streams.messages import Drop

from where import ROOT


def test_the_message_reference_is_up_to_date():
    assert (ROOT / "docs/messages.md").read_text() == reference_markdown(), "run `make docs`"


def test_every_reason_is_explained():
    assert set(REASONS) == set(Drop.ALL)
