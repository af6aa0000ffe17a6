"""A real client, a browser, the running product and a real issuer: an agent's first connection asks the person once."""

import time

import pytest

from services.issuer import Issuer, upstream
from services.mail import Mailbox
from services.owner import EMAIL, PASSWORD, Agent, answers, owned_instance, result_of

PERSON = {"sub": "7", "email": "ada@harbour.example", "email_verified": True}


@pytest.fixture(scope="module")
def surroundings():
    with Mailbox() as mailbox, Issuer(PERSON) as issuer:
        yield mailbox, issuer


@pytest.fixture(scope="module")
def product(tmp_path_factory, surroundings):
    mailbox, issuer = surroundings
    settings = {"mail_url": mailbox.url, **upstream(issuer)}
    with owned_instance(tmp_path_factory.mktemp("owned"), **settings) as (product, _):
        yield product


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def connect(product, act):
    """Connect the client, which opens an address for *act*; return the name of a tool that writes."""
    with answers() as (redirect, codes):
        agent = Agent(f"{product.url}/api/manage/mcp", redirect, codes)

        async def job(client):
            return {tool.name for tool in (await client.list_tools()).tools}

        done = agent.work(job)
        act(agent.to_open.get(timeout=90))
        assert "update_my_company" in result_of(done)


def at_issuer(page, issuer):
    page.wait_for_url(f"{issuer.url}/authorize**")
    page.get_by_role("link", name="Sign in as the person").click()


def allow(page):
    page.get_by_role("button", name="Connect").click()


@pytest.mark.requirement("auth.oauth")
def test_a_person_with_a_password_is_asked_for_it_once(product, page):
    def act(address):
        page.goto(address)
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("form[action$='/login/'] button[type=submit]")
        allow(page)
        page.wait_for_url("**/callback?**")

    connect(product, act)


def test_a_person_with_a_session_at_the_issuer_is_asked_there_once(product, page, surroundings):
    """The sign-in comes from the issuer's session of two hours ago, so the consent asks the issuer to ask."""
    issuer = surroundings[1]
    issuer.signed_in_at = time.time() - 7_200

    def act(address):
        page.goto(address)
        page.get_by_role("link", name="Continue with Harbour login").click()
        page.get_by_role("button", name="Continue").click()
        at_issuer(page, issuer)
        page.wait_for_url("**/oauth/authorize?**")
        assert "prompt" not in issuer.asked["authorize"]
        consent = page.url
        allow(page)
        page.wait_for_url("**/accounts/reauthenticate/provider/**")
        assert page.get_by_role("heading", name="Confirm it's you").is_visible()
        page.get_by_role("button", name="Sign in at Harbour login").click()
        at_issuer(page, issuer)
        page.wait_for_url("**/oauth/authorize?**")
        assert issuer.asked["authorize"]["prompt"] == "login"
        assert page.url == consent
        allow(page)
        page.wait_for_url("**/callback?**")

    connect(product, act)
