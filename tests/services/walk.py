"""
Every flow with a secret, in one running product; each secret is recorded.

Unfinished flows matter most: their secrets are still valid.
"""

import json
import re
import secrets
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

from make.apps import proof
from services.issuer import SHARED, Issuer
from services.mail import Mailbox, text_of
from services.ports import wait_until
from services.product import Answer, Product
from services.visitor import Visitor

FRIEND, OTHER = "friend@harbour.example", "other@harbour.example"
FRAMEWORK = "long-life"
_CODE = re.compile(r"^\s*([A-Z0-9]{3,}(?:-[A-Z0-9]+)*)\s*$", re.MULTILINE)
_REDIRECT = "http://127.0.0.1:33418/callback"


class Walk:
    """
    An owner and a friend who use everything that involves a secret.

    ``used`` holds each secret with its description.

    Args:
        product: serves the demo registry.
        mailbox: receives its mail.
        owner: owns *company*. After `everything`, every account needs more than its password to sign in.
    """

    def __init__(self, product: Product, mailbox: Mailbox, *, owner: str, password: str, company: str) -> None:
        self.product = product
        self.mailbox = mailbox
        self.owner = owner
        self.company = company
        self.used = {password: "the owner's password"}
        self._passwords = {owner: password}
        self._tokens: list[str] = []

    def everything(self, issuer: Issuer) -> None:
        """Go through every flow; *issuer* is the product's identity provider."""
        self._sign_up(FRIEND, finish=True)
        self._sign_up(OTHER, finish=False)
        self._reset(FRIEND, finish=True)
        self._reset(FRIEND, finish=False)
        self._sign_in_by_code(FRIEND, finish=True)
        self._sign_in_by_code(FRIEND, finish=False)
        self._sign_in_upstream(issuer)
        with self._visitor() as person:
            person.send("/accounts/login/", login=self.owner, password=self._new("a mistyped password"))
        with self._signed_in(self.owner) as person, self._signed_in(self.owner) as elsewhere:
            self._connect(person)
            self._make_tokens(person)
            self._use_tokens()
            self._upload()
            self._invite(person)
            self._share(person)
            self._second_factor(elsewhere, finish=False)
            self._second_factor(person, finish=True)

    def _visitor(self) -> Visitor:
        return Visitor(self.product.url, self.used)

    def _signed_in(self, address: str) -> Visitor:
        person = self._visitor()
        person.post("/accounts/login/", login=address, password=self._passwords[address])
        return person

    def _new(self, what: str) -> str:
        made = f"{what} {secrets.token_urlsafe(12)}"
        self.used[made] = what
        return made

    def _mailed(self, address: str, what: str) -> str:
        # There may be mail about security events as well.
        wait_until(lambda: self._code_to(address) is not None, within_s=60, what=f"a {what} to {address}")
        found = self._code_to(address)
        assert found is not None
        self.used |= {found[1]: what, found[1].replace("-", ""): what}
        self.mailbox.messages.clear()
        return found[1]

    def _code_to(self, address: str) -> re.Match[str] | None:
        texts = [text_of(each) for each in self.mailbox.messages if address in str(each["To"])]
        return next((found for text in reversed(texts) if (found := _CODE.search(text))), None)

    def _sign_up(self, address: str, *, finish: bool) -> None:
        with self._visitor() as person:
            password = self._passwords[address] = self._new("a new password")
            person.post("/accounts/signup/", email=address, password1=password, password2=password)
            code = self._mailed(address, "code of a sign-up")
            if finish:
                person.post("/accounts/confirm-email/", code=code)
                assert address in person.get("/accounts/email/")

    def _sign_in_by_code(self, address: str, *, finish: bool) -> None:
        with self._visitor() as person:
            person.post("/accounts/login/code/", email=address)
            code = self._mailed(address, "code of a sign-in")
            if finish:
                person.post("/accounts/login/code/confirm/", code=code)
                assert address in person.get("/accounts/email/")

    def _reset(self, address: str, *, finish: bool) -> None:
        with self._visitor() as person:
            person.post("/accounts/password/reset/", email=address)
            code = self._mailed(address, "code of a reset")
            if finish:
                step = person.post("/accounts/password/reset/confirm/", code=code).url.path
                password = self._passwords[address] = self._new("a reset password")
                person.post(step, password1=password, password2=password)
                self.mailbox.messages.clear()

    def _sign_in_upstream(self, issuer: Issuer) -> None:
        with self._visitor() as person:
            left = person.send("/accounts/oidc/sso/login/?process=login", follow=False).headers["Location"]
            back = urlsplit(issuer.agree(left))
            person.get(f"{back.path}?{back.query}")
        self.used |= {
            issuer.asked["token"]["code_verifier"]: "verifier for the identity provider",
            "for-the-person": "token of the identity provider",
            SHARED: "secret shared with the identity provider",
        }

    def _second_factor(self, person: Visitor, *, finish: bool) -> None:
        person.post("/accounts/reauthenticate/", password=self._passwords[self.owner])
        found = re.search(r"\b[A-Z2-7]{32}\b", person.get("/accounts/2fa/totp/activate/"))
        assert found is not None
        self.used[found[0]] = "secret of a second factor"
        if finish:
            counter = next(iter(yield_hotp_counters_from_time()))
            person.post("/accounts/2fa/totp/activate/", code=format_hotp_value(hotp_value(found[0], counter)))
            shown = person.get("/accounts/2fa/recovery-codes/").partition('id="recovery_codes">')[2]
            codes = shown.partition("<")[0].split()
            assert len(codes) == 10
            self.used |= dict.fromkeys(codes, "recovery code")

    def _connect(self, person: Visitor) -> None:
        """Connect an app, refresh it twice, and leave a second code unredeemed."""
        body = json.dumps({"redirect_uris": [_REDIRECT], "client_name": "Harbour Agent"}).encode()
        client = self.product.request("POST", "/oauth/register", {"Content-Type": "application/json"}, body).json()
        for renewals in (2, -1):
            shown = proof()
            asked = {
                "response_type": "code",
                "client_id": client["client_id"],
                "redirect_uri": _REDIRECT,
                "code_challenge": shown.challenge,
                "code_challenge_method": "S256",
            }
            answer = person.send(f"/oauth/authorize?{urlencode(asked)}", follow=False, answer="allow")
            code = parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]
            self.used |= {code: "code for an app", shown.verifier: "verifier of an app"}
            form = {"grant_type": "authorization_code", "code": code, "code_verifier": shown.verifier}
            for _ in range(1 + renewals):
                pair = person.web.post("/oauth/token", data={"client_id": client["client_id"], **form}).json()
                self.used |= {pair["access_token"]: "access token", pair["refresh_token"]: "refresh token"}
                form = {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"]}
        self._tokens.append(pair["access_token"])

    def _make_tokens(self, person: Visitor) -> None:
        """Create and regenerate a personal token."""
        for fields in ({"name": "laptop", "lifetime": "90", "access": "all"}, {}):
            again = re.search(r"/manage/tokens/\d+/regenerate", person.get("/manage/tokens"))
            page = person.send(again[0] if again else "/manage/tokens", **fields).text
            found = re.search(r"mun_pat_\w{36}", page)
            assert found is not None
            self._tokens.append(found[0])
            self.used[found[0]] = "personal token"

    def _call(self, token: str, name: str, **arguments: Any) -> Answer:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return self.product.request("POST", "/api/manage/mcp", headers, json.dumps(body).encode())

    def _use_tokens(self) -> None:
        """Use each token correctly, and also where none belongs: in URLs."""
        for token in self._tokens:
            self._call(token, "list_my_companies")
            self.product.request("POST", f"/api/manage/mcp?access_token={token}&t={token}", {}, b"{}")
            self.product.get(f"/api/v1/companies/{token}")
            self.product.get(f"/accounts/login/?next={quote(f'/manage/tokens?{token}', safe='')}")
        answer = self._call(self._tokens[-1], "list_my_companies").json()
        assert answer["result"]["structuredContent"]["data"][0]["id"] == self.company

    def _upload(self) -> None:
        for finish in (True, False):
            asked = {"companySlug": self.company, "filename": f"notes-{finish}.txt", "sizeBytes": 5}
            answer = self._call(self._tokens[-1], "create_document_upload", **asked)
            link = re.search(r"/uploads/([\w-]+)", answer.body.decode())
            assert link is not None, answer
            self.used[link[1]] = "link to upload"
            if finish:
                sent = self.product.request("PUT", link[0], {}, b"notes")
                assert sent.status == 201, sent

    def _invite(self, person: Visitor) -> None:
        for address in (FRIEND, OTHER):
            self.mailbox.messages.clear()
            person.post(f"/manage/companies/{self.company}/invite", email=address)
            link = re.search(r"/manage/invitations/(\S+)", text_of(self.mailbox.wait_for(address, subject="o-own")))
            assert link is not None
            self.used[link[1]] = "link of an invitation"
            with self._visitor() as friend:
                friend.get(link[0])  # leads to the sign-in, with the way back in its URL
            if address == FRIEND:
                with self._signed_in(FRIEND) as friend:
                    friend.post(link[0])

    def _share(self, person: Visitor) -> None:
        page = person.post("/manage/reports", company=self.company, framework=FRAMEWORK).url.path
        person.post(f"{page}/execute")
        wait_until(lambda: "/share" in person.get(page), within_s=30, what="a report")
        link = re.search(r"/reports/shared/(\w+)", person.post(f"{page}/share").text)
        assert link is not None
        self.used[link[1]] = "link to a report"
        person.get(link[0])
