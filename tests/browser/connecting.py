"""The pages on the way of an app to an owner's account, one after the other: for checks and for pictures."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from browser.keys import Keys
from browser.tour import origin
from make.apps import proof
from services.product import Product

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def stations(page: Any, product: Product) -> Iterator[str]:
    """Lead *page*, which is signed in, from station to station by keyboard; gives each one's name."""
    keys = Keys(page)
    redirect, shown = f"{origin(product)}/connect", proof()
    metadata = {"redirect_uris": [redirect], "client_name": "Harbour Agent"}
    body = json.dumps(metadata).encode()
    registered = product.request("POST", "/oauth/register", {"Content-Type": "application/json"}, body).json()
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": redirect,
        "code_challenge": shown.challenge,
        "code_challenge_method": "S256",
        "state": "s-1",
    }
    page.goto(f"{origin(product)}/oauth/authorize?{urlencode({**asked, 'redirect_uri': 'https://evil.example/'})}")
    yield "refused"
    page.goto(f"{origin(product)}/manage/tokens")
    yield "tokens-none"
    page.goto(f"{origin(product)}/oauth/authorize?{urlencode(asked)}")
    yield "consent"
    keys.press(page.get_by_role("button", name="Connect", exact=True))
    page.wait_for_url("**/connect?**")
    code = parse_qs(urlsplit(page.url).query)["code"][0]
    fields = {
        "grant_type": "authorization_code",
        "client_id": registered["client_id"],
        "code": code,
        "code_verifier": shown.verifier,
    }
    answer = product.request("POST", "/oauth/token", FORM, urlencode(fields).encode())
    assert answer.status == 200, answer
    page.goto(f"{origin(product)}/manage/tokens")
    keys.write(page.get_by_label("Name"), "laptop")
    keys.press(page.get_by_role("button", name="Create token"))
    page.get_by_text("Your new token").wait_for()
    yield "token-made"
    page.goto(f"{origin(product)}/manage/tokens")
    yield "tokens"
