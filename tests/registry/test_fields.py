"""Columns that hold the same bytes on both databases refuse what one of them could not hold."""

import pytest
from django.db import transaction

from make.registry import owner
from muniment.kernel.problems import BadRequest
from muniment.registry.models import Company, HistoryEntry

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_postgresql_cannot_hold_is_refused(text):
    company = Company.objects.create(slug="harbour", name="Harbour")
    company.description = text
    with pytest.raises(BadRequest), transaction.atomic():
        company.save()
    assert Company.objects.get().description == ""


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize("value", [{"a": "a\0b"}, {"a": ["\ud800"]}, {"\0": 1}], ids=ascii)
def test_json_that_postgresql_cannot_hold_is_refused(value):
    with pytest.raises(BadRequest), transaction.atomic():
        HistoryEntry.objects.create(action="updated", via="web", before={}, after=value)
    assert not HistoryEntry.objects.exists()


def test_json_keeps_its_order_its_nulls_and_an_escaped_backslash():
    value = {"b": None, "a": ["\\u0000", 1.5, "海"]}
    me = owner()
    HistoryEntry.objects.create(action="updated", via="web", account_id=me.account_id, before={}, after=value)
    assert list(HistoryEntry.objects.get().after.items()) == list(value.items())


def test_json_is_serialized_as_it_is_stored():
    field = HistoryEntry._meta.get_field("after")
    assert field.value_to_string(HistoryEntry(after={"b": [1, None]})) == '{"b":[1,null]}'
    assert field.value_to_string(HistoryEntry(after=None)) == ""
