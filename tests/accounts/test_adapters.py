"""Passwords: the list of common ones is read only when needed, and hashes leave the processor to others."""

from concurrent.futures import ThreadPoolExecutor

import argon2
import pytest
from allauth.core.internal import ratelimit
from django.contrib.auth.hashers import Argon2PasswordHasher, check_password, make_password
from django.core.exceptions import ValidationError
from django.test import Client, RequestFactory

from make.accounts import Letters, account
from make.declared import declared
from muniment.accounts.adapters import CommonPasswordValidator


def test_a_common_password_is_rejected_and_the_list_is_not_kept():
    validator = CommonPasswordValidator()
    with pytest.raises(ValidationError, match="too common"):
        validator.validate("Password123")
    validator.validate("a sentence that no other person has chosen")
    assert not hasattr(validator, "passwords")


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
    ],
)
def test_attempts_to_sign_in_are_counted_by_ipv6_network_and_by_ipv4_address(one, other, share):
    """The limits of allauth are sign-in, sign-up, password reset and mailed codes."""
    rate = ratelimit.parse_rate("10/m/ip")
    keys = {
        ratelimit.get_cache_key(RequestFactory(REMOTE_ADDR=each).post("/"), app="account", action="login", rate=rate)
        for each in (one, other)
    }
    assert (len(keys) == 1) is share


def test_passwords_are_hashed_one_at_a_time_and_on_one_core(monkeypatch):
    at_once, most = [], []
    hash_secret = argon2.low_level.hash_secret

    def watched(*args, **kwargs):
        at_once.append(1)
        most.append(len(at_once))
        try:
            return hash_secret(*args, **kwargs)
        finally:
            at_once.pop()

    monkeypatch.setattr(argon2.low_level, "hash_secret", watched)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: make_password(f"tide {number}"), range(24)))
    assert most == [1] * 24
    assert all(",p=1$" in each for each in made)
    assert check_password("tide 7", made[7])


def test_a_hash_with_more_lanes_is_accepted_and_stays(monkeypatch):
    monkeypatch.setattr(Argon2PasswordHasher, "memory_cost", 64)
    former = Argon2PasswordHasher()
    former.parallelism = 8
    encoded = former.encode("four harbours", former.salt())
    replaced = []
    assert check_password("four harbours", encoded, setter=replaced.append)
    assert replaced == []
    former.time_cost = 7
    assert check_password("four harbours", former.encode("four harbours", former.salt()), setter=replaced.append)
    assert replaced == ["four harbours"], "another cost is renewed"


@pytest.mark.django_db
def test_a_mailed_code_names_the_registry_as_it_is_declared():
    account("ida@guild.example")
    letters = Letters()
    with declared(registry={"name": "Guild of Clockmakers"}):
        Client().post("/accounts/login/code/", {"email": "ida@guild.example"})
        ((subject, text),) = letters.to("ida@guild.example")
    assert subject.startswith("[Guild of Clockmakers]")
    assert "sign in to Guild of Clockmakers" in text
    assert "Muniment" not in text
