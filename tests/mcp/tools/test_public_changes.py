"""`changes_since`: what an agent that comes back after a week has missed."""

from contextlib import closing

import pytest

from make import published as make
from muniment.mcp.tools.public_lookups import MAX_ENTRIES
from muniment.store.reader import Reader
from services.mcp import public_server

DAYS = [f"2026-03-{day:02}T12:00:00.000000Z" for day in range(1, 6)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("changes") / "p.sqlite3"
    publisher = make.Publisher(file)
    for number, at in enumerate(DAYS, 1):
        publisher.publish(make.company(number), make.person(number), at=at)
    publisher.publish(make.company(1, name="Renamed"), at=DAYS[-1], fields=("name",))
    reader = Reader(file)
    with public_server(reader) as asker:
        yield asker
    reader.close()
    publisher.close()


def ask(server, since):
    return server.call("changes_since", {"since": since})["structuredContent"]


def keys(found):
    return [each["id"] for each in found["data"]]


@pytest.mark.requirement("tools.public")
def test_changes_since_a_date_are_of_every_kind_and_each_document_is_once(server):
    found = ask(server, "2026-03-04")
    assert keys(found) == ["company-4", "person-4", "company-5", "person-5", "company-1"]
    assert found["data"][-1] == {
        "kind": "company", "id": "company-1", "name": "Renamed", "change": "updated", "at": DAYS[-1], "fields": ["name"]
    }  # fmt: skip
    assert found["left"] == 0
    assert "hint" not in found


def test_an_answer_goes_on_where_the_former_ended(server):
    found = ask(server, "2026-03-05T12:00:00Z")
    assert keys(found) == ["company-5", "person-5", "company-1"]
    assert ask(server, found["nextSince"])["data"] == []
    assert ask(server, str(int(found["nextSince"]) - 1))["data"][0]["id"] == "company-1"
    assert ask(server, "2026-04-01")["data"] == []
    assert keys(ask(server, "2026-01-01"))[:2] == ["company-1", "person-1"]


@pytest.mark.requirement("mcp.tool-failures")
@pytest.mark.parametrize(
    ("since", "message"),
    [("last week", "since takes a date"), ("999", "no nextSince of this feed"), ("", "since takes")],
)
def test_another_since_is_refused_with_what_it_takes(server, since, message):
    error = ask(server, since)["error"]
    assert error["code"] == "bad_request"
    assert message in error["message"]
    assert "Call again with" in error["hint"]


def test_many_changes_come_in_several_answers(tmp_path):
    file = tmp_path / "p.sqlite3"
    publisher = make.Publisher(file)
    publisher.publish(*(make.company(number) for number in range(MAX_ENTRIES * 2)))
    reader = Reader(tmp_path / "p.sqlite3")
    with public_server(reader) as server:
        first = ask(server, "2025-12-31")
        assert (len(first["data"]), first["left"]) == (MAX_ENTRIES, MAX_ENTRIES)
        second = ask(server, first["nextSince"])
        assert (len(second["data"]), second["left"]) == (MAX_ENTRIES, 0)
        assert not set(keys(first)) & set(keys(second))
    reader.close()
    publisher.close()


def test_a_feed_without_its_beginning_says_so(tmp_path):
    file = tmp_path / "p.sqlite3"
    publisher = make.Publisher(file)
    publisher.publish(*(make.company(number) for number in range(5)))
    publisher.connection.execute("DELETE FROM published_change WHERE sequence <= 3")
    reader = Reader(tmp_path / "p.sqlite3")
    with public_server(reader) as server:
        found = ask(server, "2025-01-01")
        assert len(found["data"]) == 2
        assert "no longer recorded" in found["hint"]
        assert "too old" in ask(server, "1")["error"]["message"]
    reader.close()
    publisher.close()


def test_an_empty_registry_has_no_changes(tmp_path):
    make.Publisher(tmp_path / "p.sqlite3").close()
    reader = Reader(tmp_path / "p.sqlite3")
    with public_server(reader) as server:
        assert ask(server, "2025-01-01") == {"data": [], "nextSince": "0", "left": 0}
    reader.close()


def test_a_document_has_the_fields_of_all_its_changes(tmp_path):
    file = tmp_path / "p.sqlite3"
    publisher = make.Publisher(file)
    publisher.publish(make.company(1), make.company(2), make.company(3), at=DAYS[0])
    for fields in (("positions", "socials"), ("distribution",), ("socials", "proposals")):
        publisher.publish(make.company(1, name="Renamed"), at=DAYS[1], fields=fields)
    publisher.publish(make.company(2, name="Changed"), at=DAYS[1], fields=("name",))
    publisher.publish(make.company(2, name="Again"), at=DAYS[1], fields=None)
    publisher.publish(make.company(4), at=DAYS[1])
    publisher.publish(make.company(4, name="Corrected"), at=DAYS[2], fields=("name",))
    with closing(publisher), closing(Reader(file)) as reader, public_server(reader) as asker:
        since = {each["id"]: each for each in ask(asker, "2026-03-02")["data"]}
        last = {each["id"]: each for each in ask(asker, "2026-03-03")["data"]}
    assert since["company-1"]["fields"] == ["positions", "socials", "distribution", "proposals"]
    assert "fields" not in since["company-2"], "one of its changes is not known"
    assert (since["company-4"]["change"], since["company-4"]["at"]) == ("published", DAYS[2]), "it is new to the reader"
    assert "fields" not in since["company-4"]
    assert (last["company-4"]["change"], last["company-4"]["fields"]) == ("updated", ["name"])
