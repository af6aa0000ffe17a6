"""The currency of the stored amounts: another setting is refused, and relabeling needs the setting first."""

import pytest

from make.registry import owner, published
from muniment import config
from muniment.config import Config
from muniment.kernel.problems import BadRequest
from muniment.registry import currency

pytestmark = pytest.mark.django_db


@pytest.fixture
def in_dollars(monkeypatch):
    monkeypatch.setattr(config, "_current", Config({"MUNIMENT_CURRENCY": "USD"}))
    currency.settle()


def use(monkeypatch, code):
    monkeypatch.setattr(config, "_current", Config({"MUNIMENT_CURRENCY": code}))


def test_another_currency_than_that_of_stored_amounts_is_refused_with_both_ways_out(in_dollars, monkeypatch):
    published(owner())
    use(monkeypatch, "EUR")
    with pytest.raises(currency.OtherCurrency, match=r"Set MUNIMENT_CURRENCY=USD.*muniment currency EUR"):
        currency.settle()
    assert currency.stored_currency() == "USD"


def test_an_instance_without_companies_takes_another_currency(in_dollars, monkeypatch):
    use(monkeypatch, "EUR")
    currency.settle()
    assert currency.stored_currency() == "EUR"


def test_amounts_are_relabeled_only_as_the_processes_are_set(in_dollars):
    with pytest.raises(BadRequest, match="MUNIMENT_CURRENCY is USD") as refused:
        currency.relabel("EUR")
    assert "set MUNIMENT_CURRENCY=EUR" in refused.value.hint
    assert currency.stored_currency() == "USD"
