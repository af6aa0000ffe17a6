"""One account grows neither its listing, nor the database, nor a page without end."""

import contextlib
import random
import sqlite3
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from attacks.conftest import ATTACKED_WITH, ATTACKER, attacked_with, signed_in, token
from services.prepared import copied
from services.product import Product, Served

CALLS = 25
DEFAULTS = {"rate_limit": "600", "account_writes": "60", "account_cpu_ms": "2000"}
MAX_GROWTH_BYTES = 5 << 20
MAX_OBJECT_BYTES = 256 << 10
MAX_PAGE_BYTES = 1 << 20


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    if Served.cluster is not None:
        pytest.skip("the size of SQLite's file is measured")
    data = copied(attacked_with, tmp_path / "data")
    with Product(data, "--workers", "1", **DEFAULTS) as made:
        made.wait_ready(within_s=60)
        yield made


class Owner:
    """An account that changes one of its listings, by tool, and reads it."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.cookies, self.csrf = signed_in(product.url, ATTACKER)
        self.web = httpx.Client(base_url=product.url, timeout=60, headers={"Cookie": self.cookies})
        self.key = token(product.data, ATTACKER)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.web.post(
            "/api/manage/mcp",
            headers={"Authorization": f"Bearer {self.key}", "Accept": "application/json, text/event-stream"},
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
        )
        found: dict[str, Any] = answer.json()["result"]["structuredContent"]
        return found

    def draft(self) -> str:
        fields = {"name": "Storm Draft", "slug": "storm-draft", "csrfmiddlewaretoken": self.csrf}
        answer = self.web.post("/manage/companies/new", data=fields, headers={"Origin": self.product.url})
        assert answer.status_code == 302, answer.text
        return "storm-draft"


@pytest.fixture
def owner(product: Product) -> Iterator[Owner]:
    made = Owner(product)
    yield made
    made.web.close()


def database_bytes(product: Product) -> int:
    file = product.data / "muniment.sqlite3"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def noise(chance: random.Random, size: int) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=size))


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("state", ["published", "draft"])
def test_twenty_five_of_the_largest_changes_leave_listing_database_and_page_small(product, owner, state):
    chance = random.Random(18)
    slug = ATTACKED_WITH if state == "published" else owner.draft()
    before = database_bytes(product)
    answers = []
    for number in range(CALLS):
        too_large = {f"key{number}": noise(chance, 900_000)}
        largest = {"details": noise(chance, 250_000)}
        sent = (too_large, largest) if number < 3 else (largest,)
        answers += [owner.call("update_my_company", slug=slug, changes={"distribution": each}) for each in sent]
    refusals = [answer["error"]["message"] for answer in answers if "error" in answer]
    assert sum("at most 262,144 are allowed" in each for each in refusals) == 3
    assert sum("changed too much text" in each for each in refusals) >= 10
    assert len(refusals) < len(answers)
    assert database_bytes(product) - before <= MAX_GROWTH_BYTES
    bundle = owner.call("get_my_company", slug=slug, parts=["company", "distribution"])["data"]
    stored = {**bundle["company"], "distribution": bundle["distribution"]}
    assert len(msgspec.json.encode(stored)) <= MAX_OBJECT_BYTES
    if state == "published":
        whole = product.get(f"/api/v1/companies/{slug}").json()["data"]
        assert len(msgspec.json.encode({**whole["company"], "distribution": whole["distribution"]})) <= MAX_OBJECT_BYTES
    page = owner.web.get(f"/manage/companies/{slug}/history")
    assert page.status_code == 200
    assert len(page.content) <= MAX_PAGE_BYTES


@pytest.mark.proof
def test_twenty_five_replacements_of_the_longest_list_leave_the_database_small(product, owner):
    chance = random.Random(19)
    before, total, answers = database_bytes(product), 0, []
    for _ in range(CALLS):
        rows = [{"name": f"Holder {noise(chance, 40)}", "tokens": str(number)} for number in range(9_000)]
        given = {"slug": ATTACKED_WITH, "changes": {"capTable": rows}, "expectedTotals": {"capTable": total}}
        answers.append(owner.call("update_my_company", **given))
        if "data" in answers[-1]:
            total = len(rows)
    assert total, answers[0]
    assert "changed too much text" in answers[-1]["error"]["message"]
    assert database_bytes(product) - before <= MAX_GROWTH_BYTES


def test_the_history_of_the_worst_texts_is_a_small_page(product, owner):
    chance = random.Random(18)
    for _ in range(24):
        texts = {
            name: " ".join(chance.choices("ab", k=size // 2))
            for name, size in {"body": 6_000, "description": 2_000}.items()
        }
        assert "data" in owner.call("update_my_company", slug=ATTACKED_WITH, changes=texts)
    page = owner.web.get(f"/manage/companies/{ATTACKED_WITH}/history")
    folded = page.text.count("<details") - page.text.count('<details class="menu"')
    assert (page.status_code, folded) == (200, 24)  # a short change before them is shown unfolded
    assert len(page.content) <= MAX_PAGE_BYTES
    assert product.get("/api/v1/stats").status == 200
