"""Import: what people changed since the last import is kept and reported, and what was unlisted stays so."""

from typing import Any

import pytest

from make.registry import SPECIFICATION, agent_of, document, lines, owner, published, reviewer
from muniment.kernel.actor import COMMAND
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner, close_funding_round, revert_company, update_company
from muniment.registry.exchange.importer import ImportOptions, Summary, import_registry
from muniment.registry.exchange.reading import RowFault
from muniment.registry.frameworks.authoring import author_framework, update_framework
from muniment.registry.models import (
    Company,
    Framework,
    FrameworkSpecification,
    HistoryEntry,
    ImportMemory,
    Person,
    PositionRequest,
    Proposal,
)
from muniment.registry.people.positions import answer_positions, list_positions
from muniment.registry.people.profiles import ProfileChange, join_person, unlist_profile, update_profile
from muniment.registry.review.workflow import relist_company, unlist_company

pytestmark = pytest.mark.django_db

KEPT = "was changed here since the last import and is kept; --overwrite replaces it"


@pytest.fixture
def bring(tmp_path):
    """Import rows of companies; return the summary and the warnings."""

    def run(*rows: Any, kind: str = "companies", **options: Any) -> tuple[Summary, list[RowFault]]:
        warnings: list[RowFault] = []
        path = lines(tmp_path / f"{kind}.jsonl", *rows)
        summary = import_registry(path, ImportOptions(**options), tell=warnings.append, warn=warnings.append)
        return summary, warnings

    return run


def company(slug: str = "acme", /, **members: Any) -> dict[str, Any]:
    return {"id": slug, "name": "Acme", **members}


def owner_of(slug: str):
    me = owner()
    add_owner(COMMAND, slug, me.account_id)
    return me


def edit(me, **fields: Any) -> None:
    update_company(me, "acme", CompanyChange(**fields))


def shown(member: str) -> Any:
    data = document("company", "acme")
    return data[member] if member in data else data["company"].get(member)


ROW = {
    "company": company(
        description="Of the file.",
        treasury="$1.5M",
        themes=["Water"],
        address=[{"city": "Port"}],
        socials={"twitter": "@acme"},
        motto="File first",
    ),
    "distribution": {"method": "sale", "pools": [{"name": "Team", "percentage": 60}]},
    "positions": [
        {"title": "Chair", "person": {"name": "Ada Moss"}},
        {"title": "Clerk", "person": {"name": "Bo Reef"}},
        {"title": "Cook", "person": {"name": "Cy Vale"}},
    ],
    "proposals": [{"id": "1", "title": "Plant willows"}, {"id": "2", "title": "Dig wells"}],
    "capTable": [{"address": "0x1", "percentage": 10}, {"address": "0x2", "percentage": 20}],
    "fundingRounds": [{"name": "Seed", "target": "$2M", "opened": "2024-01-01"}],
}


EDITS: list[tuple[dict[str, Any], str]] = [
    ({"description": "Of the owner."}, "company.description"),
    ({"description": None}, "company.description"),
    ({"treasury": "$1,499,999.99"}, "company.treasury"),
    ({"treasuryAmount": {"amount": "1499999.99", "currency": "USD"}}, "company.treasury"),
    ({"themes": ["Water", "Wind"]}, "company.themes"),
    ({"website": "https://acme.example/"}, "company.website"),
    ({"socials": {"twitter": "@other"}}, "company.socials"),
    ({"address": {"add": [{"city": "Bay"}]}}, "company.address"),
    ({"distribution": {"method": "airdrop"}}, "distribution"),
    ({"distribution": {"pools": {"add": [{"name": "Community", "percentage": 10}]}}}, "distribution"),
    ({"positions": {"add": [{"title": "Cook", "person": {"name": "Di Fenn"}}]}}, "positions"),
    ({"proposals": {"remove": ["1"]}}, "proposals"),
    ({"capTable": {"add": [{"address": "0x3", "percentage": 5}]}}, "capTable"),
    ({"fundingRound": {"target": "$3M"}}, "fundingRounds"),
]


@pytest.mark.requirement("import.upsert")
@pytest.mark.parametrize(("fields", "path"), EDITS, ids=lambda each: str(each)[:60])
def test_an_owners_edit_stays_and_is_reported_with_file_line_and_field(bring, fields, path):
    bring(ROW)
    edit(owner_of("acme"), **fields)
    edited = document("company", "acme")
    for _ in range(2):
        entries = HistoryEntry.objects.count()
        summary, warnings = bring(ROW)
        assert warnings == [("companies.jsonl", 1, path, KEPT)]
        assert "1 edited fields kept" in str(summary)
        assert (document("company", "acme"), HistoryEntry.objects.count()) == (edited, entries)
        # The history has the whole list before an edit, save for the funding rounds.
        assert ImportMemory.objects.exists() == (path == "fundingRounds")


