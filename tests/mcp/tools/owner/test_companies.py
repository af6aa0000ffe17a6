"""The owner-scoped tool server: who is let in, what is shown, and the six tools of listings and profile."""

import json

import jsonschema
import msgspec
import pytest

from make import registry as make
from make.accounts import account, signed_in
from make.apps import App
from muniment.accounts import tokens
from muniment.accounts.models import Account, PersonalToken
from muniment.kernel import fairness
from muniment.kernel.actor import SCOPES
from muniment.kernel.fairness import Fairness
from muniment.kernel.ids import now
from muniment.mcp.tools.form_options import form_options
from muniment.oauth.models import Grant
from muniment.registry.company import listings
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry, Ownership
from muniment.registry.people import profiles
from muniment.schema.objects import registry_schema
from services.manage import BASE, manage
from services.mcp import check_types, fictional_registry, legacy, modern, tools_of_the_docs

pytestmark = pytest.mark.django_db
METADATA = f'resource_metadata="{BASE}/.well-known/oauth-protected-resource/api/manage/mcp"'
LIST = modern("tools/list")
READING = ["companies:read", "profile:read", "documents:read", "reports:read"]


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def stranger():
    return account("stranger@harbour.example")


def token_of(who, permitted=SCOPES, name="laptop"):
    return tokens.create_token(who.actor("web"), name, permitted=permitted).text


def refused(answer, status, challenge):
    assert answer.status == status, answer
    assert answer.headers["www-authenticate"] == challenge
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
    error = answer.json()["error"]
    assert error["code"] == "bad_request"
    assert "/manage/tokens" in error["hint"]
    return error


# ---------------------------------------------------------------------- who is let in


@pytest.mark.requirement("auth.missing")
@pytest.mark.requirement("auth.manage")
@pytest.mark.parametrize("request_", [LIST, legacy("initialize", {}, version=None), ([], b""), ([], b"not json")])
def test_without_a_token_the_answer_says_where_to_get_one(server, request_):
    """RFC 9728, 5.1; RFC 6750, 3: no error code when nothing was sent; all scopes, since step-up is broken."""
    headers, body = request_
    answer = server.asker.ask([("host", "testserver"), *headers], body, path="/api/manage/mcp")
    refused(answer, 401, f'Bearer {METADATA}, scope="{" ".join(SCOPES)}"')


@pytest.mark.requirement("auth.missing")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_the_token_is_checked_before_the_method(server, owner, method):
    headers = [("host", "testserver")]
    assert server.asker.ask(headers, method=method).status == 401
    own = [*headers, ("authorization", f"Bearer {token_of(owner)}")]
    assert server.asker.ask(own, method=method).status == 405


def test_a_preflight_needs_no_token(server):
    answer = server.asker.ask([("host", "testserver"), ("origin", "https://app.example")], method="OPTIONS")
    assert answer.status == 204
    assert "Authorization" in answer.headers["access-control-allow-headers"]


def _dead(owner):
    text = token_of(owner)
    PersonalToken.objects.filter(name="laptop").update(revoked_at=now())
    return text


def _expired(owner):
    text = token_of(owner)
    PersonalToken.objects.update(expires_at=now())
    return text


@pytest.mark.requirement("auth.missing")
@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "",
        "mun_pat_",
        "mun_pat_" + "A" * 36,
        "mun_at_" + "A" * 16 + "_" + "A" * 43,
        "mun_rt_" + "A" * 16 + "_" + "A" * 55,
        "x" * 100_000,
        "a b",
        "é",
        pytest.param(lambda owner: token_of(owner)[:-1], id="truncated"),
        pytest.param(lambda owner: token_of(owner) + "x", id="longer"),
        pytest.param(lambda owner: token_of(owner).lower(), id="lower case"),
        pytest.param(_dead, id="revoked"),
        pytest.param(_expired, id="expired"),
        pytest.param(lambda owner: App().connect(signed_in(owner))["refresh_token"], id="a refresh token"),
        pytest.param(lambda owner: App().code(signed_in(owner)), id="a code"),
    ],
)
def test_an_invalid_token_is_reported_as_such(server, owner, text):
    """RFC 6750, 3.1."""
    challenge = f'Bearer {METADATA}, scope="{" ".join(SCOPES)}", error="invalid_token"'
    refused(server.ask(text(owner) if callable(text) else text, LIST), 401, challenge)


