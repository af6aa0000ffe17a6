"""Buying credits in Chromium on a small Stripe, and the webhook as strangers may call it."""

import json
import subprocess
import sys
import threading
import time

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from services.prepared import new_instance
from services.product import Product, environment, run
from services.raw import exchange, status
from services.stripe import KEY, WEBHOOK_SECRET, Stripe, signed
from services.uploads import Owner

PASSWORD = "four harbours, one tide"
HOOK = "/billing/stripe/webhook"
FOUR_MINUTES_LATER = """
import django; django.setup()
from datetime import timedelta
from muniment.credits.models import Purchase
from muniment.jobs.queue import enqueue
from muniment.kernel.ids import now
Purchase.objects.filter(state="open").update(at=now() - timedelta(minutes=4))
enqueue("credits.left_open")
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Yield a product that sells, its owner, and the Stripe behind it."""
    with Stripe() as stripe:
        data = new_instance(tmp_path_factory.mktemp("shop") / "data")
        with Product(data, constants=stripe.constants(), **stripe.settings()) as product:
            product.wait_ready(within_s=90)
            owner = Owner(product, password=PASSWORD, **stripe.settings())
            yield product, owner, stripe
        told = run("doctor", "--ledger", data=data, **stripe.settings()).stdout
        assert "OK    ledger: every balance equals its transfers" in told
        assert "OK    buying credits: Stripe in test mode, 2 packs" in told
        for secret in (KEY, WEBHOOK_SECRET):
            assert secret not in product.output() + told


@pytest.fixture
def sold(shop):
    """Return the shop with its webhook up."""
    product, owner, stripe = shop
    stripe.webhook = f"{product.url}{HOOK}"
    return product, owner, stripe


def counter(browser, product, owner, **context):
    """Sign in and stand before the packs; gives the page."""
    page = browser.new_context(base_url=product.url, **context).new_page()
    page.goto("/accounts/login/?next=/manage/credits")
    page.fill("input[name=login]", owner.email)
    page.fill("input[name=password]", PASSWORD)
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/manage/credits")
    return page


def balance(owner):
    return owner.call("get_credits")["data"]["balance"]


