"""PKCE: a challenge is an S256 digest, and only its verifier proves it."""

import base64
import hashlib

import pytest

from muniment.oauth.errors import Refusal
from muniment.oauth.pkce import check_challenge, proves


def digest(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def test_the_example_of_the_rfc_proves_itself():
    """RFC 7636, appendix B."""
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert check_challenge(challenge, "S256") == challenge
    assert proves("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", challenge)


@pytest.mark.parametrize(
    ("challenge", "method"),
    [
        ("", "S256"),
        ("a" * 43, "plain"),
        ("a" * 43, ""),
        ("a" * 42, "S256"),
        ("a" * 44, "S256"),
        ("a" * 42 + "=", "S256"),
        ("a" * 42 + "+", "S256"),
    ],
)
def test_any_other_challenge_is_refused(challenge, method):
    with pytest.raises(Refusal) as refused:
        check_challenge(challenge, method)
    assert refused.value.error == "invalid_request"


@pytest.mark.parametrize(
    ("verifier", "is_proof"),
    [
        ("a" * 43, True),
        ("-._~" * 32, True),
        ("a" * 42, False),
        ("a" * 129, False),
        ("a" * 43 + "\n", False),
        ("é" * 43, False),
    ],
)
def test_a_verifier_has_43_to_128_unreserved_characters(verifier, is_proof):
    assert proves(verifier, digest(verifier)) is is_proof


def test_another_verifier_proves_nothing():
    assert not proves("b" * 43, digest("a" * 43))
    assert not proves("a" * 43, "a" * 43)