@pytest.mark.parametrize("kind", ["Basic", "Token", "mun_pat", "bearerx"])
def test_only_the_bearer_scheme_is_taken(server, owner, kind):
    headers, body = LIST
    text = token_of(owner)
    assert server.asker.ask([*headers, ("authorization", f"{kind} {text}")], body).status == 401
    assert server.asker.ask([*headers, ("authorization", f"bEaReR  {text} ")], body).status == 200


def test_two_tokens_are_none(server, owner):
    headers, body = LIST
    both = [("authorization", f"Bearer {token_of(owner)}"), ("authorization", f"Bearer {token_of(owner)}")]
    assert server.asker.ask([*headers, *both], body).status == 401


@pytest.mark.requirement("auth.missing")
def test_a_token_in_the_address_is_refused_even_beside_a_good_one(server, owner):
    """RFC 6750, 2.3, which OAuth 2.1 drops."""
    text = token_of(owner)
    for query in (f"access_token={text}", "access_token=x", f"token={text}"):
        headers, body = LIST
        own = [*headers, ("authorization", f"Bearer {text}")]
        found = ask_with_query(server, own, body, query)
        refused(found, 401, f'Bearer {METADATA}, scope="{" ".join(SCOPES)}", error="invalid_request"')


def ask_with_query(server, headers, body, query):
    inner = server.asker.server

    async def with_query(scope, receive, send):
        await inner({**scope, "query_string": query.encode()}, receive, send)

    server.asker.server = with_query
    try:
        return server.asker.ask(headers, body)
    finally:
        server.asker.server = inner


@pytest.mark.requirement("auth.oauth")
def test_an_app_that_a_person_connected_is_let_in_until_disconnected(server, owner):
    app = App()
    given = app.connect(signed_in(owner))
    assert server.ask(given["access_token"], LIST).status == 200
    newer = app.refresh(given["refresh_token"]).json()
    assert server.ask(newer["access_token"], LIST).status == 200
    assert server.ask(given["access_token"], LIST).status == 200  # for the two minutes of the window
    signed_in(owner).post(f"/manage/tokens/apps/{Grant.objects.get().pk}/disconnect")
    server.doorkeeper.recheck()  # what the commit does, which a test's transaction never sees
    assert server.ask(newer["access_token"], LIST).status == 401


def test_a_token_bound_to_another_resource_is_refused(server, owner):
    """RFC 8707, 2."""
    given = App().connect(signed_in(owner))
    Grant.objects.update(resource="https://other.example/api/manage/mcp")
    assert server.ask(given["access_token"], LIST).status == 401


# ---------------------------------------------------------------------- what there is

_READS, _CHANGES_AGAIN, _AGAIN, _ADDS = (True, False, True), (False, True, True), (False, False, True), (False,) * 3
_CHANGES = (False, True, False)
THE_SIXTEEN = {
    "list_my_companies": ("companies:read", _READS),
    "get_my_company": ("companies:read", _READS),
    "update_my_company": ("companies:write", _CHANGES_AGAIN),
    "get_my_profile": ("profile:read", _READS),
    "update_my_profile": ("profile:write", _CHANGES_AGAIN),
    "list_company_form_options": ("companies:read", _READS),
    "list_my_documents": ("documents:read", _READS),
    "upload_document": ("documents:write", _ADDS),
    "create_document_upload": ("documents:write", _ADDS),
    "complete_document_upload": ("documents:write", _AGAIN),
    "delete_document": ("documents:write", _CHANGES_AGAIN),
    "get_credits": ("reports:read", _READS),
    "start_report_run": ("reports:run", _ADDS),
    "execute_report_run": ("reports:run", _AGAIN),
    "get_report_run_status": ("reports:read", _READS),
    "get_report": ("reports:read", _READS),
}
THE_TOOLS = THE_SIXTEEN | {
    "submit_for_review": ("companies:write", _CHANGES),
    "read_document": ("documents:read", _READS),
    "list_my_runs": ("reports:read", _READS),
    "cancel_report_run": ("reports:run", _CHANGES_AGAIN),
    "compare_reports": ("reports:read", _READS),
    "share_report": ("reports:run", _ADDS),
    "submit_application": ("reports:run", _CHANGES),
    "list_frameworks": ("reports:read", _READS),
    "get_framework": ("reports:read", _READS),
    "query": (None, _READS),
}
"""Scope, None for what is public; and whether a tool only reads, destroys, and may be called again."""


