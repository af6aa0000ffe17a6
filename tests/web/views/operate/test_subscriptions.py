"""An operator counts the subscriptions of visitors, and deletes an address on request."""

import pytest
from django.core.cache import cache

from make.accounts import Letters, account, signed_in
from make.pages import valid
from make.published import Publisher, company
from make.subscriptions import EMAIL, confirmed
from muniment import config
from muniment.accounts.security.models import SecurityEvent
from muniment.searches.models import Subscriber
from muniment.store.reader import Reader
from muniment.web.requests import page_cache
from muniment.web.views.operate.subscriptions import TOPICS

pytestmark = pytest.mark.django_db
HOME = "/operate/subscriptions"


@pytest.fixture
def letters(tmp_path):
    cache.clear()
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "harbour", name="Harbour Commons", type="DAO"))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Letters()
    page_cache.use(None)
    reader.close()
    publisher.close()


def test_an_operator_finds_an_address_and_deletes_it(letters):
    confirmed(letters)
    confirmed(letters, "companies", "type=DAO")
    operator = signed_in(account("operator@harbour.example", "operator"))
    html = operator.get(HOME).text
    assert "Subscriptions to company searches</dt><dd>1</dd>" in html
    for topic in ("person", "people", "frameworks"):
        assert str(TOPICS[topic]) not in html, "a topic without subscriptions is left out"
    valid(html)
    html = operator.post(HOME, {"email": f" {EMAIL} "}).text
    assert ("Harbour Commons" in html, "Type: DAO" in html) == (True, True)
    valid(html)
    answer = operator.post(f"{HOME}/end", {"email": EMAIL}, follow=True)
    assert "2 subscriptions ended. The address is deleted." in answer.text
    assert not Subscriber.objects.exists()
    html = operator.post(HOME, {"email": EMAIL}).text
    assert ("has no subscriptions" in html, "There are no subscriptions yet." in html) == (True, True)
    [event] = SecurityEvent.objects.filter(event="subscriptions_ended")
    assert event.detail == {"subscriptions": 2}


def test_the_page_says_that_updates_are_off(letters, monkeypatch):
    operator = signed_in(account("operator@harbour.example", "operator"))
    kept = {each.name: getattr(config.current(), each.name) for each in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, "visitor_mail": False}))
    assert "MUNIMENT_VISITOR_MAIL is off" in operator.get(HOME).text


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_no_one_else_sees_the_page(letters, role):
    confirmed(letters)
    other = signed_in(account("other@harbour.example", role))
    assert other.get(HOME).status_code == 404
    assert other.post(f"{HOME}/end", {"email": EMAIL}).status_code == 404
    assert Subscriber.objects.exists()
