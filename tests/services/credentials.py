"""An owner with one of each credential, who uses all of them before and after the secret key is rotated."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

from make.apps import proof
from services.owner import EMAIL, PASSWORD
from services.ports import wait_until
from services.product import Product
from services.visitor import Visitor

_REDIRECT = "http://127.0.0.1:33418/callback"


class Credentials:
    """A session, a second factor with recovery codes, a personal token and a connected app of the owner."""

    def __init__(self, product: Product) -> None:
        self.session = Visitor(product.url, {})
        self.session.post("/accounts/login/", login=EMAIL, password=PASSWORD)
        self._connect()
        self._make_token()
        self._add_factor()

    def close(self) -> None:
        self.session.web.close()

    def _connect(self) -> None:
        body = {"redirect_uris": [_REDIRECT], "client_name": "Harbour Agent"}
        self._client = self.session.web.post("/oauth/register", json=body).json()["client_id"]
        shown = proof()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": _REDIRECT,
            "code_challenge": shown.challenge,
            "code_challenge_method": "S256",
        }
        answer = self.session.send(f"/oauth/authorize?{urlencode(asked)}", follow=False, answer="allow")
        code = parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]
        self.pair = self._token(grant_type="authorization_code", code=code, code_verifier=shown.verifier)
        self.used = ""

    def _token(self, **form: str) -> dict[str, Any]:
        answer = self.session.web.post("/oauth/token", data={"client_id": self._client, **form})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def _make_token(self) -> None:
        page = self.session.send("/manage/tokens", name="laptop", lifetime="90", access="all").text
        found = re.search(r"mun_pat_\w{36}", page)
        assert found is not None, page
        self._personal = found[0]

    def _add_factor(self) -> None:
        self.session.send("/accounts/reauthenticate/", password=PASSWORD)
        found = re.search(r"\b[A-Z2-7]{32}\b", self.session.get("/accounts/2fa/totp/activate/"))
        assert found is not None
        self._secret = found[0]
        self.session.post("/accounts/2fa/totp/activate/", code=self.code)
        shown = self.session.get("/accounts/2fa/recovery-codes/").partition('id="recovery_codes">')[2]
        self.recovery = shown.partition("<")[0].split()

    @property
    def code(self) -> str:
        return format_hotp_value(hotp_value(self._secret, next(iter(yield_hotp_counters_from_time()))))

    def refresh(self) -> None:
        """Let the app use its refresh token."""
        self.used = self.pair["refresh_token"]
        self.pair = self._token(grant_type="refresh_token", refresh_token=self.used)

    def check_retry(self) -> None:
        """Repeat the last refresh, as an app does whose connection broke: the pair must be the same."""
        again = self._token(grant_type="refresh_token", refresh_token=self.used)
        assert again["refresh_token"] == self.pair["refresh_token"]
        assert again["access_token"] == self.pair["access_token"]

    def check_retry_at(self, product: Product) -> None:
        self.session.web.base_url = product.url
        self.check_retry()

    def check_all(self, product: Product, code: str) -> None:
        """Use everything at *product*; *code* is of the second factor, or a recovery code."""
        self.session.web.base_url = product.url
        assert EMAIL in self.session.get("/accounts/email/")
        for token in (self._personal, self.pair["access_token"]):
            assert self._tool(product, token) == 200
        with self.second_step(product) as other:
            answer = other.send("/accounts/2fa/authenticate/", code=code)
            assert answer.status_code == 200, answer.text
            assert EMAIL in other.get("/accounts/email/")

    @staticmethod
    def second_step(product: Product) -> Visitor:
        """Return a visitor who has entered the password, and must enter a code."""
        other = Visitor(product.url, {})
        assert other.send("/accounts/login/", login=EMAIL, password=PASSWORD).url.path == "/accounts/2fa/authenticate/"
        return other

    @staticmethod
    def _tool(product: Product, token: str) -> int:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_my_companies"}}
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return product.request("POST", "/api/manage/mcp", headers, json.dumps(body).encode()).status


def wait_reported(product: Product, count: int, **settings: str) -> None:
    """Wait until *count* processes have reported their keys."""
    from services.product import run

    def reported() -> bool:
        return run("keys", data=product.data, **settings).stdout.count(" signs with ") == count

    wait_until(reported, within_s=30, what=f"{count} processes that reported their keys")
