"""Proof Key for Code Exchange: only the client that started an authorization can finish it."""

import base64
import hashlib
import hmac
import re

from muniment.oauth.errors import Refusal

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def check_challenge(challenge: str, method: str) -> str:
    """
    Return the challenge of an authorization request; refuse `plain`, and requests without PKCE, as invalid_request.

    Source: RFC 7636, sections 4.2 to 4.4.1; OAuth 2.1, section 4.1.1.
    """
    if not challenge:
        raise Refusal("invalid_request", "code_challenge is missing; PKCE with S256 is required.")
    if method != "S256":
        raise Refusal("invalid_request", "code_challenge_method must be S256.")
    if not _CHALLENGE.fullmatch(challenge):
        raise Refusal("invalid_request", "code_challenge must be the base64url of a SHA-256 digest (43 characters).")
    return challenge


def proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.fullmatch(verifier):
        return False
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(made, challenge)
