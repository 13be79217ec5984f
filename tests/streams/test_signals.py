"""Names of signals in columns: every name comes back, distinct names stay distinct, and nothing else is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.streams.messages import NAME_MAX
from watchkeeper.streams.signals import (
    RESERVED,
    SIGNAL_NAME_MAX,
    as_name,
    is_name,
    label,
    label_of,
    name_columns,
    names_in,
)

CHARACTERS = "ABCXYZabcxyz019_.:/[]-"
NAMES = st.text(CHARACTERS, min_size=1, max_size=SIGNAL_NAME_MAX).filter(lambda name: name not in RESERVED)


@given(st.lists(NAMES, min_size=1, max_size=20))
def test_every_name_comes_back(names):
    columns = name_columns(names)
    assert names_in(columns) == names
    assert ((columns >= 0.0) & (columns <= NAME_MAX)).all()
    assert (columns == np.rint(columns)).all()


@given(NAMES, NAMES)
def test_two_names_have_the_same_numbers_only_if_they_are_the_same(a, b):
    assert (name_columns([a]) == name_columns([b])).all() == (a == b)


@given(st.text(max_size=80))
def test_any_text_can_be_made_a_name(text):
    assert is_name(as_name(text)) or as_name(text) in RESERVED


@pytest.mark.parametrize("name", ["", "t", "id", "a b", "ä", "x" * (SIGNAL_NAME_MAX + 1), "a+b", "a#", "a~b", "a\x00"])
def test_what_is_no_name(name):
    assert not is_name(name)


@given(st.text(CHARACTERS, min_size=1, max_size=8))
def test_a_word_is_a_value_and_comes_back(word):
    assert label_of(label(word)) == word


@given(st.floats(-1e12, 1e12))
def test_a_plain_number_is_no_word(value):
    assert not label_of(value)