@pytest.mark.parametrize(("fields", "path"), EDITS, ids=lambda each: str(each)[:60])
def test_overwrite_brings_the_file_and_the_next_import_has_nothing_to_report(bring, fields, path):
    bring(ROW)
    me = owner_of("acme")
    of_file = without_times(document("company", "acme"))
    edit(me, **fields)
    assert bring(ROW, overwrite=True)[1] == []
    assert without_times(document("company", "acme")) == of_file
    summary, warnings = bring(ROW)
    assert (summary.counts["companies"].unchanged, warnings) == (1, [])


def without_times(data: dict[str, Any]) -> dict[str, Any]:
    del data["company"]["updatedAt"]
    return data


def test_the_file_changes_every_other_field_and_row(bring):
    bring(ROW)
    me = owner_of("acme")
    positions = shown("positions")
    edit(
        me,
        description="Of the owner.",
        positions={
            "set": [{"id": positions[0]["id"], "title": "President"}],
            "remove": [positions[2]["id"]],
            "add": [{"title": "Treasurer", "person": {"name": "Di Fenn"}}],
        },
    )
    later = {
        **ROW,
        "company": {**ROW["company"], "description": "Later.", "treasury": "$2M", "motto": "Later"},
        "positions": [
            *({**ROW["positions"][n], "since": 2020} for n in (0, 1, 2)),
            {"title": "Porter", "person": {"name": "Eli Marsh"}},
        ],
    }
    _, warnings = bring(later)
    assert [each.field for each in warnings] == ["positions", "company.description"]
    assert (shown("description"), shown("treasury"), shown("motto")) == ("Of the owner.", "$2M", "Later")
    rows = [(row["title"], row["person"]["name"], row.get("since")) for row in shown("positions")]
    expected = [
        ("President", "Ada Moss", None),
        ("Clerk", "Bo Reef", 2020),
        ("Treasurer", "Di Fenn", None),
        ("Porter", "Eli Marsh", None),
    ]
    assert rows == expected
    entries = HistoryEntry.objects.count()
    _, warnings = bring(later)
    assert [each.field for each in warnings] == ["positions", "company.description"]
    assert HistoryEntry.objects.count() == entries
    without_clerk = {**later, "positions": [row for row in later["positions"] if row["title"] != "Clerk"]}
    bring(without_clerk)
    assert [row["title"] for row in shown("positions")] == ["President", "Treasurer", "Porter"]


def test_a_field_that_the_file_brought_since_is_the_imports_again(bring):
    bring({"company": company(description="Of the file.")})
    edit(owner_of("acme"), description="Of the owner.")
    assert bring({"company": company(description="Of the owner.")})[1] == []
    assert ImportMemory.objects.count() == 1
    assert bring({"company": company(description="Later.")})[1] == []
    assert shown("description") == "Later."
    assert bring({"company": company(description="Last.")})[1] == []
    assert shown("description") == "Last."


def test_an_edit_that_was_undone_is_no_edit(bring):
    bring({"company": company(description="Of the file.")})
    me = owner_of("acme")
    edit(me, description="Of the owner.")
    made = HistoryEntry.objects.latest("pk")
    revert_company(me, "acme", made.pk)
    assert bring({"company": company(description="Later.")})[1] == []
    assert shown("description") == "Later."


def test_an_edit_after_an_import_of_another_value_is_kept_again(bring):
    bring({"company": company(description="Of the file.")})
    me = owner_of("acme")
    edit(me, description="Of the owner.")
    bring({"company": company(description="Later.")}, overwrite=True)
    assert bring({"company": company(description="Last.")})[1] == []
    edit(agent_of(me), description="Of the agent.")
    assert [each.field for each in bring({"company": company(description="Last.")})[1]] == ["company.description"]
    assert shown("description") == "Of the agent."


def test_a_request_that_waits_for_a_reviewer_is_no_edit(bring):
    bring({"company": company(type="DAO")})
    edit(owner_of("acme"), type="Company")
    assert bring({"company": company(type="Nonprofit")})[1] == []
    assert shown("type") == "Nonprofit"


