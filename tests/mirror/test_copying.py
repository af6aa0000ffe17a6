"""The copy of another registry: complete, continued from any moment, and what of an origin is refused."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from muniment.kernel.problems import BadRequest, Conflict, Unavailable
from muniment.kernel.wire import timestamp
from muniment.mirror import copying
from muniment.mirror.copying import BehindTooFar, Place, alone, currency_of
from services.origin import Given, company, framework, person

pytestmark = pytest.mark.sqlite


def test_a_copy_has_every_document_byte_by_byte_at_the_place_of_the_origin(copied, site):
    copied.make()
    assert copied.documents() == site.documents
    assert copied.place == Place("cafe", 3, site.chain(3))
    assert copied.mirror.progress() == (3, 3)
    assert not list((copied.folder / copying.DOWNLOADS).iterdir())


def test_a_change_of_each_kind_is_followed(copied, site):
    copied.make()
    site.publish("company", "blue-river", company("blue-river"))
    site.publish("company", "harbor-trust", company("harbor-trust", name="Harbor Trust II"))
    site.unlist("person", "ada-lund")
    site.publish("framework", "river-score", framework("river-score"))
    copied.follow()
    assert copied.documents() == site.documents
    assert copied.place == Place("cafe", 7, site.chain(7))
    assert copied.mirror.is_level(copied.place)
    assert copied.keys() == ["blue-river", "harbor-trust", "ada-lund", "river-score"]


def test_what_is_published_later_comes_after_what_was_exported(copied, site):
    copied.make()
    for slug in ("blue-river", "delta-works"):
        site.publish("company", slug, company(slug))
    copied.follow()
    site.publish("company", "harbor-trust", company("harbor-trust", name="Renamed"))
    copied.follow()
    rows = copied.rows("SELECT key FROM published_document WHERE kind = 'company' ORDER BY position")
    assert [key for (key,) in rows] == ["harbor-trust", "blue-river", "delta-works"]


def test_a_document_that_changes_often_on_one_page_is_read_once(copied, site):
    copied.make()
    for number in range(5):
        site.publish("company", "harbor-trust", company("harbor-trust", name=f"Name {number}"))
    site.publish("company", "brief", company("brief"))
    site.unlist("company", "brief")
    copied.follow()
    assert copied.documents() == site.documents


def test_a_large_document_is_fetched_by_itself_unless_it_is_gone(copied, site):
    copied.make()
    large = company("harbor-trust", note="x" * (300 << 10))
    site.publish("company", "harbor-trust", large)
    copied.follow()
    assert copied.documents()["company", "harbor-trust"] == json.dumps(large).encode()
    site.publish("company", "blue-river", company("blue-river", note="x" * (300 << 10)))
    site.answers["/api/v1/companies/blue-river"] = lambda *_: Given(404, b"{}")
    copied.follow()
    assert ("company", "blue-river") not in copied.documents()


def test_a_copy_of_another_schema_is_made_again(copied, site):
    copied.make()
    with sqlite3.connect(copied.mirror._path) as file:
        file.execute("UPDATE published_meta SET schema = 10")
    file.close()
    assert copied.mirror.place() is None
    copied.make()
    assert copied.documents() == site.documents


def test_an_empty_folder_has_no_place(copied):
    assert copied.mirror.place() is None
    with copied.mirror._opened():
        pass
    assert copied.mirror.place() is None
    assert copied.mirror.keep_former() is not None


def test_a_download_that_was_cut_is_continued_where_it_ended(copied, site, pauses):
    path = next(path for path in site._exports if "companies" in path)
    cut = []

    def half(request, given):
        cut.append(request.headers.get("Range"))
        if len(cut) == 1:
            return Given(200, given.body[:20], {"Content-Length": str(len(given.body)), "Connection": "close"})
        return given

    site.answers[path] = half
    copied.make()
    assert cut == [None, "bytes=20-"]
    assert copied.documents() == site.documents
    assert pauses == [1.0]


def test_a_download_of_a_former_attempt_is_continued_and_others_are_removed(copied, site):
    folder = copied.folder / copying.DOWNLOADS
    folder.mkdir()
    path = next(path for path in site._exports if "people" in path)
    (folder / path.removeprefix("/exports/")).write_bytes(site._exports[path][:30])
    (folder / "people-1-00000000.jsonl.gz").write_bytes(b"former")
    copied.make()
    assert copied.documents() == site.documents
    assert not (folder / "people-1-00000000.jsonl.gz").exists()


@pytest.mark.parametrize("kept", [b"x" * 30, b"x" * 9_000], ids=["wrong", "longer"])
def test_a_download_that_holds_something_else_is_fetched_again(copied, site, kept):
    folder = copied.folder / copying.DOWNLOADS
    folder.mkdir()
    path = next(path for path in site._exports if "people" in path)
    (folder / path.removeprefix("/exports/")).write_bytes(kept)
    copied.make()
    assert copied.documents() == site.documents


def test_a_file_that_ends_early_again_and_again_is_given_up(copied, site, pauses):
    path = next(path for path in site._exports if "companies" in path)
    site.answers[path] = lambda _, given: Given(
        200, b"", {"Content-Length": str(len(given.body)), "Connection": "close"}
    )
    with pytest.raises(Unavailable, match="before its end"):
        copied.make()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_file_with_another_digest_is_not_used(copied, site):
    path = next(path for path in site._exports if "companies" in path)
    site.answers[path] = lambda _, given: Given(given.status, b"\x00" * len(given.body))
    with pytest.raises(BadRequest, match="another digest"):
        copied.make()
    assert copied.mirror.place() is None


@pytest.mark.parametrize(
    ("content", "rows", "said"),
    [
        (json.dumps(company("a")).encode() + b"\n", 2, "has 1 rows"),
        (2 * (json.dumps(company("a")).encode() + b"\n"), 2, "twice"),
        (b"[]\n", 1, "not a JSON object"),
        (b"{\n", 1, "not a JSON object"),
        (b'{"company": []}\n', 1, "malformed"),
        (json.dumps(company("a/b")).encode() + b"\n", 1, "malformed"),
        (json.dumps(company("a", updatedAt=None)).encode() + b"\n", 1, "malformed"),
        (json.dumps(company("a", website="javascript:alert(1)")).encode() + b"\n", 1, "malformed"),
        (json.dumps(company("a", assessments="none")).encode() + b"\n", 1, "malformed"),
        (json.dumps(company("a")).encode(), 1, "does not end"),
    ],
)
def test_an_export_that_is_not_what_its_list_says_is_refused(copied, site, content, rows, said):
    site.put_export("companies", content, rows)
    with pytest.raises(BadRequest, match=said):
        copied.make()
    assert copied.mirror.place() is None


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("people", person("a/b")),
        ("people", {**person("ada"), "updatedAt": None}),
        ("frameworks", {"framework": framework("a/b")}),
        ("frameworks", {"framework": {**framework("a"), "kind": 1}}),
    ],
)
def test_a_malformed_row_of_the_other_kinds_is_refused(copied, site, kind, row):
    site.put_export(kind, json.dumps(row).encode() + b"\n", 1)
    with pytest.raises(BadRequest, match="malformed"):
        copied.make()
    site.put_export("frameworks", b"{}\n", 1)
    site.put_export("people", b"", 0)
    with pytest.raises(BadRequest, match="is no framework"):
        copied.make()


def test_an_export_that_is_no_gzip_is_refused(copied, site):
    site.put_export("companies", b"", 1, packed=b"not packed")
    with pytest.raises(BadRequest, match="cannot be read"):
        copied.make()


def test_a_line_without_an_end_is_read_no_further_than_a_document_may_be_long(copied, site, monkeypatch):
    monkeypatch.setattr(copying, "MAX_LINE_BYTES", 1_000)
    site.put_export("companies", b"x" * 5_000_000, 1)
    with pytest.raises(BadRequest, match="does not end"):
        copied.make()


def test_a_document_that_is_larger_than_any_is_refused(copied, monkeypatch):
    monkeypatch.setattr("muniment.registry.publishing.public_form.MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(BadRequest, match=r"A company has more than 0 MB\."):
        copied.make()


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([], "no export of companies"),
        ([{"name": "../../etc/passwd"}], "as a registry"),
        ("none", "as a registry"),
    ],
)
def test_a_list_of_exports_that_is_none_is_refused(copied, site, listed, said):
    site.answers["/api/v1/exports"] = lambda *_: Given(200, json.dumps({"data": listed}).encode())
    with pytest.raises(BadRequest, match=said):
        copied.make()


def test_exports_of_several_editions_are_refused(copied, site):
    site.publish("company", "blue-river", company("blue-river"))
    site.put_export("companies", b"", 0)
    with pytest.raises(BadRequest, match="several editions"):
        copied.make()


def test_exports_beyond_the_changes_are_refused(copied, site):
    del site.changes[2:]
    with pytest.raises(BadRequest, match="newer than its changes"):
        copied.make()


def test_the_chain_of_an_export_at_the_beginning_of_the_feed_is_known(copied, site):
    site.oldest = 4
    copied.make()
    assert copied.place == Place("cafe", 3, site.chain(3))


def replaced_page(site, **members):
    """Let the origin answer pages of changes with other members."""

    def answer(_, given):
        page = json.loads(given.body)
        return Given(given.status, json.dumps({**page, **members}).encode()) if page.get("data") else given

    site.answers["/api/v1/changes"] = answer


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (company("other"), "its document of other"),
        ({"company": {}}, "malformed"),
        (company("blue-river", raising="yes"), "malformed"),
        ([], "not a JSON object"),
    ],
)
def test_a_malformed_document_of_a_change_is_refused_and_nothing_of_its_page_used(copied, site, document, said):
    copied.make()
    site.publish("company", "harbor-trust", company("harbor-trust", name="Renamed"))
    site.publish("company", "blue-river", document)
    with pytest.raises(BadRequest, match=said):
        copied.follow()
    assert copied.mirror.place() == Place("cafe", 3, site.chain(3))
    assert json.loads(copied.documents()["company", "harbor-trust"])["company"]["name"] == "Harbor-Trust"


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"nextAfter": 9}, "does not end where it says"),
        (
            {
                "data": [
                    {"sequence": 9, "kind": "company", "id": "a", "change": "updated", "at": "2026-11-01T00:00:00Z"}
                ]
            },
            "not consecutive",
        ),
        (
            {"data": [{"sequence": 4, "kind": "planet", "id": "a", "change": "updated", "at": "2026-11-01T00:00:00Z"}]},
            "as a registry",
        ),
        ({"feedId": "<b>"}, "as a registry"),
    ],
)
def test_a_page_of_changes_that_is_wrong_is_refused(copied, site, members, said):
    copied.make()
    site.publish("company", "blue-river", company("blue-river"))
    replaced_page(site, **members)
    with pytest.raises(BadRequest, match=said):
        copied.follow()


def test_another_history_is_noticed_and_nothing_lost(copied, site):
    copied.make()
    before = copied.documents()
    site.salt = "two"
    site.publish("company", "blue-river", company("blue-river"))
    with pytest.raises(Conflict, match="another history") as told:
        copied.follow()
    assert "--restart" in told.value.hint
    assert copied.documents() == before


def test_an_origin_that_was_restored_to_an_earlier_edition_is_noticed(copied, site):
    copied.make()
    del site.changes[1:]
    with pytest.raises(Conflict, match="another history"):
        copied.follow()


def test_another_feed_that_does_not_reach_back_is_another_history(copied, site):
    copied.make()
    site.feed_id, site.oldest = "beef", 6
    for number in range(4):
        site.publish("company", "blue-river", company("blue-river", name=f"Name {number}"))
    with pytest.raises(Conflict, match="another history"):
        copied.follow()


def test_another_feed_without_a_chain_is_another_history(copied, site):
    copied.make()
    site.feed_id = "beef"
    with pytest.raises(Conflict, match="another history"):
        copied.mirror.follow(copied.place._replace(chain=None), copied.schema, waits=False)


def test_a_feed_that_was_renamed_and_has_the_same_past_is_followed(copied, site):
    copied.make()
    site.feed_id = "beef"
    site.publish("company", "blue-river", company("blue-river"))
    copied.follow()
    assert copied.mirror.place() == Place("beef", 4, site.chain(4))


def test_a_feed_that_does_not_reach_back_asks_for_a_new_copy(copied, site):
    copied.make()
    for number in range(4):
        site.publish("company", "blue-river", company("blue-river", name=f"Name {number}"))
    site.oldest = 6
    with pytest.raises(BehindTooFar):
        copied.follow()


def erase(site, *, at=None):
    """Erase ada-lund as a registry does: her former changes get a random id, and one more tells of it."""
    moment = at or timestamp(datetime.now(UTC))
    site.unlist("person", "ada-lund", at=moment)
    for change in site.changes[:-1]:
        change["id"] = change["id"].replace("ada-lund", "erased:1")
    site.unlist("person", "erased:1", at=moment)


def test_an_erased_person_is_in_no_document_and_under_no_former_change(copied, site):
    copied.make()
    site.publish("person", "ada-lund", person("ada-lund", "Ada Lund"))
    copied.follow()
    erase(site)
    copied.follow()
    assert copied.documents() == site.documents
    assert copied.keys() == ["erased:1", "ada-lund", "erased:1"]  # the last one names her for 30 days, as at the origin
    assert b"Ada Lund" not in copied.mirror._path.read_bytes()


def test_a_copy_that_was_away_while_the_feed_named_an_erased_person_is_made_again(copied, site):
    copied.make()
    erase(site, at=timestamp(datetime.now(UTC) - timedelta(days=31)))
    with pytest.raises(BehindTooFar, match="more than a month ago"):
        copied.follow()


def test_changes_before_an_erasure_that_are_gone_ask_for_a_new_copy(copied, site):
    copied.make()
    site.publish("company", "blue-river", company("blue-river"))
    copied.follow()
    erase(site)
    site.oldest = 5
    with pytest.raises(BehindTooFar):
        copied.follow()


def test_a_mirror_is_changed_by_one_command_at_a_time(copied, site):
    copied.make()
    with alone(copied.folder), pytest.raises(Conflict, match="Another muniment mirror"), alone(copied.folder):
        pass
    site.publish("company", "blue-river", company("blue-river"))
    with pytest.raises(Conflict, match="Another process"):
        copied.mirror.apply(
            Place("cafe", 2, None), copied.mirror._page(copied.place, limit=9, has_documents=True), copied.schema
        )


def test_at_the_end_of_the_feed_an_origin_that_does_not_wait_is_asked_once_a_second(copied, site, pauses):
    copied.make()
    assert copied.mirror.follow(copied.place, copied.schema, waits=True) == copied.place
    assert pauses == [copying.LEAST_WAIT_S]
    assert "waitSeconds=50" in site.asked[-1]


def test_the_currency_of_an_origin_is_found_in_its_amounts(copied, site):
    assert currency_of(copied.mirror.fetch()) == ""
    amount = {"amount": "1.00", "currency": "EUR"}
    site.publish("company", "blue-river", company("blue-river", treasuryAmount=amount))
    site.export()
    assert currency_of(copied.mirror.fetch()) == "EUR"
