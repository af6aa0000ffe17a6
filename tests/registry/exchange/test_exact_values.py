"""Amounts, dates and countries of imported rows: as exact as the row, and no more."""

import pytest

from make.registry import document, lines
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import HistoryEntry

pytestmark = pytest.mark.django_db


def bring(tmp_path, **members):
    row = {"company": {"id": "acme", "name": "Acme", **members}}
    import_registry(lines(tmp_path / "companies.jsonl", row))
    return document("company", "acme")["company"]


@pytest.mark.requirement("import.upsert")
def test_the_first_of_a_month_is_a_day_only_where_a_row_says_so(tmp_path):
    """Both are stored as the same day: the month alone, and its first day."""

    def dates(**given):
        shown = bring(tmp_path, **given)
        return shown.get("listedAt"), shown.get("createdAt")

    assert dates(createdAt="March 2024") == (None, "March 2024")
    assert dates(listedAt="2024-03-01") == ("2024-03-01", "March 2024")
    assert dates(createdAt="March 2024") == (None, "March 2024")
    assert dates() == (None, None)
    month, day, none = {"listedAt": None, "createdAt": "March 2024"}, {"listedAt": "2024-03-01"}, {"listedAt": None}
    entries = HistoryEntry.objects.filter(company__slug="acme").order_by("pk").values_list("before", "after")
    assert list(entries)[1:] == [(month, day), (day, month), (month, none)]


@pytest.mark.requirement("owners.exact")
@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ({"treasury": "$1,249,999.99"}, "1249999.99"),
        ({"treasury": "$1.2M", "treasuryAmount": {"amount": "1249999.99", "currency": "USD"}}, "1249999.99"),
        ({"treasury": "$1.2M", "treasuryAmount": None}, "1200000.00"),
        ({"treasury": "$0"}, "0.00"),
        ({"treasuryAmount": {"amount": "0"}}, "0.00"),
    ],
)
def test_the_exact_treasury_of_a_row_counts(tmp_path, given, amount):
    assert bring(tmp_path, **given)["treasuryAmount"] == {"amount": amount, "currency": "USD"}


def test_the_country_of_an_address_is_a_code_and_never_guessed(tmp_path):
    places = [{"city": "Oslo", "country": "no"}, {"city": "Paris"}, {"country": "FR"}]
    assert [place["country"] for place in bring(tmp_path, address=places)["address"]] == ["NO", None, "FR"]
