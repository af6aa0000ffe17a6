"""OAuth clients: what may be registered, under which names, and when a client is deleted."""

from datetime import timedelta

import pytest

from make.accounts import account, signed_in
from make.apps import App
from muniment.kernel.ids import now
from muniment.oauth import clients
from muniment.oauth.errors import Refusal
from muniment.oauth.models import AuthorizationCode, Client, Grant
from muniment.registry_toml import applied
from muniment.registry_toml.document import Registry, RegistrySettings

pytestmark = pytest.mark.django_db
ADDRESS = "http://127.0.0.1:7777/callback"


def register(**metadata):
    return clients.register_client({"redirect_uris": [ADDRESS], **metadata})


def test_a_registration_answers_the_effective_values():
    client, answer = register(
        client_name=" Tide  Table ", client_uri="https://tide.example", redirect_uris=[ADDRESS, ADDRESS], scope="all"
    )
    assert answer == {
        "client_id": client.identifier,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "redirect_uris": [ADDRESS],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "client_name": "Tide Table",
        "client_uri": "https://tide.example",
    }
    assert (client.kind, client.name, client.redirect_uris) == ("registered", "Tide Table", [ADDRESS])
    assert not {"client_name", "client_uri"} & register()[1].keys()
    assert register()[0].identifier != client.identifier


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": []}, "invalid_client_metadata"),
        ({"grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"response_types": [5]}, "invalid_client_metadata"),
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ADDRESS}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"http://127.0.0.1:{port}/" for port in range(7000, 7021)]}, "invalid_redirect_uri"),
        ({"client_name": 5}, "invalid_client_metadata"),
        ({"client_name": "x" * 101}, "invalid_client_metadata"),
        ({"client_name": "Tide\u202eTable"}, "invalid_client_metadata"),
        ({"client_name": "a\0b"}, "invalid_client_metadata"),
        ({"software_id": "\ud800"}, "invalid_client_metadata"),
        ({"client_name": "Tіde"}, "invalid_client_metadata"),
        ({"client_name": "Muniment helper"}, "invalid_client_metadata"),
        ({"client_name": "m.u.n.i.m.e.n.t"}, "invalid_client_metadata"),
        ({"client_name": "The Official App"}, "invalid_client_metadata"),
        ({"client_name": "Ｔrusted app"}, "invalid_client_metadata"),
    ],
)
def test_metadata_that_misleads_or_misses_the_form_is_refused(metadata, error):
    with pytest.raises(Refusal) as refused:
        register(**metadata)
    assert refused.value.error == error
    assert refused.value.description.isascii()
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    "name", ["x" * 100, "Гавань", "海図", "Café des Quais", "Tide Гавань", "My Muniment", "", None], ids=ascii
)
def test_a_name_of_one_alphabet_a_word_is_accepted(name):
    assert register(client_name=name)[0].name == (name or "")


def test_the_name_of_the_registry_is_reserved(monkeypatch):
    named = RegistrySettings(registry=Registry(name="Harbour Register"))
    monkeypatch.setattr(applied, "current", lambda: named)
    for name in ("harbour-register", "Harbour Register Assistant"):
        with pytest.raises(Refusal):
            register(client_name=name)
    assert register(client_name="Registered Harbour")[0].name


@pytest.mark.parametrize("home", ["http://tide.example", "javascript:alert(1)", 5, "https://" + "x" * 3_000])
def test_a_home_page_that_is_not_safe_to_follow_is_left_out(home):
    client, answer = register(client_uri=home)
    assert (client.home_url, "client_uri" in answer) == ("", False)


def test_twenty_redirect_addresses_are_accepted():
    addresses = [f"http://127.0.0.1:{port}/" for port in range(7000, 7020)]
    assert register(redirect_uris=addresses)[0].redirect_uris == addresses


