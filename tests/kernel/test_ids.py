"""Slugs and ids."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kernel.ids import MAX_SLUG_CHARACTERS, new_id, slug_fault, slug_from_name

pytestmark = pytest.mark.requirement("slug.rules")


@pytest.mark.parametrize("slug", ["acme", "Acme", "a.b", "ölçek-vakfı", "株式会社", "مؤسسة", "a" * 200, "🜁", "..."])
def test_native_scripts_and_plain_characters_may_name_a_listing(slug):
    assert slug_fault(slug) is None


@pytest.mark.parametrize(
    "slug",
    ["", ".", "..", "a b", "a\u00a0b", "a\tb", "a\x00", "a\u200bb", "a\u202eb", "e\u0301", "a" * 201, "\ud800"]
    + [f"a{character}b" for character in "/\\?#%<>\"'`&"],
)
def test_a_text_that_an_address_cannot_contain_is_not_a_slug(slug):
    assert slug_fault(slug)


def test_a_slug_is_case_sensitive_and_made_in_lower_case():
    assert slug_from_name("Harbour & Sons  (Shipping)") == "harbour-sons-shipping"
    assert slug_from_name("Öz Işık") == "öz-işık"


def test_a_name_without_letters_makes_no_slug():
    assert slug_from_name("!!! ???") == ""


@given(st.text())
def test_every_slug_made_from_a_name_is_a_valid_slug(name):
    slug = slug_from_name(name)
    assert slug == "" or slug_fault(slug) is None, (name, slug)
    assert len(slug) <= MAX_SLUG_CHARACTERS
    assert unicodedata.is_normalized("NFC", slug)


def test_ids_are_unique_and_sort_by_the_millisecond_they_were_made_in():
    made = [new_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert [identifier[:9] for identifier in made] == sorted(identifier[:9] for identifier in made)
    assert {len(identifier) for identifier in made} == {26}
