"""What no tool does leads to the page where people do it, with its full address."""

import re

import pytest
from django.urls import Resolver404, resolve

from make import registry as make
from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.mcp.web_pages import JOBS, unknown_tool, with_addresses
from muniment.registry.people import profiles
from services.manage import BASE, manage
from services.mcp import fictional_registry, legacy, modern, public_server

PAGES = {
    "create_company": "/manage/companies/new",
    "create_listing": "/manage/companies/new",
    "add_my_organization": "/manage/companies/new",
    "createOrganisation": "/manage/companies/new",
    "registerDAO": "/manage/companies/new",
    "delete_company": "/manage",
    "unlist_my_listing": "/manage",
    "update_logo": "/manage",
    "set_company_icon": "/manage",
    "uploadCompanyLogo": "/manage",
    "update_profile_photo": "/manage/profile",
    "set_avatar": "/manage/profile",
    "buy_credits": "/manage/credits",
    "purchase_credit_pack": "/manage/credits",
    "get_billing_portal": "/manage/credits",
    "list_invoices": "/manage/credits",
    "disconnect_app": "/manage/tokens",
    "revoke_token": "/manage/tokens",
    "createAccessToken": "/manage/tokens",
    "list_connected_apps": "/manage/tokens",
    "delete_account": "/accounts/data/",
    "invite_owner": "/manage",
    "upload_large_file": "/manage/documents",
}
ADDRESS = re.compile(rf"{re.escape(BASE)}(/[^\s]*?)(?=[.,;]?(?:\s|$))")


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("pages") / "p.sqlite3") as reader, public_server(reader) as made:
        yield made


@pytest.fixture
def owners():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example").actor("web")


def token_of(actor, permitted=SCOPES):
    return tokens.create_token(actor, "laptop", permitted=permitted).text


def is_page(path):
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


@pytest.mark.parametrize("name", PAGES)
def test_an_unknown_tool_is_led_to_the_page_that_its_name_means(name):
    said = unknown_tool(name, ["get_company"], BASE)
    assert said.startswith(f"Unknown tool: {name}. ")
    assert ADDRESS.findall(said) == [PAGES[name]]


@pytest.mark.parametrize("name", ["get_company_score", "list_applications", "submit_report", "x", "", "listing_stats"])
def test_a_name_that_means_no_page_is_led_to_the_tools(name):
    said = unknown_tool(name, ["get_company", "submit_application"], BASE)
    assert BASE not in said
    assert "tools" in said


def test_a_tool_with_a_similar_name_is_named():
    tools = ["get_company", "get_my_company", "list_people"]
    assert unknown_tool("getCompany", tools, BASE).endswith("Similar tools: get_company, get_my_company.")


@pytest.mark.parametrize("path", [job.path for job in JOBS])
def test_every_page_exists(path):
    assert is_page(path)


@pytest.mark.django_db
@pytest.mark.parametrize("era", [modern, legacy])
def test_both_servers_answer_an_unknown_tool_by_a_protocol_error_with_the_page(public, owners, owner, era):
    call = era("tools/call", {"name": "create_company", "arguments": {}})
    for answer, base in ((public.ask(*call), "https://registry.example"), (owners.ask(token_of(owner), call), BASE)):
        error = answer.json()["error"]
        assert error["code"] == -32602
        assert f"{base}/manage/companies/new" in error["message"]


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["icon", "logo"])
def test_a_logo_among_the_changes_leads_to_the_page_of_the_listings_logo(owners, owner, field):
    made = make.published(owner)
    wrong = {field: "https://pictures.example/logo.png", "teamSize": -1}
    error = owners.error(token_of(owner), "update_my_company", slug=made.slug, changes=wrong)
    assert {field, "teamSize"} <= set(re.findall(r"\w+", error["message"]))
    [path, *_] = ADDRESS.findall(error["hint"])
    assert path == f"/manage/companies/{made.slug}/logo"
    assert is_page(path)
    beside = owners.error(token_of(owner), "update_my_company", slug=made.slug, changes={}, **{field: "x"})
    assert f"{BASE}/manage" in beside["hint"]


@pytest.mark.django_db
def test_a_picture_of_a_profile_leads_to_the_page_of_the_profile(owners, owner):
    profiles.create_profile(owner, profiles.ProfileChange({"name": "Ada Quay"}))
    error = owners.error(token_of(owner), "update_my_profile", changes={"picture": "https://pictures.example/a.png"})
    assert "/manage/profile" in ADDRESS.findall(error["hint"])


@pytest.mark.django_db
def test_credits_say_where_they_come_from(owners, owner):
    listed = owners.ask(token_of(owner), modern("tools/list")).result["tools"]
    [said] = [tool["description"] for tool in listed if tool["name"] == "get_credits"]
    assert "/manage/credits" in ADDRESS.findall(said)


@pytest.mark.django_db
def test_the_instructions_name_every_page_with_its_address(owners):
    said = owners.asker.server.offer.instructions
    found = ADDRESS.findall(said)
    assert {"/manage/companies/new", "/manage/credits", "/manage/documents", "/manage/tokens"} <= set(found)
    assert all(map(is_page, found))
    assert re.findall(r"(?<![\w:/.])/(?:manage|accounts)", said) == []


@pytest.mark.django_db
def test_errors_name_pages_by_full_addresses(owners, owner):
    error = owners.error(token_of(owner), "update_my_profile", changes={"bio": "A test."})
    assert ADDRESS.findall(error["hint"]) == ["/manage/profile"]
    refused = owners.ask(token_of(owner, ["profile:read"]), modern("tools/call", {"name": "get_credits"}))
    assert ADDRESS.findall(refused.json()["error"]["hint"]) == ["/manage/tokens"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See /manage.", f"See {BASE}/manage."),
        ("See /manage/tokens, or /accounts/data/.", f"See {BASE}/manage/tokens, or {BASE}/accounts/data/."),
        (f"See {BASE}/manage/tokens.", f"See {BASE}/manage/tokens."),
        ("GET /api/v1/people lists", f"GET {BASE}/api/v1/people lists"),
        ("Not /api/manage/mcp or /managed, a/manage.", "Not /api/manage/mcp or /managed, a/manage."),
    ],
)
def test_a_path_of_a_page_becomes_its_address(said, shown):
    assert with_addresses({"code": "conflict", "message": said, "hint": said}, BASE) == {
        "code": "conflict",
        "message": shown,
        "hint": shown,
    }
