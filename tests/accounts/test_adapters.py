"""The list of common passwords is read only when a password is checked."""

import pytest
from allauth.core.internal import ratelimit
from django.core.exceptions import ValidationError
from django.test import RequestFactory

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
