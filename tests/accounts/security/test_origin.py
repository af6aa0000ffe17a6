"""No site takes what all visitors may leave behind: an IPv6 network of 48 bits has 65,536 networks of clients."""

import json
from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client

from make.accounts import PASSWORD
from muniment.accounts import adapters, sessions, sign_up
from muniment.accounts.models import Account
from muniment.accounts.security import origin
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.mail.outgoing import KIND
from muniment.oauth import clients
from muniment.oauth.models import Client as App
from muniment.web.views import oauth

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def moment(monkeypatch, settings):
    """Keep the test within one hour, unless it moves the clock itself."""
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()
    at = [now()]
    monkeypatch.setattr(origin, "now", lambda: at[0])
    return at


def network(number):
    """Return a client of the site: each has a network of 64 bits of its own."""
    return f"2001:db8:1:{number:x}::7"


OTHERS = ("2001:db8:2::7", "192.0.2.7")


def signs_up(number, address):
    fields = {"email": f"drift{number}@harbour.example", "password1": PASSWORD, "password2": PASSWORD}
    return Client(REMOTE_ADDR=address).post("/accounts/signup/", fields)


def test_a_site_takes_a_tenth_and_no_more():
    def taken(address, **bound):
        with origin.at(address, ""):
            return origin.take_share("test", **bound)

    bound = {"in_all": 129, "least": 3, "hours": 4}
    assert [taken(network(number), **bound) for number in range(4)] == [True] * 3 + [False]
    assert [taken(other, **bound) for other in OTHERS] == [True, True]
    bound["in_all"] = 160
    assert [taken(network(number), **bound) for number in range(4, 6)] == [True, False]


def test_a_share_is_a_tenth_of_all_and_not_one_more():
    with origin.at(network(1), ""):
        assert [origin.take_share("test", in_all=100, least=0, hours=1) for _ in range(11)] == [True] * 10 + [False]


def test_those_who_come_at_once_do_not_take_more_than_the_share(monkeypatch):
    monkeypatch.setattr(cache, "get", lambda _key, default: default)  # each looks before another has counted
    with origin.at(network(1), ""):
        assert [origin.take_share("test", in_all=20, least=0, hours=1) for _ in range(4)] == [True, True, False, False]


