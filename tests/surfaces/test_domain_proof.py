"""The running product proves a domain with a name server and a mail server on loopback, and refuses private sites."""

import re
from html import unescape

import pytest

from services.mail import Mailbox, text_of
from services.name_server import NameServer
from services.owner import COMPANY, EMAIL, PASSWORD, owned_instance
from services.ports import wait_until
from services.visitor import Visitor

PAGE = f"/companies/{COMPANY}/domain"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The product, a browser of the listing's owner, and the servers around it."""
    with NameServer() as names, Mailbox() as mailbox:
        host, port = names.address
        settings = {"dns_servers": f"{host}:{port}", "mail_url": mailbox.url}
        with (
            owned_instance(tmp_path_factory.mktemp("proof"), **settings) as (product, _),
            Visitor(product.url, {}) as owner,
        ):
            owner.post("/accounts/login/", login=EMAIL, password=PASSWORD)
            yield product, owner, names, mailbox


def company(product):
    return product.data_of(f"/api/v1/companies/{COMPANY}")["company"]


def shown(page):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_domain_is_proven_by_its_record_its_mail_and_never_by_a_private_site(world):
    product, owner, names, mailbox = world
    assert "verifiedDomain" not in company(product)
    website = company(product)["website"]
    host = website.removeprefix("https://").rstrip("/")

    owner.post(PAGE, do="start", method="file")
    names.records[host] = {"A": ["127.0.0.1"]}
    told = shown(owner.post(PAGE, do="check", method="file").text)
    assert "the name resolves to an address that is not public" in told

    page = owner.post(PAGE, do="start", method="dns").text
    value = re.search(r"muniment-verification=[0-9a-f]{32}", page)[0]
    assert "no TXT record" in shown(owner.post(PAGE, do="check", method="dns").text)
    names.txt(f"_muniment-challenge.{host}", value)
    assert f"{host} is verified." in shown(owner.post(PAGE, do="check", method="dns").text)
    wait_until(lambda: "verifiedDomain" in company(product), within_s=60, what="the proof on the wire")
    assert (company(product)["verifiedDomain"]["domain"], company(product)["maintainedByOwner"]) == (host, True)
    latest = product.get("/api/v1/changes?after=0&limit=1000").json()["data"][-1]
    assert (latest["id"], latest["fields"]) == (COMPANY, ["verifiedDomain"])
    assert f"{host} (DNS record, " in shown(product.get(f"/companies/{COMPANY}").body.decode())

    owner.post(PAGE, do="send", address=f"info@{host}")
    text = text_of(mailbox.wait_for(f"info@{host}"))
    code = re.search(r"^([A-Z2-9]{4}-[A-Z2-9]{4})\s*$", text, re.MULTILINE)[1]
    assert f"{host} is verified." in shown(owner.post(PAGE, do="confirm", code=code).text)
    wait_until(
        lambda: company(product)["verifiedDomain"]["method"] == "mail", within_s=60, what="the latest proof on the wire"
    )