def test_rows_that_share_an_id_are_kept_as_one_list(bring):
    row = {"company": company(), "proposals": [{"id": "1", "title": "A"}, {"id": "2", "title": "B"}]}
    bring(row)
    edit(owner_of("acme"), proposals={"add": [{"id": "3", "title": "C"}]})
    Proposal.objects.filter(rank=1).update(document={"id": "1", "title": "B"})  # as earlier versions imported it
    row["proposals"].append({"id": "4", "title": "D"})
    assert [each.field for each in bring(row)[1]] == ["proposals"]
    assert [each.document["title"] for each in Proposal.objects.order_by("rank")] == ["A", "B", "C"]


def test_a_dry_run_tells_what_is_kept_and_remembers_nothing(bring):
    bring({"company": company(description="Of the file.")})
    edit(owner_of("acme"), description="Of the owner.")
    _, warnings = bring({"company": company(description="Later.")}, dry_run=True)
    assert [each.field for each in warnings] == ["company.description"]
    assert not ImportMemory.objects.exists()


@pytest.mark.parametrize("state", ["unlisted", "rejected", "submitted", "changes_requested"])
def test_a_takedown_stays_until_relist(bring, state):
    bring({"company": company()})
    unlist_company(COMMAND, "acme", "Not theirs.")
    Company.objects.update(state=state)
    _, warnings = bring({"company": company(description="Later.")})
    stays = f"'acme' is {state.replace('_', ' ')} and stays so; --relist publishes it"
    assert warnings == [("companies.jsonl", 1, "", stays)]
    assert (Company.objects.get().state, Company.objects.get().description) == (state, "Later.")
    assert document("company", "acme") is None
    assert bring({"company": company(description="Later.")}, relist=True)[1] == []
    assert shown("description") == "Later."


def test_what_a_reviewer_relisted_is_public(bring):
    bring({"company": company()})
    unlist_company(reviewer(), "acme", "Not theirs.")
    relist_company(reviewer(), "acme")
    assert bring({"company": company(description="Later.")})[1] == []
    assert shown("description") == "Later."


def test_a_profile_keeps_what_its_owner_changed(bring):
    bring({"slug": "ada", "name": "Ada Moss", "bio": "Sails."}, kind="people")
    me = owner()
    join_person(COMMAND, "ada", me.account_id)
    update_profile(me, ProfileChange(bio="Rows."))
    _, warnings = bring({"slug": "ada", "name": "Ada M. Moss", "bio": "Sails."}, kind="people")
    assert warnings == [("people.jsonl", 1, "bio", KEPT)]
    found = document("person", "ada")
    assert (found["name"], found["bio"]) == ("Ada M. Moss", "Rows.")
    bring({"slug": "ada", "name": "Ada M. Moss", "bio": "Sails."}, kind="people", overwrite=True)
    assert document("person", "ada")["bio"] == "Sails."


def test_an_import_does_not_publish_a_private_profile(bring):
    Person.objects.create(slug="ada", name="Ada Moss", account_id=owner().account_id)
    _, warnings = bring({"slug": "ada", "name": "Ada Moss", "bio": "Sails."}, kind="people", relist=True)
    assert [each.reason for each in warnings] == ["'ada' is a private profile and stays so; its owner can publish it"]
    assert document("person", "ada") is None


FRAMEWORK = {
    "framework": {"frameworkId": "score", "frameworkName": "Score", "kind": "score", "isOpen": True},
    "specification": SPECIFICATION,
}


def test_a_framework_keeps_what_a_reviewer_changed(bring):
    bring(FRAMEWORK, kind="frameworks")
    update_framework(reviewer(), "score", name="Renamed", closed=True, run_cost=7)
    author_framework(reviewer(), "score", {**SPECIFICATION, "version": 2, "scale": {"min": 0, "max": 9}})
    _, warnings = bring({**FRAMEWORK, "runCost": 5}, kind="frameworks")
    fields = ["framework.frameworkName", "framework.isOpen", "runCost", "specification"]
    assert sorted(each.field for each in warnings) == fields
    found = Framework.objects.get()
    assert (found.name, found.closed, found.run_cost) == ("Renamed", True, 7)
    assert FrameworkSpecification.objects.count() == 2
    bring({**FRAMEWORK, "runCost": 5}, kind="frameworks", overwrite=True)
    found.refresh_from_db()
    assert (found.name, found.closed, found.run_cost) == ("Score", False, 5)
    assert FrameworkSpecification.objects.latest("version").document["scale"]["max"] == 4
    assert bring({**FRAMEWORK, "runCost": 5}, kind="frameworks")[1] == []


