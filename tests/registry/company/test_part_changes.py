"""Edits of single rows, and the refusal of lists that a caller may have read only in part."""

import pytest

from make.registry import changes, document, draft, owner, published
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import CapTableEntry, HistoryEntry, Person, Position
from services.items import without_ids

pytestmark = pytest.mark.django_db


def holders(number):
    return [{"address": f"0x{n}", "name": f"Holder {n}", "percentage": 0.01} for n in range(number)]


def update(me, mine, **change):
    return listings.update_company(me, mine.slug, CompanyChange(change))


def stored_ids(mine, part):
    return [row["id"] for row in document("company", mine.slug)[part]]


def test_one_holder_of_thousands_is_added_changed_and_removed_and_the_others_stay():
    me = owner()
    mine = published(me, capTable=holders(3_000))
    before = document("company", mine.slug)["capTable"]
    keys = dict(CapTableEntry.objects.filter(company__slug=mine.slug).values_list("rank", "pk"))
    change = {
        "add": [{"name": "Newcomer"}],
        "set": [{"id": before[1500]["id"], "name": "Renamed"}],
        "remove": [before[7]["id"]],
    }
    update(me, mine, capTable=change)
    after = document("company", mine.slug)["capTable"]
    expected = [*before[:7], *before[8:]]
    expected[1499] = {**before[1500], "name": "Renamed"}
    assert after[:-1] == expected
    assert without_ids(after[-1:]) == [{"name": "Newcomer"}]
    left = dict(CapTableEntry.objects.filter(company__slug=mine.slug).values_list("rank", "pk"))
    assert {rank: key for rank, key in left.items() if rank < 3_000} == {
        rank: key for rank, key in keys.items() if rank != 7
    }


def test_rows_that_are_written_back_in_another_order_are_stored_and_published_in_it():
    me = owner()
    mine = published(me, capTable=holders(4))
    first, second, third, fourth = document("company", mine.slug)["capTable"]
    for order in ([fourth, first, second, third], [fourth, second, {"name": "Newcomer"}, first, third]):
        update(me, mine, capTable=order)
        shown = document("company", mine.slug)["capTable"]
        assert [row["name"] for row in shown] == [row["name"] for row in order]
        assert [row["id"] for row in shown if row["name"] != "Newcomer"] == [row["id"] for row in order if "id" in row]


def test_a_position_is_changed_by_id_and_only_its_person_is_published_again():
    me = owner()
    mine = published(me, positions=[{"title": "Chair", "person": {"name": name}} for name in ("Ada Moss", "Bo Reef")])
    first, second = document("company", mine.slug)["positions"]
    former = Person.objects.get(slug="bo-reef").updated_at
    update(me, mine, positions={"set": [{"id": first["id"], "title": "President"}]})
    assert document("company", mine.slug)["positions"] == [{**first, "title": "President"}, second]
    assert document("person", "ada-moss")["positions"][0]["title"] == "President"
    assert Person.objects.get(slug="bo-reef").updated_at == former


def test_pools_and_addresses_are_edited_by_id_too():
    me = owner()
    pools = [{"name": "Team", "percentage": 20}, {"name": "Community", "percentage": 50}]
    mine = published(me, distribution={"method": "sale", "pools": pools}, address=[{"city": "Port"}, {"city": "Bay"}])
    data = document("company", mine.slug)
    team, port = data["distribution"]["pools"][0]["id"], data["company"]["address"][0]["id"]
    update(
        me,
        mine,
        distribution={
            "pools": {"set": [{"id": team, "percentage": 25}], "add": [{"name": "Reserve", "percentage": 5}]}
        },
        address={"remove": [port]},
    )
    data = document("company", mine.slug)
    assert data["distribution"]["method"] == "sale"
    assert [pool["percentage"] for pool in data["distribution"]["pools"]] == [25, 50, 5]
    assert [each["city"] for each in data["company"]["address"]] == ["Bay"]


def test_what_was_read_is_written_back_without_a_change():
    me = owner()
    mine = published(
        me, capTable=holders(3), positions=[{"person": {"name": "Ada Moss"}}], address=[{"city": "Port"}],
        proposals=[{"id": "p1", "title": "Go"}], distribution={"pools": [{"name": "Team", "percentage": 5}]},
    )  # fmt: skip
    bundle = listings.get_company(me, mine.slug).bundle
    count, entries = changes(), HistoryEntry.objects.count()
    done = update(
        me, mine, capTable=document("company", mine.slug)["capTable"], positions=bundle["positions"],
        proposals=document("company", mine.slug)["proposals"], address=bundle["company"]["address"],
        distribution=bundle["distribution"],
    )  # fmt: skip
    assert (done.applied, changes(), HistoryEntry.objects.count()) == ([], count, entries)


