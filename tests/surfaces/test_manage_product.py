"""The owner-scoped server of real processes: the demo's owner comes in, and an ended token opens nothing anywhere."""

import http.cookiejar
import re
import urllib.parse
import urllib.request

import pytest

from services.mcp import modern
from services.owner import EMAIL, owned_instance
from services.ports import SEEN_WITHIN_S, wait_until
from services.prepared import demo_registry, new_instance
from services.product import Product, run

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(product, token, request):
    headers, body = request
    given = {name: value for name, value in headers if name != "host"} | {"Authorization": f"Bearer {token}"}
    return product.request("POST", "/api/manage/mcp", given, body)


def call(product, token, name, **arguments):
    answer = ask(product, token, modern("tools/call", {"name": name, "arguments": arguments}))
    assert answer.status == 200, answer
    return answer.json()["result"]["structuredContent"]["data"]


def printed(product):
    """Return what a demo prints of its owner: address, password, token."""
    wait_until(lambda: "Sign in as reviewer" in product.output(), within_s=30, what="the sign-ins")
    product.wait_ready()
    [(email, password)] = re.findall(r"Sign in as owner: (\S+)  (\S+)", product.output())
    [token] = re.findall(r"Token of the owner for /api/manage/mcp: (mun_pat_\w{36})\n", product.output())
    return email, password, token