def test_a_framework_that_a_reviewer_unlisted_stays_so_until_relist(bring):
    bring(FRAMEWORK, kind="frameworks")
    update_framework(reviewer(), "score", listed=False)
    _, warnings = bring(FRAMEWORK, kind="frameworks")
    assert [each.reason for each in warnings] == ["'score' is unlisted and stays so; --relist publishes it"]
    assert document("framework", "score") is None
    bring(FRAMEWORK, kind="frameworks", relist=True)
    assert document("framework", "score")["frameworkName"] == "Score"


def test_a_closed_round_stays_closed(bring):
    bring(ROW)
    close_funding_round(owner_of("acme"), "acme")
    bring(ROW)
    assert shown("raising") is False


def test_a_row_that_an_owner_entered_before_the_file_had_it_is_not_doubled(bring):
    me = owner()
    mine = published(me, name="Acme", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    chair = {"title": "Chair", "person": {"slug": "ada-moss"}}
    clerk = {"title": "Clerk", "person": {"name": "Bo Reef"}}
    row = {"company": {"id": mine.slug, "name": "Acme"}, "positions": [chair, clerk]}
    assert bring(row)[1] == []
    assert [each["title"] for each in document("company", mine.slug)["positions"]] == ["Chair", "Clerk"]
    summary, warnings = bring(row)
    assert (summary.counts["companies"].unchanged, warnings) == (1, [])


def test_a_profile_that_was_unlisted_stays_so(bring):
    ada = {"slug": "ada", "name": "Ada Moss"}
    bring(ada, kind="people")
    me = owner()
    join_person(COMMAND, "ada", me.account_id)
    unlist_profile(me)
    for relist in (False, True):
        _, warnings = bring(ada, kind="people", relist=relist)
        assert [each.reason for each in warnings] == [
            "'ada' is a private profile and stays so; its owner can publish it"
        ]
        assert document("person", "ada") is None
    Person.objects.update(unlisted_by="reviewer")
    _, warnings = bring(ada, kind="people")
    assert [each.reason for each in warnings] == ["'ada' is unlisted and stays so; --relist publishes it"]
    assert document("person", "ada") is None
    assert bring(ada, kind="people", relist=True)[1] == []
    assert document("person", "ada")["name"] == "Ada Moss"


def test_a_position_that_an_owner_asked_for_is_confirmed_by_the_file(bring):
    bring({"slug": "ada", "name": "Ada Moss"}, kind="people")
    join_person(COMMAND, "ada", owner().account_id)
    clerk = {"title": "Clerk", "person": {"name": "Bo Reef"}}
    bring({"company": company(), "positions": [clerk]})
    me = owner_of("acme")
    (clerk_id,) = (each["id"] for each in shown("positions"))
    edit(me, positions={"add": [{"title": "Chair", "person": {"slug": "ada"}}], "remove": [clerk_id]})
    assert [each["person"] for each in shown("positions")] == [{"name": "Ada Moss"}]
    chair = {"title": "Chair", "person": {"slug": "ada"}}
    _, warnings = bring({"company": company(), "positions": [clerk, chair]})
    assert [each.field for each in warnings] == ["positions"]
    assert [each["person"] for each in shown("positions")] == [{"name": "Ada Moss", "slug": "ada"}]
    assert PositionRequest.objects.get().decision == "confirmed"
    assert document("person", "ada")["positions"][0]["title"] == "Chair"


def test_a_position_that_its_person_ended_stays_ended_and_the_file_changes_the_others(bring):
    bring({"slug": "ada", "name": "Ada Moss"}, kind="people")
    ada = owner()
    join_person(COMMAND, "ada", ada.account_id)
    chair = {"title": "Chair", "person": {"slug": "ada"}}
    clerk = {"title": "Clerk", "person": {"name": "Bo Reef"}}
    bring({"company": company(), "positions": [chair, clerk]})
    assert shown("positions")[0]["person"]["slug"] == "ada"
    (held,) = list_positions(ada)
    answer_positions(ada, end=[held.id])
    _, warnings = bring({"company": company(), "positions": [chair, {**clerk, "since": 2020}]})
    assert [each.field for each in warnings] == ["positions[0]"]
    assert [(each["title"], each["since"]) for each in shown("positions")] == [("Clerk", 2020)]
