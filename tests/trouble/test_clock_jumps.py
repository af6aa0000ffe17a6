"""The wall clock of a server is set forward and back while it is used: nothing fails, waits or happens twice."""

import subprocess
import sys
from collections import Counter

import pytest

from services.clock import Clock
from services.load import Load
from services.mail import Mailbox
from services.owner import COMPANY, EMAIL, PASSWORD, owned_registry
from services.ports import wait_until
from services.product import Product, environment
from services.uploads import tool
from services.visitor import Visitor

pytestmark = [pytest.mark.proof, pytest.mark.sqlite, pytest.mark.timeout(900)]  # PostgreSQL has a clock of its own
DAY_S = 86_400
SHIFTS_S = (DAY_S, 0, -DAY_S, 0, -3_650 * DAY_S, 0, 30, 60, 90, 60, 30, 0)
PATHS = ("/api/v1/companies", "/api/v1/companies?q=tidal", "/companies", "/api/v1/people/ilsabet-corrowan", "/")
_TOKEN = """
import sys, django
django.setup()
from muniment.accounts import tokens
from muniment.accounts.models import Account
from muniment.kernel.actor import SCOPES
print(tokens.create_token(Account.objects.get(email=sys.argv[1]).actor("web"), "tests", permitted=SCOPES).text)
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_clock_is_set_and_everything_goes_on(tmp_path, monkeypatch, workers):
    data, clock = owned_registry(tmp_path / "data", database_url=""), Clock(tmp_path)
    made = [sys.executable, "-c", _TOKEN, EMAIL]
    setting = {**environment(data, database_url=""), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    token = subprocess.run(made, env=setting, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    with Mailbox() as mailbox:
        product = Product(data, "--workers", workers, database_url="", mail_url=mailbox.url)
        with monkeypatch.context() as patched:
            for name, value in clock.environment.items():
                patched.setenv(name, value)
            product.start(within_s=60)
        try:
            product.wait_ready("/readyz?writes", within_s=60)
            with Load([product.port], paths=PATHS, threads=2, pause_s=0.05) as load:
                for number, shift_s in enumerate(SHIFTS_S):
                    clock.set(shift_s)
                    use(product, token, mailbox, number)
            assert load.failures == []
            output = product.output()
        finally:
            product.stop()
    assert output.partition("Traceback")[2] == ""
    assert "the clock was set" in output
    copies = Counter((str(message["To"]), str(message["Subject"])) for message in mailbox.messages)
    assert {count for (to, _), count in copies.items() if to.startswith("new")} == {1}, copies


def use(product: Product, token: str, mailbox: Mailbox, number: int) -> None:
    """Do what people do, and look whether it is done."""

    def call(name, **arguments):
        found = tool(product, token, name, **arguments)
        assert "data" in found, (SHIFTS_S[number], found)
        return found["data"]

    before = product.data_of(f"/api/v1/companies/{COMPANY}")
    call("update_my_company", slug=COMPANY, changes={"description": f"The board met for the {number}th time."})
    wait_until(lambda: f"{number}th time" in shown(product), within_s=5, what="the change in each process")
    assert updated(before) <= updated(product.data_of(f"/api/v1/companies/{COMPANY}"))
    document = call("upload_document", companySlug=COMPANY, filename="minutes.txt", text=f"Minutes {number}. " * 90)
    with Visitor(product.url, {}) as person:
        person.post("/accounts/login/", login=EMAIL, password=PASSWORD)
        assert COMPANY in person.get("/manage")
    with Visitor(product.url, {}) as person:
        person.get("/accounts/signup/")
        secret = "a harbour, four boats and 17 gulls"
        person.post("/accounts/signup/", email=f"new{number}@harbour.example", password1=secret, password2=secret)
    mailbox.wait_for(f"new{number}@harbour.example", within_s=30)
    wait_until(lambda: is_read(call, document["documentId"]), within_s=30, what="the document's text")
    feed = product.get("/api/v1/changes?limit=500").json()["data"]
    assert [change["at"] for change in feed] == sorted(change["at"] for change in feed)


def shown(product):
    """Return what the process shows that shows the least."""
    return min(answer.body.decode() for answer in product.get_of_each(f"/api/v1/companies/{COMPANY}"))


def updated(found):
    return found["company"]["updatedAt"] if "company" in found else found["updatedAt"]


def is_read(call, document_id):
    """Return whether the job that reads the text of a document has ended with success."""
    states = {each["documentId"]: each["textState"] for each in call("list_my_documents", companySlug=COMPANY)}
    return states[document_id] == "extracted"
