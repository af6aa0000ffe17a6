"""Types, subtypes, industries and themes as pages write them."""

import pytest

from muniment.web.wording.labels import labelled


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("type", "open source project", "Open source project"),
        ("type", "non-profit", "Non-profit"),
        ("type", "DAO", "DAO"),
        ("orgKind", "eToro", "eToro"),
        ("industry", "", ""),
        ("theme", "public-goods", "Public goods"),
        ("themes", "Real-world assets", "Real-world assets"),
        ("theme", "us", "us"),
        ("theme", "coast, large", "Coast, large"),
        ("theme", "-odd-", "-odd-"),
        ("country", "fr", "fr"),
    ],
)
def test_a_value_in_small_letters_is_written_as_words(name, value, shown):
    assert labelled(name, value) == shown