def test_the_read_change_write_of_a_caller_that_saw_a_part_is_refused_with_both_ways_out():
    me = owner()
    mine = published(me, capTable=holders(150))
    seen = document("company", mine.slug)["capTable"][:100]
    with pytest.raises(BadFields) as refusal:
        listings.update_company(me, mine.slug, CompanyChange(capTable=seen), expected_version=mine.version + 2)
    assert "capTable shrinks from 150 to 100" in refusal.value.message
    assert '"remove": [ids]' in refusal.value.hint
    assert 'expectedTotals {"capTable": 150}' in refusal.value.hint
    assert len(document("company", mine.slug)["capTable"]) == 150
    done = listings.update_company(me, mine.slug, CompanyChange(capTable=seen), expected_totals={"capTable": 150})
    assert done.applied == ["capTable"]
    assert document("company", mine.slug)["capTable"] == seen


def test_a_short_list_gets_shorter_with_the_present_version_and_not_without():
    me = owner()
    mine = draft(me, capTable=holders(50))
    with pytest.raises(BadFields, match="capTable shrinks from 50 to 49") as refusal:
        update(me, mine, capTable=holders(49))
    assert "expectedVersion" in refusal.value.hint
    done = listings.update_company(me, mine.slug, CompanyChange(capTable=holders(49)), expected_version=1)
    assert done.applied == ["capTable"]


def test_a_list_of_few_large_rows_is_not_short():
    me = owner()
    mine = draft(me, proposals=[{"id": str(n), "title": "x" * 1_000} for n in range(13)])
    with pytest.raises(BadFields, match="proposals shrinks from 13 to 1"):
        listings.update_company(me, mine.slug, CompanyChange(proposals=[{"id": "0"}]), expected_version=1)


def test_a_null_clears_a_list_only_if_it_is_meant():
    me = owner()
    mine = draft(me, positions=[{"person": {"name": f"Person {n}"}} for n in range(60)])
    with pytest.raises(BadFields, match="positions shrinks from 60 to 0"):
        listings.update_company(me, mine.slug, CompanyChange(positions=None), expected_version=1)
    listings.update_company(me, mine.slug, CompanyChange(positions=None), expected_totals={"positions": 60})
    assert Position.objects.filter(company__slug=mine.slug).count() == 0


def test_another_total_than_the_present_one_is_refused():
    me = owner()
    mine = draft(me, capTable=holders(3))
    with pytest.raises(BadFields, match=r"expectedTotals.capTable is 2, but the number of stored rows is 3"):
        listings.update_company(me, mine.slug, CompanyChange(capTable=[]), expected_totals={"capTable": 2})


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"id": "made-up", "name": "x"}, {"name": "y"}], r"capTable\[0\].id 'made-up' is the id of no row"),
        ([{"id": "SAME"}, {"id": "SAME"}], r"capTable\[1\].id .* is also the id of another row"),
    ],
)
def test_a_whole_list_names_only_ids_that_it_has(rows, fault):
    me = owner()
    mine = draft(me, capTable=holders(2))
    ids = [
        row["id"] for row in CapTableEntry.objects.filter(company__slug=mine.slug).values_list("document", flat=True)
    ]
    with pytest.raises(BadFields, match=fault):
        update(me, mine, capTable=[{**row, "id": row.get("id", "").replace("SAME", ids[0])} for row in rows])


def test_a_removed_row_that_comes_again_has_a_new_id():
    me = owner()
    mine = published(me, capTable=holders(2))
    first = stored_ids(mine, "capTable")
    update(me, mine, capTable={"remove": [first[1]]})
    update(me, mine, capTable={"add": holders(2)[1:]})
    second = stored_ids(mine, "capTable")
    assert second[0] == first[0]
    assert second[1] not in first


def test_a_revert_brings_the_rows_back_with_their_ids():
    me = owner()
    mine = published(
        me, positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}, {"person": {"name": "Bo Reef"}}]
    )
    before = document("company", mine.slug)["positions"]
    update(me, mine, positions={"remove": [before[0]["id"]]})
    listings.revert_company(me, mine.slug, listings.company_history(me, mine.slug).items[0].pk)
    assert document("company", mine.slug)["positions"] == before


def test_the_beginning_of_a_text_is_not_written_over_the_whole_text():
    me = owner()
    mine = draft(me, body="word " * 400)
    with pytest.raises(BadFields, match=r"body is only the beginning of the stored text of 2,000 characters"):
        update(me, mine, body=("word " * 60).rstrip() + "…")
    assert update(me, mine, body="A new text that trails off…").applied == ["body"]


def test_an_added_row_of_a_draft_does_not_touch_other_lists():
    me = owner()
    mine = draft(me, capTable=holders(2), proposals=[{"id": "1", "title": "Go"}])
    done = update(me, mine, capTable={"add": [{"name": "Third"}]})
    assert done.applied == ["capTable"]
    assert [row["name"] for row in done.diff["capTable"]["after"]] == ["Holder 0", "Holder 1", "Third"]
