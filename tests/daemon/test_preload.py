"""A module that cannot be loaded beforehand is said, and ends nothing."""

import asyncio
import logging

import pytest

from watchkeeper.daemon.background import preload


def test_a_module_that_does_not_load_is_said_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    asyncio.run(preload("no.such.module", lambda: True))
    assert "not loaded beforehand" in caplog.text