def sign_in(product, email, password):
    """Sign in on the pages; gives the address that it led to, and the page."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    with browser.open(f"{product.url}/manage") as page:
        address, form = page.geturl(), page.read().decode()
    asked = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert asked, form
    fields = {"csrfmiddlewaretoken": asked[1], "login": email, "password": password}
    sent = urllib.request.Request(
        address, urllib.parse.urlencode(fields).encode(), {"Referer": address, "Origin": product.url}
    )
    with browser.open(sent):
        pass
    with browser.open(f"{product.url}/manage") as page:
        return page.geturl(), page.read().decode()


@pytest.mark.requirement("cli.demo-owner")
@pytest.mark.requirement("manage.server")
def test_the_demo_prints_an_owners_sign_in_and_token_and_a_new_start_ends_the_token(tmp_path):
    with Product(new_instance(tmp_path / "data"), "--demo") as product:
        email, password, token = printed(product)
        mine = call(product, token, "list_my_companies")
        assert {"published", "draft", "submitted"} <= {item["state"] for item in mine}
        assert call(product, token, "get_my_profile")["email"] == email
        at, page = sign_in(product, email, password)
        assert urllib.parse.urlsplit(at).path.rstrip("/") == "/manage"
        assert mine[0]["name"] in page
    with Product(tmp_path / "data", "--demo") as again:
        _, _, newer = printed(again)
        assert call(again, newer, "list_my_companies") == mine
        assert ask(again, token, modern("tools/list")).status == 401


@pytest.mark.requirement("cli.users")
def test_an_account_is_made_listed_promoted_and_given_a_token_at_the_command_line(tmp_path):
    data = demo_registry(tmp_path / "data")
    made = run(
        "user", "create", "ada@harbour.example", "--password-stdin", data=data, stdin="four harbours, one tide\n"
    )
    assert made.stdout == "ada@harbour.example is now owner.\n"
    again = run("user", "create", "ada@harbour.example", "--no-password", data=data, check=False)
    assert again.returncode == 1
    token = run("user", "token", "ada@harbour.example", "--name", "laptop", data=data).stdout.strip()
    reading = run("user", "token", "ada@harbour.example", "--name", "eyes", "--read-only", data=data).stdout.strip()
    with Product(data) as product:
        product.wait_ready()
        slug = product.data_of("/api/v1/companies?pageSize=1")[0]["id"]
        assert call(product, token, "list_my_companies") == []
        run("own", "ada@harbour.example", slug, data=data)
        assert [item["id"] for item in call(product, token, "list_my_companies")] == [slug]
        named = {tool["name"] for tool in ask(product, reading, modern("tools/list")).json()["result"]["tools"]}
        assert "get_my_company" in named
        assert "update_my_company" not in named
        assert sign_in(product, "ada@harbour.example", "four harbours, one tide")[0].rstrip("/").endswith("/manage")
    run("user", "role", "ada@harbour.example", "reviewer", data=data)
    assert run("user", "list", data=data).stdout == "ada@harbour.example\treviewer\tactive\n"


@pytest.mark.requirement("tokens.personal")
def test_a_token_that_one_process_ends_is_dead_in_the_other_within_a_second(tmp_path):
    data = new_instance(tmp_path / "data")
    run("user", "create", "ada@harbour.example", "--no-password", data=data)
    token = run("user", "token", "ada@harbour.example", "--name", "laptop", data=data).stdout.strip()
    with Product(data) as one, Product(data) as other:
        for product in (one, other):
            product.wait_ready()
            assert ask(product, token, modern("tools/list")).status == 200  # and is remembered from here on
        ended = one.request("POST", "/oauth/revoke", FORM, f"token={token}".encode())
        assert ended.status == 200, ended
        assert ask(one, token, modern("tools/list")).status == 401
        wait_until(
            lambda: ask(other, token, modern("tools/list")).status == 401,
            within_s=SEEN_WITHIN_S,
            what="the end in the other",
        )


@pytest.mark.requirement("mcp.limits")
def test_users_of_one_address_have_limits_of_their_own(tmp_path):
    data = new_instance(tmp_path / "data")
    tokens = {}
    for name in ("ada", "ben"):
        run("user", "create", f"{name}@harbour.example", "--no-password", data=data)
        tokens[name] = run("user", "token", f"{name}@harbour.example", "--name", "laptop", data=data).stdout.strip()
    # Each process counts alone.
    with Product(data, "--workers", "1", rate_limit="1", rate_burst="4") as product:
        product.wait_ready()
        listing = modern("tools/list")

        def asked(token):
            answer = ask(product, token, listing)
            return answer.status, re.search(r'"burst";r=(\d+)', answer.headers["ratelimit"])[1]

        assert [asked(tokens["ada"]) for _ in range(5)] == [(200, "3"), (200, "2"), (200, "1"), (200, "0"), (429, "0")]
        assert asked(tokens["ben"]) == (200, "3")
        assert [asked("mun_pat_no") for _ in range(5)] == [(401, "3"), (401, "2"), (401, "1"), (401, "0"), (429, "0")]
        assert asked(tokens["ben"]) == (200, "2"), "a valid token does not wait for others of its address"
        assert product.get("/api/v1/stats").status == 200, "the address has not been charged for the owner server"
        told = product.metrics()
        for limit in ("credentials", "unauthenticated"):
            assert f'muniment_limited_total{{limit="{limit}"}} 1.0' in told
        refusal = ask(product, "mun_pat_no", listing)
        assert (refusal.status, f"see {product.url}/manage/tokens." in refusal.json()["error"]["hint"]) == (429, True)


@pytest.mark.requirement("mcp.limits")
def test_an_account_over_its_changes_may_still_read_and_others_may_change(tmp_path):
    data = new_instance(tmp_path / "data")
    tokens = {}
    for name in ("ada", "ben"):
        run("user", "create", f"{name}@harbour.example", "--no-password", data=data)
        tokens[name] = run("user", "token", f"{name}@harbour.example", "--name", "laptop", data=data).stdout.strip()
    dry = modern("tools/call", {"name": "update_my_profile", "arguments": {"changes": {"name": "X"}, "dryRun": True}})
    with Product(data, "--workers", "1", account_writes="1") as product:  # each process counts alone
        product.wait_ready()

        def tried(name):
            return ask(product, tokens[name], dry).json()["result"]["structuredContent"]

        assert ["Too many changes" in str(tried("ada")) for _ in range(3)] == [False, False, True]
        assert re.search(r"Wait \d+ s", tried("ada")["error"]["hint"])
        assert call(product, tokens["ada"], "list_my_companies") == []
        assert "Too many changes" not in str(tried("ben"))
        assert 'muniment_limited_total{limit="writes"} 2.0' in product.metrics()


@pytest.mark.proof
@pytest.mark.requirement("owners.edits")
def test_a_change_is_public_at_once_and_within_a_second_in_another_process(tmp_path):
    with owned_instance(tmp_path) as (one, slug), Product(one.data) as other:
        other.wait_ready()
        token = run("user", "token", EMAIL, "--name", "laptop", data=one.data).stdout.strip()

        def described(product):
            return product.data_of(f"/api/v1/companies/{slug}")["company"]["description"]

        for number in range(20):
            text = f"Told {number}."
            updated = call(one, token, "update_my_company", slug=slug, changes={"description": text})
            assert updated["applied"] == ["description"]
            assert described(one) == text
            wait_until(
                lambda told=text: described(other) == told, within_s=SEEN_WITHIN_S, what="the change in the other"
            )