def test_a_count_lasts_for_the_hour_in_which_it_began(moment):
    with origin.at(network(1), ""):
        origin.take_share("test", in_all=20, least=0, hours=1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT expires FROM accounts_cache WHERE cache_key LIKE %s", ["%share:test:%"])
        ((expires,),) = cursor.fetchall()
    at = expires if isinstance(expires, datetime) else datetime.fromisoformat(expires)
    assert at.replace(tzinfo=None) >= (moment[0] + timedelta(hours=1)).replace(tzinfo=None)


def test_the_shares_of_one_bound_never_evict_those_of_another():
    for kind in ("apps", "mails"):
        with origin.at(network(1), ""):
            origin.take_share(kind, in_all=10, least=0, hours=1)
    full = caches.create_connection("default")
    full._max_entries, full._max_of_a_kind = 1, 1
    full.add("share:apps:other:2026", 0, timeout=60)
    with origin.at(network(1), ""):
        assert not origin.take_share("mails", in_all=10, least=0, hours=1)


def test_what_one_client_may_do_its_site_may_too():
    with origin.at(network(1), ""):
        assert [origin.take_share("test", in_all=10, least=2, hours=1) for _ in range(3)] == [True, True, False]


def test_a_share_begins_again_with_the_hour(moment):
    with origin.at(network(1), ""):
        assert [origin.take_share("test", in_all=10, least=0, hours=1) for _ in range(2)] == [True, False]
        moment[0] += timedelta(hours=1)
        assert [origin.take_share("test", in_all=10, least=0, hours=1) for _ in range(2)] == [True, False]


def test_a_flood_over_its_share_is_refused_with_a_single_read(django_assert_num_queries):
    with origin.at(network(1), ""):
        origin.take_share("test", in_all=10, least=0, hours=1)
        with django_assert_num_queries(5):
            assert not any(origin.take_share("test", in_all=10, least=0, hours=1) for _ in range(5))


def test_every_share_is_a_tenth_while_the_entries_last():
    """An entry of some hours counts in one more hour of the clock, because it may begin at the end of one."""
    an_hour = timedelta(hours=1)
    assert sign_up.UNCONFIRMED_FOR / an_hour + 1 == sign_up.UNCONFIRMED_HOURS
    assert timedelta(seconds=sessions.VISITOR_S) / an_hour + 1 == sessions.HOURS
    assert sign_up.MAX_UNCONFIRMED // origin.SITE_PART // sign_up.UNCONFIRMED_HOURS > sign_up.SIGN_UPS_OF_A_CLIENT
    assert adapters.VISITORS_MAILS_AN_HOUR // origin.SITE_PART > adapters.MAILS_OF_A_CLIENT


def test_no_site_keeps_others_from_signing_up(monkeypatch):
    monkeypatch.setattr(sign_up, "MAX_UNCONFIRMED", 80)
    monkeypatch.setattr(sign_up, "SIGN_UPS_OF_A_CLIENT", 1)
    answers = [signs_up(number, network(number)) for number in range(4)]
    assert [answer.status_code for answer in answers] == [302, 302, 200, 200]
    assert "signing up from your network" in answers[2].content.decode()
    assert Account.objects.count() == 2
    assert [signs_up(10 + number, other).status_code for number, other in enumerate(OTHERS)] == [302, 302]


def test_no_site_keeps_others_from_getting_mails(monkeypatch):
    monkeypatch.setattr(adapters, "VISITORS_MAILS_AN_HOUR", 20)
    monkeypatch.setattr(adapters, "MAILS_OF_A_CLIENT", 1)

    def asks(number, address):
        return Client(REMOTE_ADDR=address).post("/accounts/password/reset/", {"email": f"a{number}@harbour.example"})

    answers = [asks(number, network(number)) for number in range(25)]
    assert [answer.status_code for answer in answers] == [302] * 2 + [429] * 23
    assert int(answers[2]["Retry-After"]) <= 3_600
    assert [asks(30 + number, other).status_code for number, other in enumerate(OTHERS)] == [302, 302]
    assert Job.objects.filter(kind=KIND).count() == 4


def test_no_site_ends_the_sessions_of_other_visitors(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_VISITOR_SESSIONS", 60)
    monkeypatch.setattr(sessions, "VISITOR_SESSIONS_AN_HOUR", 1)
    monkeypatch.setattr(sessions, "_COUNTED_EVERY", 1)

    def visits(address):
        return Client(REMOTE_ADDR=address).post("/manage/tokens", {"name": "typed"})

    own = visits(OTHERS[0]).cookies["sessionid"].value
    answers = [visits(network(number)) for number in range(70)]
    assert [answer.status_code for answer in answers] == [302] * 2 + [429] * 68
    assert b"Too many visits were started from your network." in answers[2].content
    assert Session.objects.filter(session_key=sessions.Key.of(own)).exists()
    assert visits(OTHERS[1]).status_code == 302


def test_no_site_takes_the_room_of_other_apps(monkeypatch):
    monkeypatch.setattr(clients, "MAX_UNUSED", 60)
    monkeypatch.setattr(oauth, "REGISTRATIONS_AN_HOUR", 1)

    def registers(number, address):
        body = json.dumps({"redirect_uris": ["http://127.0.0.1/callback"], "client_name": f"App {number}"})
        return Client(REMOTE_ADDR=address).post("/oauth/register", body, content_type="application/json")

    own = registers(0, OTHERS[0]).json()["client_id"]
    answers = [registers(1 + number, network(number)) for number in range(70)]
    assert [answer.status_code for answer in answers] == [201] * 3 + [429] * 67
    assert App.objects.filter(identifier=own).exists()
    assert registers(100, OTHERS[1]).status_code == 201
