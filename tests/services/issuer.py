"""An OpenID Connect issuer on loopback: one person, who always agrees."""

import html
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

from services.ports import free_port

SHARED = "between the registry and its issuer"


class Issuer:
    """
    The issuer; ``asked`` holds the last authorization request and the last token request.

    It has a session of its own: ``signed_in_at`` is when the person signed in here, and ``prompt=login`` makes them
    sign in again unless ``obeys`` is False. ``claims`` overrides members of the ID token; None leaves one out.

    Args:
        person: the claims about its one person.
    """

    obeys = True
    has_user_information = True
    user_information: Any = None
    """Said in place of the claims about the person."""

    def __init__(self, person: dict[str, Any]) -> None:
        self.person = person
        self.asked: dict[str, dict[str, str]] = {}
        self.claims: dict[str, Any] = {}
        self.signed_in_at = time.time()
        self.url = f"http://127.0.0.1:{free_port()}"
        issuer = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path == "/.well-known/openid-configuration":
                    self.say(issuer.discovery())
                elif path == "/userinfo":
                    self.say(issuer.told())
                elif path == "/authorize":
                    self.show(f"<a href='{html.escape(issuer.agree(self.path))}'>Sign in as the person</a>")
                else:
                    self.send_error(404)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                sent = parse_qs(self.rfile.read(length).decode())
                issuer.asked["token"] = {key: values[0] for key, values in sent.items()}
                pair = {"access_token": "for-the-person", "id_token": issuer.id_token()}
                self.say({**pair, "token_type": "Bearer", "expires_in": 300})

            def say(self, value: Any) -> None:
                self.send("application/json", json.dumps(value).encode())

            def show(self, content: str) -> None:
                self.send("text/html", f"<!doctype html><title>Issuer</title>{content}".encode())

            def send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self._answers = Answers
        self._server: ThreadingHTTPServer | None = None

    def discovery(self) -> dict[str, Any]:
        found = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
        }
        return {name: value for name, value in found.items() if self.has_user_information or "userinfo" not in name}

    def told(self) -> Any:
        return self.person if self.user_information is None else self.user_information

    def agree(self, address: str) -> str:
        """Return the address to which the person's browser returns from *address*."""
        parts = urlsplit(address)
        self.asked["authorize"] = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self.obeys and self.asked["authorize"].get("prompt") == "login":
            self.signed_in_at = time.time()
        return (
            self.asked["authorize"]["redirect_uri"]
            + "?"
            + urlencode({"code": "agreed", "state": self.asked["authorize"]["state"]})
        )

    def id_token(self) -> str:
        at = int(time.time())
        said = {"iss": self.url, "aud": self.asked["token"].get("client_id", "registry"), "sub": self.person["sub"]}
        said |= {"iat": at, "exp": at + 300, "auth_time": int(self.signed_in_at), **self.claims}
        return jwt.encode({name: value for name, value in said.items() if value is not None}, SHARED, "HS256")

    def start(self) -> None:
        """Start, also after :meth:`stop`, at the same address."""
        self._server = ThreadingHTTPServer(("127.0.0.1", int(self.url.rpartition(":")[2])), self._answers)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def upstream(issuer: Issuer) -> dict[str, str]:
    """Return the settings of a product that uses the issuer."""
    listed = {"key": "sso", "name": "Harbour login", "issuer": issuer.url, "client_id": "registry"}
    return {"oidc_providers": json.dumps([{**listed, "client_secret": SHARED}])}


def provider(issuer: Issuer) -> dict[str, Any]:
    """Return the setting of Django that makes the issuer the identity provider of a test without a server."""
    app = {
        "provider_id": "sso",
        "name": "Harbour login",
        "client_id": "registry",
        "secret": SHARED,
        "settings": {"server_url": issuer.url, "oauth_pkce_enabled": True},
    }
    return {"openid_connect": {"APPS": [app]}}