@pytest.mark.requirement("tools.manage-names")
def test_there_are_the_tools_of_the_contract_and_more_with_their_hints(server, owner):
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint")
    listed = server.ask(token_of(owner), LIST).result["tools"]
    found = {tool["name"]: tuple(tool["annotations"][hint] for hint in hints) for tool in listed}
    assert found == {name: given for name, (_, given) in THE_TOOLS.items()}
    assert set(found) <= tools_of_the_docs()
    assert not any(tool["annotations"]["openWorldHint"] for tool in listed)


@pytest.mark.requirement("tools.manage-names")
@pytest.mark.parametrize("scope", SCOPES)
def test_each_scope_alone_opens_its_tools_and_no_other(server, owner, scope):
    listed = server.ask(token_of(owner, [scope]), LIST).result["tools"]
    assert {tool["name"] for tool in listed} == {name for name, (held, _) in THE_TOOLS.items() if held in {scope, None}}


# ---------------------------------------------------------------------- scopes


@pytest.mark.requirement("oauth.scopes")
@pytest.mark.parametrize("request_", [LIST, legacy("tools/list")])
def test_only_the_tools_that_the_scopes_permit_are_listed(server, owner, request_):
    def names(permitted):
        return [tool["name"] for tool in server.ask(token_of(owner, permitted), request_).result["tools"]]

    reading = ["list_my_companies", "get_my_company", "get_my_profile", "list_company_form_options"]
    assert [name for name in names(READING) if name in reading] == reading
    assert not {"update_my_company", "update_my_profile"} & set(names(READING))
    assert set(names(["profile:write"])) == {"update_my_profile", "query"}
    assert set(names(SCOPES)) >= {*reading, "update_my_company", "update_my_profile"}


@pytest.mark.requirement("oauth.scopes")
@pytest.mark.requirement("auth.missing")
@pytest.mark.parametrize("era", [modern, legacy])
def test_a_tool_that_the_scopes_hide_answers_403_and_names_the_scope(server, owner, era):
    """RFC 6750, 3.1, insufficient_scope."""
    call = era("tools/call", {"name": "update_my_company", "arguments": {"slug": "x", "changes": {}}})
    answer = server.ask(token_of(owner, READING), call)
    refused(answer, 403, f'Bearer error="insufficient_scope", scope="companies:write", {METADATA}')


@pytest.mark.requirement("mcp.size")
def test_what_a_model_sees_of_the_tools_stays_under_18_kb_and_the_whole_list_under_50_kb(server, owner):
    listed = server.ask(token_of(owner), LIST)
    visible = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in listed.result["tools"]]
    assert len(msgspec.json.encode(visible)) <= 18_000
    assert len(listed.body) <= 50_000


def test_no_schema_lists_types_beside_entries_members_or_choices(server, owner):
    check_types(server.ask(token_of(owner), LIST).result["tools"])


