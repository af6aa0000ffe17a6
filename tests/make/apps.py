"""OAuth apps in process: what a client sends and receives."""

import base64
import hashlib
import json
import secrets
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

REDIRECT = "http://127.0.0.1:33418/callback"
BASE = "http://testserver"
RESOURCE = f"{BASE}/api/manage/mcp"


class Proof(NamedTuple):
    """A verifier and its challenge."""

    verifier: str
    challenge: str


def proof() -> Proof:
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return Proof(verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


class App:
    """A registered app. It has no cookies: its requests do not come from a browser."""

    def __init__(self, redirect: str = REDIRECT, **metadata: Any) -> None:
        self.http = Client()
        self.redirect = redirect
        self.proof = proof()
        self.registration = self.register(redirect_uris=[redirect], client_name="Harbour Agent", **metadata)
        self.client_id = self.registration["client_id"]

    def register(self, **metadata: Any) -> dict[str, Any]:
        answer = self.http.post("/oauth/register", json.dumps(metadata), content_type="application/json")
        assert answer.status_code == 201, answer.content
        return answer.json()

    def address(self, **change: str | None) -> str:
        """Return the URL that the app opens in a browser; None omits a parameter."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "code_challenge": self.proof.challenge,
            "code_challenge_method": "S256",
            "state": "s-1",
            "resource": RESOURCE,
            **change,
        }
        return "/oauth/authorize?" + urlencode({key: value for key, value in asked.items() if value is not None})

    def code(self, browser: Client, *, access: str = "all", **change: str | None) -> str:
        """Consent as the person in *browser* and return the code."""
        answer = browser.post(self.address(**change), {"answer": "allow", "access": access})
        assert answer.status_code == 303, answer.content
        return sent_back(answer)["code"]

    def token(self, **form: str) -> Any:
        fields = {"client_id": self.client_id, **form}
        return self.http.post("/oauth/token", urlencode(fields), content_type="application/x-www-form-urlencoded")

    def redeem(self, code: str, **change: str) -> Any:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "code_verifier": self.proof.verifier,
            "resource": RESOURCE,
            **change,
        }
        return self.token(**fields)

    def refresh(self, token: str, **change: str) -> Any:
        return self.token(**{"grant_type": "refresh_token", "refresh_token": token, **change})

    def connect(self, browser: Client, **how: Any) -> dict[str, Any]:
        """Complete the authorization and return the response of the token endpoint."""
        answer = self.redeem(self.code(browser, **how))
        assert answer.status_code == 200, answer.content
        return answer.json()


def sent_back(answer: Any) -> dict[str, str]:
    """Return the parameters that the browser passes back to the app."""
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}
