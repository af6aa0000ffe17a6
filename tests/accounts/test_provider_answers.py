"""The answers of real identity providers are read as they are, and none is an error of the server."""

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.core.cache import cache

from accounts.test_identity_providers import EMAIL, come_by, is_in, staff
from muniment.accounts.models import Account
from muniment.accounts.provider_answers import ProviderAnswers

__all__ = ["staff"]
pytestmark = pytest.mark.django_db
WHO = {"sub": "7", "email": EMAIL}


@pytest.fixture(autouse=True)
def _clean(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()


PROVIDERS = {
    "google": (
        {
            "sub": "110169484474386276334",
            "email": EMAIL,
            "email_verified": True,
            "hd": "harbour.example",
            "name": "Ada",
        },
        {"sub": "110169484474386276334", "email": EMAIL, "email_verified": True, "at_hash": "x", "azp": "registry"},
        True,
    ),
    "entra": (
        {"sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "email": EMAIL, "name": "Ada", "picture": "https://g/x"},
        {"sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "oid": "0000", "tid": "9122", "ver": "2.0", "rh": "0."},
        False,
    ),
    "okta": (
        {
            "sub": "00uid4BxXw6I6TV4m0g3",
            "email": EMAIL,
            "email_verified": True,
            "updated_at": 1_311_280_970,
            "zoneinfo": "x",
        },
        {"sub": "00uid4BxXw6I6TV4m0g3", "ver": 1, "amr": ["pwd"], "idp": "00o", "preferred_username": EMAIL},
        True,
    ),
    "auth0": (
        {"sub": "auth0|507f1f77bcf86cd7", "email": EMAIL, "email_verified": False, "nickname": "ada"},
        {"sub": "auth0|507f1f77bcf86cd7", "sid": "x"},
        False,
    ),
    "keycloak": (
        {
            "sub": "f:1-2:ada",
            "email": EMAIL,
            "email_verified": True,
            "realm_access": {"roles": ["x"]},
            "groups": ["/a"],
        },
        {"sub": "f:1-2:ada", "typ": "ID", "acr": "1", "azp": "registry"},
        True,
    ),
    "apple": (
        None,
        {
            "sub": "001473.fe6f",
            "email": EMAIL,
            "email_verified": "true",
            "is_private_email": "true",
            "real_user_status": 2,
        },
        True,
    ),
    "cognito": (
        {
            "sub": "aaaaaaaa-bbbb",
            "email": EMAIL,
            "email_verified": "true",
            "username": "ada",
            "phone_number_verified": "false",
        },
        {"sub": "aaaaaaaa-bbbb", "email_verified": True, "cognito:username": "ada", "token_use": "id"},
        True,
    ),
    "gitlab": (
        {"sub": "12", "sub_legacy": "x", "email": EMAIL, "email_verified": True, "groups": ["a/b"], "website": ""},
        {"sub": "12", "groups_direct": []},
        True,
    ),
    "linkedin": (
        {"sub": "782bbtaQ", "email": EMAIL, "email_verified": "true", "locale": {"country": "US", "language": "en"}},
        {"sub": "782bbtaQ", "email_verified": "true", "locale": "en_US"},
        True,
    ),
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_people_of_every_large_provider_sign_in(staff, name):
    issuer, _ = staff
    told, claims, is_verified = PROVIDERS[name]
    issuer.has_user_information = told is not None
    issuer.person, issuer.claims = told or claims, claims
    browser, answer = come_by(issuer)
    assert answer.status_code == 302
    assert Account.objects.get().email == EMAIL
    # An address that the provider does not vouch for is proven by a mailed code first.
    assert EmailAddress.objects.get().verified is is_verified
    assert is_in(browser) is is_verified


@pytest.mark.parametrize(
    ("stated", "is_verified"),
    [
        *((True, True), ("true", True), ("True", True), (False, False), ("false", False), ("", False), ("yes", False)),
        *((None, False), (1, False), (0, False), ([True], False), ({}, False)),
    ],
    ids=str,
)
def test_an_address_is_verified_only_if_the_provider_says_so(staff, stated, is_verified):
    issuer, _ = staff
    issuer.person = {**WHO, "email_verified": stated}
    browser, answer = come_by(issuer)
    assert answer.status_code == 302
    assert EmailAddress.objects.get().verified is is_verified
    assert is_in(browser) is is_verified


@pytest.mark.parametrize("told", ["8", 7, "7 ", None])
def test_user_information_about_another_person_is_refused(staff, told):
    issuer, _ = staff
    issuer.person, issuer.claims = {**WHO, "sub": told, "email_verified": True}, {"sub": "7"}
    browser, answer = come_by(issuer)
    assert answer.status_code < 500
    assert not is_in(browser)
    assert not Account.objects.exists()


@pytest.mark.parametrize(
    "told",
    [
        *([], "text", 5, [1], {}, {"email": EMAIL}, {"sub": "7", "email": 5, "email_verified": True}),
        {"sub": "7", "email": [EMAIL], "email_verified": True},
        {"sub": "7", "email": {"address": EMAIL}},
        {"sub": ["7"], "email": EMAIL},
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_read_is_a_failed_sign_in(staff, told):
    issuer, _ = staff
    issuer.user_information = told
    if not told:
        issuer.claims = {"sub": None}
    browser, answer = come_by(issuer)
    assert answer.status_code < 500
    assert not is_in(browser)
    assert not EmailAddress.objects.filter(verified=True).exists()


@pytest.mark.parametrize(("subject", "is_accepted"), [("7" * 191, True), ("7" * 192, False), ("7\x00", False)])
def test_a_subject_that_cannot_be_stored_is_refused(staff, subject, is_accepted):
    issuer, _ = staff
    issuer.person = {**WHO, "sub": subject, "email_verified": True}
    browser, answer = come_by(issuer)
    assert answer.status_code < 500
    assert is_in(browser) is is_accepted


@pytest.mark.parametrize("told", [{}, [], None, "text"], ids=str)
def test_a_token_response_that_cannot_be_read_is_told_as_the_providers_fault(told):
    with pytest.raises(OAuth2Error, match="token response cannot be read"):
        ProviderAnswers.__new__(ProviderAnswers).parse_token(told)
