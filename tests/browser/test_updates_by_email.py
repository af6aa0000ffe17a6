"""A visitor follows a listing by email, in a browser and by mail: from the form to the last click, over an outage."""

import json
import re
import sqlite3
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from services.mail import Mailbox, text_of
from services.ports import wait_until
from services.prepared import copied, demo_registry
from services.product import Product, run
from services.silent import Silent

pytestmark = pytest.mark.sqlite  # it makes a digest due by a statement on the file
EMAIL = "reader@moss.example"
LISTING = "saltmarsh-commons"


def statements(data, *texts):
    """Execute statements on the database of a product; return the first row of the last one."""
    with closing(sqlite3.connect(data / "muniment.sqlite3", timeout=30)) as database, database:
        for text in texts:
            found = database.execute(text).fetchone()
        return found


def make_due(data):
    """Make the digest due, and the job that sends it, which otherwise runs every quarter of an hour."""
    statements(
        data,
        "UPDATE searches_subscription SET next_at = '2026-01-01 00:00:00'",
        "DELETE FROM jobs_job WHERE kind = 'searches.updates_due'",
    )


def waiting(data):
    text = "SELECT count(*) FROM jobs_job WHERE kind = 'mail.requested' AND state IN ('queued', 'running')"
    return statements(data, text)[0]


def test_a_visitor_follows_a_listing_from_the_form_to_the_last_click(browser, tmp_path):
    data = copied(demo_registry, tmp_path / "data")
    with Mailbox() as box, Product(data, mail_url=box.url, mail_from="registry@harbour.example") as product:
        product.wait_ready()
        context = browser.new_context(base_url=product.url, viewport={"width": 390, "height": 844}, locale="en-GB")
        page = context.new_page()
        page.goto(f"/companies/{LISTING}")
        page.get_by_text("Get updates by email").click()
        assert violations(page) == []
        page.get_by_label("Email address").fill(EMAIL)
        page.get_by_role("button", name="Get updates").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Check your email")
        assert violations(page) == []
        asked = box.wait_for(EMAIL, subject="Confirm your updates")
        link = re.search(r"http://\S+/updates/confirm/\S+", text_of(asked))[0]
        assert httpx.get(link).status_code == 200  # a program that checks links confirms nothing
        assert statements(data, "SELECT confirmed_at FROM searches_subscription") == (None,)
        page.goto(link)
        assert [*violations(page), *in_the_dark(page)] == []
        page.get_by_role("button", name="Confirm the updates").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Updates confirmed")
        assert violations(page) == []

        digest = changed_while_the_mail_server_hangs(product, box, data, tmp_path)
        assert "updated" in text_of(digest)
        assert len([each for each in box.messages if "Updates of" in str(each["Subject"])]) == 1

        mine = re.search(r"http://\S+/updates/mine/\S+", text_of(digest))[0]
        page.goto(mine)
        expect(page.locator("main")).to_contain_text(EMAIL)
        assert [*violations(page), *in_the_dark(page)] == []
        end = "".join(str(digest["List-Unsubscribe"]).split()).strip("<>")
        page.goto(end)
        assert violations(page) == []
        answer = httpx.post(end, data={"List-Unsubscribe": "One-Click"})
        assert answer.status_code == 200
        page.goto(end)
        expect(page.get_by_role("heading", level=1)).to_have_text("Updates ended")
        assert statements(data, "SELECT count(*) FROM searches_subscriber") == (0,)
        assert context.cookies() == []
        assert "Traceback" not in product.output()
        context.close()


def changed_while_the_mail_server_hangs(product, box, data, folder):
    """Change the listing, kill the process while its digest waits for a server that hangs; return the message."""
    box.stop()
    with Silent(box.port):
        changed = product.data_of(f"/api/v1/companies/{LISTING}")
        changed["company"]["teamSize"] = 77
        rows = folder / "companies.jsonl"
        rows.write_text(json.dumps({"company": changed["company"]}) + "\n")
        run("import", str(rows), "--overwrite", data=data)
        make_due(data)
        wait_until(lambda: waiting(data), within_s=90, what="the digest in the queue")
        assert product.get(f"/companies/{LISTING}").status == 200
        product.kill()
    product.start()
    product.wait_ready()
    make_due(data)  # what was told is not told again
    box.start()
    return box.wait_for(EMAIL, subject="Updates of", within_s=120)