@pytest.mark.parametrize(
    ("registered", "asked", "found"),
    [
        ([ADDRESS], "", ADDRESS),
        ([ADDRESS], ADDRESS, ADDRESS),
        ([ADDRESS], "http://127.0.0.1:9999/callback", "http://127.0.0.1:9999/callback"),
        ([ADDRESS, "https://tide.example/cb"], "https://tide.example/cb", "https://tide.example/cb"),
        ([ADDRESS, "https://tide.example/cb"], "", None),
        ([ADDRESS], "http://127.0.0.1:7777/other", None),
        ([ADDRESS], "https://evil.example/callback", None),
    ],
)
def test_an_answer_goes_to_a_registered_address_only(registered, asked, found):
    client, _ = register(redirect_uris=registered)
    if found is None:
        with pytest.raises(Refusal) as refused:
            clients.redirect_of(client, asked)
        assert refused.value.error == "invalid_request"
    else:
        assert clients.redirect_of(client, asked) == found


def test_an_unknown_or_unstorable_identifier_is_no_client():
    client, _ = register()
    assert clients.find_client(client.identifier, fetch_for=1) == client
    for identifier in ("", "mun_client_unknown", "a\0b", "\ud800", client.identifier + "x" * 3_000):
        assert clients.find_client(identifier, fetch_for=1) is None


def test_unused_clients_are_deleted_after_a_day():
    used, waiting, fresh, idle = (register(client_name=name)[0] for name in ("Used", "Waiting", "Fresh", "Idle"))
    me = account()
    app = App()
    app.connect(signed_in(me))
    grant = Grant.objects.get()
    Grant.objects.update(client=used)
    Client.objects.filter(identifier=grant.client.identifier).delete()
    AuthorizationCode.objects.all().delete()
    AuthorizationCode.objects.create(**_code(waiting, me, now() + timedelta(minutes=1)))
    AuthorizationCode.objects.create(**_code(idle, me, now() - timedelta(seconds=1)))
    Client.objects.exclude(pk=fresh.pk).update(created_at=now() - timedelta(days=1, seconds=1))
    assert clients.reap_clients() == 1
    assert set(Client.objects.values_list("pk", flat=True)) == {used.pk, waiting.pk, fresh.pk}


def test_an_app_that_registers_again_is_the_same_client_and_adds_no_row():
    first, told = register(client_name="Tide Table", software_version="1")
    again, told_again = register(client_name="Tide  Table", software_version="2", logo_uri="https://tide.example/x.png")
    assert (again, told_again) == (first, told)
    other = [
        register(client_name="Tide Chart"),
        register(client_name="Tide Table", client_uri="https://tide.example"),
        register(client_name="Tide Table", redirect_uris=["http://127.0.0.1:7778/callback"]),
    ]
    assert len({first.identifier, *(client.identifier for client, _ in other)}) == 4


def test_a_client_that_registers_again_is_kept_for_another_day():
    client, _ = register()
    Client.objects.update(created_at=now() - timedelta(hours=25))
    assert register()[0] == client
    assert clients.reap_clients() == 0
    Client.objects.update(fetched_at=now() - timedelta(hours=24, seconds=1))
    assert clients.reap_clients() == 1


def test_too_many_unused_clients_refuse_no_app_and_those_that_were_added_first_make_room(monkeypatch):
    monkeypatch.setattr(clients, "MAX_UNUSED", 4)
    waiting, flood, other, fresh = (register(client_name=name)[0] for name in ("Waiting", "Flood", "Other", "Fresh"))
    for hours, client in enumerate((fresh, other, flood, waiting), start=1):
        Client.objects.filter(pk=client.pk).update(created_at=now() - timedelta(hours=hours))
    AuthorizationCode.objects.create(**_code(waiting, account(), now() + timedelta(minutes=1)))
    register(client_name="Fourth unused")
    assert Client.objects.filter(pk=flood.pk).exists()
    assert register(client_name="Flood")[0] == flood  # being registered again keeps no place
    added, _ = register(client_name="One more")
    left = set(Client.objects.values_list("name", flat=True))
    assert left == {"Waiting", "Other", "Fresh", "Fourth unused", added.name}


def test_redirect_addresses_have_at_most_four_thousand_characters_together():
    start = "https://app.example/"
    register(redirect_uris=[start + "a" * 1_980, start + "b" * 1_980])
    with pytest.raises(Refusal, match="more than 4000 characters"):
        register(redirect_uris=[start + "a" * 1_980, start + "b" * 1_970, "http://[::1]/cb"])


def _code(client, me, expires_at):
    return {"client": client, "account": me, "expires_at": expires_at, "digest": f"code of {client.pk}"}