@pytest.mark.requirement("credits.buy")
def test_a_pack_is_bought_on_stripes_page_and_the_credits_are_there_on_return(browser, sold, tmp_path):
    product, owner, stripe = sold
    before = balance(owner)
    page = counter(browser, product, owner)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    page.screenshot(path=tmp_path / "packs.png", full_page=True)
    page.get_by_role("button", name="500 credits $40.00").click()
    page.wait_for_url(f"{stripe.url}/c/pay/**")
    expect(page.get_by_role("heading")).to_contain_text("500 credits")
    expect(page.locator("body")).to_contain_text("40.00 USD")
    page.get_by_role("button", name="Pay", exact=True).click()
    page.wait_for_url("**/manage/credits?bought=*")
    expect(page.get_by_role("status")).to_have_text("Payment received. We added 500 credits.")
    expect(page.locator("section[aria-labelledby=entries] tbody tr").first).to_contain_text("Purchase")
    page.screenshot(path=tmp_path / "bought.png", full_page=True)
    assert balance(owner) == before + 500
    assert [delivery.status for delivery in stripe.deliveries] == [200]
    assert violations(page) == []
    assert in_the_dark(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    page.screenshot(path=tmp_path / "phone.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert faults == []
    page.context.close()


def test_leaving_the_payment_page_says_that_nothing_was_charged_also_without_javascript(browser, sold):
    product, owner, stripe = sold
    before = balance(owner)
    page = counter(browser, product, owner, java_script_enabled=False, color_scheme="dark")
    page.get_by_role("button", name="100 credits $9.00").click()
    page.wait_for_url(f"{stripe.url}/c/pay/**")
    page.get_by_role("link", name="Back").click()
    page.wait_for_url("**/manage/credits?left=*")
    expect(page.get_by_role("status")).to_have_text("You left the payment page. You were not charged.")
    page.get_by_role("button", name="100 credits").click()
    page.get_by_role("button", name="Pay by bank debit").click()
    page.wait_for_url("**/manage/credits?bought=*")
    expect(page.get_by_role("status")).to_contain_text("Your bank has not confirmed the payment yet.")
    expect(page.get_by_role("heading", name="Waiting for your bank")).to_be_visible()
    assert balance(owner) == before
    stripe.bank_says(list(stripe.sessions)[-1], good=True)
    page.reload()
    expect(page.get_by_role("status")).to_have_text("Payment received. We added 100 credits.")
    assert balance(owner) == before + 100
    page.context.close()


@pytest.mark.whole(keeps=0)
def test_a_buyer_who_returns_before_the_event_has_the_credits_and_the_event_adds_none(browser, sold):
    product, owner, stripe = sold
    before = balance(owner)
    stripe.webhook = ""
    page = counter(browser, product, owner)
    page.get_by_role("button", name="100 credits").click()
    page.get_by_role("button", name="Pay", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Payment received. We added 100 credits.")
    assert balance(owner) == before + 100
    address = page.url
    stripe.webhook = f"{product.url}{HOOK}"
    event = stripe.tell("checkout.session.completed", list(stripe.sessions.values())[-1])
    assert stripe.deliveries[-1].status == 200
    threads = [threading.Thread(target=stripe.send, args=(event,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [delivery.status for delivery in stripe.deliveries[-5:]] == [200] * 5
    assert balance(owner) == before + 100
    stranger = Owner(product, "stranger@harbour.example", password=PASSWORD, **stripe.settings())
    other = counter(browser, product, stranger)
    for name in ("bought", "left"):
        assert other.goto(f"{address.replace('bought', name)}").status == 404
    assert balance(stranger) == 100
    stripe.refund(list(stripe.sessions)[-1], 900)
    page.goto("/manage/credits")
    expect(page.locator("section[aria-labelledby=entries] tbody tr").first).to_contain_text("Refund")
    assert balance(owner) == before
    page.context.close()
    other.context.close()


def test_a_purchase_that_was_begun_twice_in_one_breath_opens_one_page(browser, sold):
    product, owner, stripe = sold
    page = counter(browser, product, owner)
    opened = len(stripe.sessions)
    page.evaluate(
        "const f = document.querySelector('.packs').form || document.querySelector('form:has(.packs)');"
        "const b = f.querySelector('button'); f.requestSubmit(b); f.requestSubmit(b);"
    )
    page.wait_for_url(f"{stripe.url}/c/pay/**")
    assert len(stripe.sessions) == opened + 1
    page.context.close()


def test_only_the_page_that_sells_lets_a_form_lead_to_stripe(browser, sold):
    product, owner, stripe = sold
    page = counter(browser, product, owner)
    assert f"form-action 'self' {stripe.url};" in page.reload().headers["content-security-policy"]
    for path in ("/manage", "/manage/reports", "/"):
        assert "form-action 'self';" in page.goto(path).headers["content-security-policy"]
    page.context.close()


def test_an_agent_learns_where_credits_are_bought(sold):
    product, owner, _ = sold
    assert owner.call("get_credits")["data"]["buyUrl"] == f"{product.url}/manage/credits"


def test_the_webhook_takes_signed_events_alone_and_not_without_end(sold):
    product, owner, stripe = sold
    before = balance(owner)
    event = stripe.tell("customer.created", {"id": "cus_1"})
    assert (stripe.deliveries[-1].status, json.loads(stripe.deliveries[-1].answer)["data"]["outcome"]) == (
        200,
        "nothing to do",
    )
    body = json.dumps(event).encode()

    def post(sent, signature="", method="POST"):
        return product.request(method, HOOK, {"Stripe-Signature": signature, "Content-Type": "application/json"}, sent)

    for sent, signature in ((body, ""), (body, signed(body, secret="other")), (body, signed(body, age_s=400))):
        refused = post(sent, signature)
        assert (refused.status, refused.json()["error"]["code"]) == (400, "bad_request")
        assert WEBHOOK_SECRET not in refused.body.decode()
    huge = b"x" * (300 << 10)
    assert post(huge, signed(huge)).status == 413
    assert product.request("GET", HOOK).status == 405
    assert product.request("GET", HOOK).headers["allow"] == "POST"
    # Cut short on the way: less than was announced, then silence.
    head = f"POST {HOOK} HTTP/1.1\r\nHost: {product.host}\r\nStripe-Signature: {signed(body)}\r\n"
    cut = exchange(product.port, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:50], hang_up=True)
    assert not cut or status(cut[0]) >= 400
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n{len(huge):x}\r\n".encode() + huge + b"\r\n0\r\n\r\n"
    assert status(exchange(product.port, chunked)[0]) == 413
    assert balance(owner) == before


def test_a_webhook_that_was_lost_is_made_good_by_the_job(sold, browser):
    product, owner, stripe = sold
    before = balance(owner)
    stripe.webhook, stripe.is_down = "", False
    page = counter(browser, product, owner)
    page.get_by_role("button", name="500 credits").click()
    page.wait_for_url(f"{stripe.url}/c/pay/**")
    stripe.pay(page.url.rpartition("/")[2])  # and the browser never comes back
    page.context.close()
    assert balance(owner) == before
    variables = {**environment(product.data, **stripe.settings()), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    subprocess.run([sys.executable, "-c", FOUR_MINUTES_LATER], env=variables, timeout=60, check=True)
    deadline = time.monotonic() + 20
    while balance(owner) != before + 500:
        assert time.monotonic() < deadline, "the job did not settle it"
        time.sleep(0.1)
