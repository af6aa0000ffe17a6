"""Pages of the running server: an account over its limits waits, and everybody else goes ahead."""

import re

import pytest

from services.prepared import new_instance
from services.product import Product, run
from services.visitor import Visitor

PASSWORD = "four harbours, one tide"


@pytest.fixture
def data(tmp_path):
    data = new_instance(tmp_path / "data")
    for name in ("ada", "ben"):
        run("user", "create", f"{name}@harbour.example", "--password-stdin", data=data, stdin=PASSWORD + "\n")
    return data


def signed_in(product, name):
    visitor = Visitor(product.url, {})
    visitor.post("/accounts/login/", login=f"{name}@harbour.example", password=PASSWORD)
    return visitor


def until_refused(visitor, path, most=20):
    for _ in range(most):
        answer = visitor.web.get(path)
        if answer.status_code != 200:
            return answer
    raise AssertionError("never refused")


def test_an_account_over_its_cpu_time_waits_and_others_do_not(data):
    with Product(data, "--workers", "1", account_cpu_ms="2") as product:  # each process counts alone
        product.wait_ready()
        with signed_in(product, "ada") as ada:
            refused = until_refused(ada, "/manage/tokens")
            assert refused.status_code == 429
            wait_s = int(refused.headers["retry-after"])
            assert 1 <= wait_s <= 300
            assert f"Wait {wait_s} s" in refused.text
            with signed_in(product, "ben") as ben:
                assert "Sign out" in ben.get("/accounts/logout/")
            assert ada.send("/accounts/logout/", follow=False).status_code == 302
        assert re.search(r'muniment_limited_total\{limit="page_cpu"\} [1-9]', product.metrics())


def test_an_account_over_its_changes_can_submit_its_form_again(data):
    with Product(data, "--workers", "1", account_writes="1") as product:
        product.wait_ready()
        with signed_in(product, "ada") as ada, signed_in(product, "ben") as ben:
            new = {"name": "laptop", "lifetime": "30", "access": "read"}
            answers = [ada.send("/manage/profile", name="Ada Reef", follow=False) for _ in range(3)]
            assert [each.status_code == 429 for each in answers] == [False, False, True]
            assert 'name="name" value="Ada Reef"' in answers[-1].text
            assert ada.get("/manage/profile")
            assert ben.send("/manage/tokens", **new).status_code != 429
        assert 'muniment_limited_total{limit="writes"} 1.0' in product.metrics()
