"""Types, subtypes, industries and themes as pages write them."""

import pytest

from muniment.languages.speaking import speaking
from muniment.web.wording.labels import labelled, note, words_of


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


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("type", "open source project", "Open-Source-Projekt"),
        ("type", "Non-Profit", "Gemeinnützig"),
        ("orgKind", "foundation", "Stiftung"),
        ("industry", "Real estate", "Immobilien"),
        ("theme", "public-goods", "Öffentliche Güter"),
        ("type", "moonbase", "Moonbase"),
        ("theme", "us", "us"),
    ],
)
def test_a_value_that_the_schema_suggests_is_in_the_visitors_language(name, value, shown):
    with speaking("de"):
        assert labelled(name, value) == shown


def test_a_note_and_a_common_additional_member_are_in_the_visitors_language():
    with speaking("de"):
        assert note("sum of grants received") == "Summe erhaltener Zuschüsse"
        assert words_of("sources") == "Quellen"
    assert note("sum of grants received") == "Sum of grants received"
    assert words_of("sources") == "Sources"