def test_every_fault_of_a_change_is_reported_at_once(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    wrong = {"themes": ["a", True], "teamSize": -1, "website": "x", "socials": {"email": [5]}}
    wrong["positions"] = [{"title": "x"}]
    error = server.error(text, "update_my_company", slug=made.slug, changes=wrong)
    for name in ("themes[1]", "teamSize", "website", "socials.email", "positions[0].person"):
        assert name in error["message"]
    error = server.error(text, "update_my_company", slug=made.slug, changes={"state": "published", "themes": {}})
    assert {"state", "themes"} <= {part.split(" ")[0] for part in error["message"].split("; ")}
    assert error["hint"].startswith("Editable fields: name, symbol")
    error = server.error(text, "update_my_company", slug=made.slug, changes={"descripton": "x", "funding_round": {}})
    assert error["hint"].startswith("Did you mean description or fundingRound? Editable fields: name, symbol")


def test_every_tool_is_annotated_with_what_it_does(server, owner):
    found = {tool["name"]: tool for tool in server.ask(token_of(owner), LIST).result["tools"]}
    for name, tool in found.items():
        hints = tool["annotations"]
        assert hints["openWorldHint"] is False
        assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        if name.startswith(("list_", "get_")):
            assert hints["readOnlyHint"] is True
        assert tool["title"]
        assert tool["description"]
    assert found["update_my_company"]["annotations"]["destructiveHint"] is True


# ---------------------------------------------------------------------- listings


@pytest.mark.requirement("tools.manage.companies")
@pytest.mark.requirement("owners.edits")
def test_an_owner_finds_reads_and_changes_a_listing_and_it_is_public_at_once(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"), description="Before.")
    [found] = server.data(text, "list_my_companies")
    assert set(found) == {"id", "name", "state", "role", "version", "updatedAt", "pendingChanges", "missing"}
    assert (found["id"], found["state"], found["pendingChanges"]) == (made.slug, "published", {})
    whole = server.data(text, "get_my_company", slug=made.slug)
    assert set(whole) == {
        *("company", "proposals", "positions", "capTable", "fundingRounds"),
        *("state", "version", "pendingChanges", "publicUrl"),
    }
    assert server.data(text, "get_my_company", slug=f"{BASE}/manage/companies/{made.slug}") == whole
    full = server.data(text, "get_my_company", slug=made.slug, detail="full")
    assert set(full) == {*whole, "distribution", "reviewerNote"}
    assert set(full["company"]) == {*whole["company"], "body", "socials", "address", "updatedAt"}
    assert whole["publicUrl"] == f"{BASE}/companies/{made.slug}"
    changes = {"description": "After.", "socials": {"email": "us@harbour.example"}}
    tried = server.data(text, "update_my_company", slug=made.slug, changes=changes, dryRun=True)
    assert tried["diff"]["description"] == {"before": "Before.", "after": "After."}
    assert make.document("company", made.slug)["company"]["description"] == "Before."
    done = server.data(text, "update_my_company", slug=made.slug, changes=changes, expectedVersion=whole["version"])
    assert done["diff"]["socials"] == {"before": {"email": None}, "after": {"email": "us@harbour.example"}}
    assert set(done) == {"version", "applied", "awaitingReview", "diff", "undo"}
    assert set(tried) == {*done, "dryRun"} - {"undo"}
    assert tried["dryRun"] is True
    assert sorted(done["applied"]) == ["description", "socials"]
    assert done["version"] == whole["version"] + 1
    shown = make.document("company", made.slug)["company"]
    assert shown["description"] == "After."
    assert shown["socials"]["email"] == "us@harbour.example"


@pytest.mark.requirement("tools.manage.companies")
@pytest.mark.requirement("owners.edits")
def test_history_names_the_token_and_the_page_reverts_it(server, owner):
    made = make.published(owner.actor("web"), description="Before.")
    server.data(token_of(owner), "update_my_company", slug=made.slug, changes={"description": "After."})
    entry = HistoryEntry.objects.filter(company__slug=made.slug, action="updated").get()
    assert (entry.via, entry.credential, entry.account_id) == ("token", "laptop", owner.pk)
    listings.revert_company(owner.actor("web"), made.slug, entry.pk)
    assert make.document("company", made.slug)["company"]["description"] == "Before."


@pytest.mark.requirement("owners.edits")
def test_an_agent_reads_the_history_and_reverts_a_change(server, owner):
    text = token_of(owner)
    slug = make.published(owner.actor("web"), industry="Energy").slug
    for industry in ("Land", "Health"):
        server.data(text, "update_my_company", slug=slug, changes={"industry": industry})
    found = server.data(text, "get_my_company", slug=slug, parts=["history"])
    assert "company" not in found
    newest, older = found["history"][:2]
    assert (newest["action"], newest["fields"], newest["via"]) == ("updated", ["industry"], "laptop")
    page = server.data(text, "get_my_company", slug=slug, parts=["history"], offset=1, limit=1)
    assert page["history"] == [older]
    assert page["notShown"]["history"]["next"] == {"parts": ["history"], "offset": 2}
    revert = {"slug": slug, "revert": older["id"]}
    error = server.error(text, "update_my_company", **revert)
    assert error["message"] == "Later changes touched the same fields: industry."
    assert "overwrite" in error["hint"]
    tried = server.data(text, "update_my_company", **revert, dryRun=True)
    assert (tried["dryRun"], tried["diff"]) == (True, {"industry": {"before": "Health", "after": "Energy"}})
    assert "dryRun" not in server.data(text, "update_my_company", **revert, overwrite=True)
    assert make.document("company", slug)["company"]["industry"] == "Energy"


@pytest.mark.requirement("owners.edits")
@pytest.mark.parametrize("given", [{}, {"changes": {"industry": "Land"}, "revert": 1}])
def test_an_update_either_changes_or_reverts(server, owner, given):
    slug = make.published(owner.actor("web"), industry="Energy").slug
    error = server.error(token_of(owner), "update_my_company", slug=slug, **given)
    assert error["message"] == "The call needs either changes or revert."
    assert make.document("company", slug)["company"]["industry"] == "Energy"


@pytest.mark.requirement("owners.edits")
def test_a_stranger_reverts_nothing(server, owner, stranger):
    text = token_of(stranger)
    slug = make.published(owner.actor("web"), industry="Energy").slug
    own = make.published(stranger.actor("web")).slug
    server.data(token_of(owner), "update_my_company", slug=slug, changes={"industry": "Land"})
    entry = HistoryEntry.objects.get(action="updated").pk
    for target in (slug, own):
        assert server.error(text, "update_my_company", slug=target, revert=entry)["code"] == "not_found"
    assert server.error(text, "get_my_company", slug=slug, parts=["history"])["code"] == "not_found"
    assert make.document("company", slug)["company"]["industry"] == "Land"


@pytest.mark.requirement("owners.edits")
def test_a_pending_rename_that_an_edit_withdraws_is_named(server, owner):
    text = token_of(owner)
    slug = make.published(owner.actor("web"), name="Old Name").slug
    server.data(text, "update_my_company", slug=slug, changes={"name": "New Name"})
    changes = {"name": "Old Name", "industry": "Land"}
    for dry_run in (True, False):
        done = server.data(text, "update_my_company", slug=slug, changes=changes, dryRun=dry_run)
        assert (done["applied"], done["awaitingReview"], done["withdrawn"]) == (["industry"], [], ["name"])
    assert server.data(text, "get_my_company", slug=slug)["pendingChanges"] == {}


def test_history_names_the_app(server, owner):
    made = make.published(owner.actor("web"))
    given = App().connect(signed_in(owner))
    server.data(given["access_token"], "update_my_company", slug=made.slug, changes={"description": "By an app."})
    entry = HistoryEntry.objects.filter(company__slug=made.slug, action="updated").get()
    assert (entry.via, entry.credential) == ("app", "Harbour Agent")


@pytest.mark.requirement("tools.manage.companies")
@pytest.mark.requirement("owners.edits")
def test_a_change_that_needs_review_waits(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    done = server.data(text, "update_my_company", slug=made.slug, changes={"name": "Another name", "body": "Now."})
    assert (done["applied"], done["awaitingReview"]) == (["body"], ["name"])
    assert server.data(text, "list_my_companies")[0]["pendingChanges"] == {"name": "Another name"}
    assert make.document("company", made.slug)["company"]["name"] == made.name


@pytest.mark.requirement("tools.manage.companies")
@pytest.mark.requirement("owners.edits")
def test_a_lost_race_is_reported_with_a_hint(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    version = server.data(text, "get_my_company", slug=made.slug)["version"]
    server.data(text, "update_my_company", slug=made.slug, changes={"description": "First."}, expectedVersion=version)
    error = server.error(
        text, "update_my_company", slug=made.slug, changes={"description": "Second."}, expectedVersion=version
    )
    assert error["code"] == "bad_request"
    assert f"expectedVersion {version + 1}" in error["hint"]
    server.data(
        text, "update_my_company", slug=made.slug, changes={"description": "Second."}, expectedVersion=version + 1
    )


@pytest.mark.requirement("manage.owned-only")
@pytest.mark.requirement("auth.not-owned")
def test_a_strangers_listing_answers_as_one_that_is_missing(server, owner, stranger):
    made = make.published(owner.actor("web"))
    text = token_of(stranger)
    assert server.data(text, "list_my_companies") == []
    for name, more in (("get_my_company", {}), ("update_my_company", {"changes": {"description": "Mine."}})):
        theirs = server.error(text, name, slug=made.slug, **more)
        unknown = server.error(text, name, slug="missing", **more)
        assert theirs["code"] == "not_found"
        assert theirs["message"].replace(made.slug, "X") == unknown["message"].replace("missing", "X")
        assert theirs["hint"] == unknown["hint"]


@pytest.mark.requirement("manage.owned-only")
def test_a_reviewers_token_reaches_no_listing_of_others(server, owner):
    made = make.published(owner.actor("web"))
    reviewer = Account.objects.create_user("reviewer@harbour.example", role="reviewer")
    text = token_of(reviewer)
    assert server.error(text, "get_my_company", slug=made.slug)["code"] == "not_found"
    assert server.error(text, "update_my_company", slug=made.slug, changes={})["code"] == "not_found"


@pytest.mark.parametrize(
    "changes",
    [
        *({"id": "x"}, {"slug": "x"}, {"state": "published"}, {"owner": 1}, {"version": 99}, {"published": True}),
        *({"createdAt": "May 2020"}, {"listedAt": "2020-05-01"}, {"raising": True}, {"extra": {}}, {"icon": "/x.png"}),
        *({"updatedAt": "2020-05-01T00:00:00Z"}, {"reviewerNote": "fine"}, {"__class__": "x"}, {"pk": 1}),
    ],
)
def test_a_name_that_is_not_an_editable_field_cannot_be_set(server, owner, changes):
    """Mass assignment."""
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    before = make.document("company", made.slug)
    error = server.error(text, "update_my_company", slug=made.slug, changes={"description": "x", **changes})
    assert error["code"] == "bad_request"
    assert next(iter(changes)) in error["message"]
    assert make.document("company", made.slug) == before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "slug"),
        ({"slug": "x"}, "changes"),
        ({"slug": "", "changes": {}}, "slug"),
        ({"slug": [7], "changes": {}}, "slug"),
        ({"slug": "x", "changes": []}, "changes"),
        ({"slug": "x", "changes": {"themes": "one, two"}}, "themes"),
        ({"slug": "x", "changes": {"socials": {"myspace": "x"}}}, "myspace"),
        ({"slug": "x", "changes": {"name": None}}, "name"),
        ({"slug": "x", "changes": {}, "expectedVersion": 0}, "expectedVersion"),
        ({"slug": "x", "changes": {}, "dryRun": "yes"}, "dryRun"),
        ({"slug": "x", "changes": {}, "force": True}, "force"),
        ({"slug": "x\0", "changes": {}}, ""),
    ],
)
def test_arguments_that_miss_the_schema_are_named(server, owner, arguments, named):
    if arguments.get("slug") == "x":
        arguments = {**arguments, "slug": make.published(owner.actor("web")).slug}
    error = server.error(token_of(owner), "update_my_company", **arguments)
    assert error["code"] in {"bad_request", "not_found"}
    assert named in error["message"]


def test_a_huge_listing_fits_an_answer(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    big = {"body": "x" * 50_000, "capTable": [{"address": f"0x{n:040}", "name": f"Holder {n}"} for n in range(2_000)]}
    done = server.ask(
        text,
        modern("tools/call", {"name": "update_my_company", "arguments": {"slug": made.slug, "changes": big}}),
    )
    assert len(json.dumps(done.result["structuredContent"])) <= 61_000
    assert done.result["structuredContent"]["data"]["diff"]["capTable"]["addedTotal"] == 2_000
    whole = server.data(text, "get_my_company", slug=made.slug)
    assert len(json.dumps(whole)) <= 61_000
    assert whole["capTableTotal"] == 2_000


def test_every_answer_is_what_its_schema_says(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    profiles.create_profile(owner.actor("web"), profiles.ProfileChange(name="Ada Quay"))
    found = {tool["name"]: tool for tool in server.ask(text, LIST).result["tools"]}
    arguments = {
        "list_my_companies": {},
        "get_my_company": {"slug": made.slug},
        "update_my_company": {"slug": made.slug, "changes": {"description": "x"}},
        "get_my_profile": {},
        "update_my_profile": {"changes": {"bio": "x"}},
        "list_company_form_options": {},
    }
    for name, given in arguments.items():
        jsonschema.validate(server.call(text, name, **given), found[name]["outputSchema"])
    jsonschema.validate(server.call(text, "get_my_company", slug="none"), found["get_my_company"]["outputSchema"])


def test_the_form_options_are_the_public_ones(server, owner):
    assert server.data(token_of(owner), "list_company_form_options") == form_options(registry_schema("USD"))


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.requirement("mcp.structured", "mcp.size")
def test_every_answer_about_a_real_registry_is_what_its_schema_says(server, owner, sample_data):
    import_registry(sample_data)
    slugs = list(Company.objects.order_by("pk").values_list("slug", flat=True))
    owned = [Ownership(company_id=key, account=owner) for key in Company.objects.values_list("pk", flat=True)]
    Ownership.objects.bulk_create(owned)
    text, page = token_of(owner), 1
    while page:
        page = server.call(text, "list_my_companies", page=page, pageSize=100)["nextPage"]
    largest = ["optimism", "cosmoshub", "ethereum"]
    for slug in [*largest, *slugs[::4]]:
        server.data(text, "get_my_company", slug=slug)
    for slug in [*largest, *slugs[::40]]:
        changes = {"description": "Another.", "name": "Another", "socials": {"email": "us@harbour.example"}}
        server.data(text, "update_my_company", slug=slug, changes=changes, dryRun=True)
    server.data(text, "get_my_profile")


# ---------------------------------------------------------------------- review


def test_a_draft_is_submitted_for_review_and_taken_back(server, owner, stranger):
    listing, token = make.draft(owner.actor("web")), token_of(owner)
    sent = server.data(token, "submit_for_review", slug=listing.slug, expectedVersion=listing.version)
    assert (sent["id"], sent["state"]) == (listing.slug, "submitted")
    again = server.error(token, "submit_for_review", slug=listing.slug)
    assert "is submitted and cannot be submitted" in again["message"]
    late = server.error(token, "submit_for_review", slug=listing.slug, withdraw=True, expectedVersion=listing.version)
    assert "version" in late["message"]
    assert server.data(token, "submit_for_review", slug=listing.slug, withdraw=True)["state"] == "draft"
    refused = server.error(token_of(stranger), "submit_for_review", slug=listing.slug)
    assert refused["code"] == "not_found"


def test_an_update_names_the_call_that_undoes_it_and_a_dry_run_none(server, owner):
    text, slug = token_of(owner), make.published(owner.actor("web"), description="Before.").slug
    asked = {"slug": slug, "changes": {"description": "After.", "name": "Waits for a reviewer"}}
    assert "undo" not in server.data(text, "update_my_company", **asked, dryRun=True)
    undo = server.data(text, "update_my_company", **asked)["undo"]
    assert undo["tool"] == "update_my_company"
    again = server.data(text, undo["tool"], **undo["arguments"])["undo"]
    assert server.data(text, "get_my_company", slug=slug)["company"]["description"] == "Before."
    server.data(text, again["tool"], **again["arguments"])
    assert server.data(text, "get_my_company", slug=slug)["company"]["description"] == "After."
    waits = server.data(text, "update_my_company", slug=slug, changes={"name": "Another name"})
    assert (waits["applied"], "undo" in waits) == ([], False)


def test_a_change_of_the_profile_names_the_call_that_undoes_it(server, owner):
    text = token_of(owner)
    profiles.create_profile(owner.actor("web"), profiles.ProfileChange({"name": "Ada Moss", "bio": "Before."}))
    undo = server.data(text, "update_my_profile", changes={"bio": "After."})["undo"]
    assert server.data(text, undo["tool"], **undo["arguments"])["person"]["bio"] == "Before."


ADDRESS = {"address_1": "Turbine Yard", "city": "Tarnwick", "country": "GB"}


@pytest.mark.parametrize(
    ("address", "is_noted"),
    [
        ([{"address_1": "4 Slip Street", "city": "Harrow Bay"}], True),
        ([{"address_1": "4 Slip Street", "country": "FR"}], False),
        ({"add": [{"address_1": "4 Slip Street", "country": "GB"}]}, False),
    ],
)
def test_an_address_that_loses_its_country_is_noted(server, owner, address, is_noted):
    text, slug = token_of(owner), make.published(owner.actor("web"), address=[ADDRESS]).slug
    done = server.data(text, "update_my_company", slug=slug, changes={"address": address}, dryRun=True)
    assert [("GB" in each) for each in done.get("notes", [])] == ([True] if is_noted else [])


def test_an_address_that_is_edited_by_its_id_keeps_its_country(server, owner):
    text, slug = token_of(owner), make.published(owner.actor("web"), address=[ADDRESS]).slug
    (row,) = server.data(text, "get_my_company", slug=slug)["company"]["address"]
    changes = {"address": {"set": [{"id": row["id"], "address_1": "4 Slip Street"}]}}
    assert "notes" not in server.data(text, "update_my_company", slug=slug, changes=changes)
    assert server.data(text, "get_my_company", slug=slug)["company"]["address"][0]["country"] == "GB"


def test_the_list_says_what_each_listing_lacks(server, owner):
    text, actor = token_of(owner), owner.actor("web")
    bare = make.draft(actor, name="Bare", type="DAO", socials={"email": None}, address=[{"id": "a"}]).slug
    full = make.draft(
        actor,
        name="Full",
        type="DAO",
        industry="Energy",
        themes=["coast"],
        description="A.",
        body="B.",
        website="https://a.example",
        socials={"email": "a@a.example"},
        address=[ADDRESS],
        positions=[{"title": "Chair", "person": {"name": "Ada"}}],
    ).slug
    Company.objects.filter(slug=full).update(icon="/media/a.png")
    found = {each["id"]: each["missing"] for each in server.data(text, "list_my_companies")}
    assert found[full] == []
    assert found[bare] == [
        *("industry", "themes", "description", "body", "website", "socials", "address", "positions", "logo")
    ]
    assert server.data(text, "list_my_companies", fields=["missing"])[0].keys() == {"id", "missing"}


def test_the_format_of_dates_is_in_the_schema(server, owner):
    listed = {tool["name"]: tool for tool in server.ask(token_of(owner), LIST).result["tools"]}
    changes = listed["update_my_company"]["inputSchema"]["properties"]["changes"]["properties"]
    row = changes["proposals"]["anyOf"][0]["properties"]["add"]["items"]["properties"]
    assert row["endDate"]["format"] == "date"


# ---------------------------------------------------------------------- what schemas leave out


def _members(schema):
    """Return the members of an object schema, of all its alternatives."""
    alternatives = schema.get("anyOf", [schema])
    return {name: member for each in alternatives for name, member in each.get("properties", {}).items()}


def test_what_the_schema_of_a_change_leaves_out_is_taken_as_it_says(server, owner):
    """Null beside texts, lists and members of rows, the networks and the ids of added rows are left out."""
    listed = {tool["name"]: tool for tool in server.ask(token_of(owner), LIST).result["tools"]}
    fields = _members(listed["update_my_company"]["inputSchema"]["properties"]["changes"])
    texts = [name for name, schema in fields.items() if schema.get("type") == "string" and name != "name"]
    lists = [name for name, schema in fields.items() if schema.get("type") == "array" or "add" in _members(schema)]
    assert {"symbol", "treasury", "description", "website"} < set(texts)
    assert {"themes", "positions", "capTable"} < set(lists)
    assert '"null"' not in json.dumps([fields[name] for name in lists])

    text = token_of(owner)
    made = make.published(owner.actor("web"))
    first = {"title": "Pilot", "person": {"name": "Ada Byron"}}
    filled = {"symbol": "HARB", "treasury": "$5M", "description": "Dredges.", "positions": [first], "themes": ["a"]}
    server.call(text, "update_my_company", slug=made.slug, changes=filled)
    empty = {**dict.fromkeys(texts, ""), **{name: [] for name in lists if name in filled}}
    dry = {"slug": made.slug, "dryRun": True, "expectedTotals": {"positions": 1}}
    by_null = server.data(text, "update_my_company", changes=dict.fromkeys(empty), **dry)
    by_empty = server.data(text, "update_my_company", changes=empty, **dry)
    assert by_empty["diff"] == by_null["diff"]
    assert by_empty["diff"].keys() >= filled.keys() - {"symbol"}

    networks = fields["socials"]["anyOf"][0]
    assert "properties" not in networks
    assert "tiktok" in networks["description"]
    server.call(text, "update_my_company", slug=made.slug, changes={"socials": {"tiktok": "harbour"}})
    assert server.data(text, "get_my_company", slug=made.slug)["company"]["socials"]["tiktok"] == "harbour"
    assert "id" not in _members(_members(fields["positions"])["add"]["items"])
    assert "id" in _members(_members(fields["proposals"])["add"]["items"])  # whose ids owners may choose


# ---------------------------------------------------------------------- statements


def test_a_statement_reads_what_is_public_and_is_charged_to_the_account(owner, stranger, tmp_path):
    draft = make.draft(owner.actor("web"), name="Hidden Harbour")
    before = fairness.current()
    limits = fairness.use(Fairness(rate=600, burst=100))
    try:
        with fictional_registry(tmp_path / "p.sqlite3") as reader, manage(reader=reader) as own:
            text = token_of(owner, ["profile:read"])
            found = own.call(text, "query", sql="SELECT count(*) FROM companies WHERE slug <> :no", params={"no": ""})
            assert (found["columns"], found["rows"]) == (["count(*)"], [[62]])
            asked = "SELECT slug FROM companies WHERE name = 'Hidden Harbour' OR slug = :slug"
            assert own.call(text, "query", sql=asked, params={"slug": draft.slug})["rows"] == []
            assert "There is no table people2" in own.error(text, "query", sql="SELECT * FROM people2")["message"]
            limits.statements.charge(f"account {owner.pk}", 60_000)
            refused_ = own.error(text, "query", sql="SELECT 1")
            assert (refused_["code"], refused_["message"][:15]) == ("bad_request", "Your statements")
            other = token_of(stranger)
            assert own.call(other, "query", sql="SELECT 1")["rows"] == [[1]]
    finally:
        fairness.use(before)


def test_a_statement_waits_for_the_registry_to_be_readable(server, owner):
    assert server.error(token_of(owner), "query", sql="SELECT 1")["message"] == (
        "The registry cannot be read at the moment."
    )
