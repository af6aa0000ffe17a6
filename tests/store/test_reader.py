"""The reader shows exactly what is published, at once when told and in the asked order."""

import json
import random
import threading

import pytest

from make.published import Publisher, company, framework, person
from muniment.store import published, published_index
from muniment.store.queries import CompanyQuery, CursorError, PeopleQuery, Positions, selection
from muniment.store.reader import FeedGapError, Reader


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    yield made
    made.close()


@pytest.fixture
def reader(publisher, tmp_path):
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()


def ids(page):
    return [json.loads(item).get("id") or json.loads(item)["slug"] for item in page.items]


def companies(reader, **query):
    return ids(reader.companies(CompanyQuery(**query)))


def test_pages_are_newest_first_and_hold_everything_once(publisher, reader, monkeypatch):
    monkeypatch.setattr(published_index, "BLOCK_SPLIT", 8)
    chance = random.Random(3)
    documents = {f"company-{n}": company(n, day=chance.randint(0, 5)) for n in range(1, 90)}
    publisher.publish(*documents.values())
    for key in chance.sample(sorted(documents), 20):
        publisher.unlist("company", key)
        del documents[key]
    reader.refresh()
    expected = sorted(documents, key=lambda key: -documents[key].position)
    for size in (1, 7, 25, 100):
        shown = []
        for number in range(1, -(-len(expected) // size) + 1):
            page = reader.companies(CompanyQuery(page=number, page_size=size))
            assert (page.page, page.page_size, page.total) == (number, size, len(expected))
            assert page.page_count == -(-len(expected) // size)
            shown += ids(page)
        assert shown == expected
    beyond = reader.companies(CompanyQuery(page=10**15 - 1))
    assert (beyond.items, beyond.page, beyond.total, beyond.next_cursor) == ([], 10**15 - 1, len(expected), None)


@pytest.mark.parametrize("query", [{}, {"sort": "name"}, {"q": "water"}, {"status": "active"}])
def test_cursors_walk_the_whole_list_once_with_true_page_numbers(publisher, reader, monkeypatch, query):
    monkeypatch.setattr(published_index, "BLOCK_SPLIT", 8)
    chance = random.Random(5)
    names = ["Alpha Water", "beta water", "Gamma Water", "delta water"]
    publisher.publish(*(company(n, day=chance.randint(0, 5), name=chance.choice(names)) for n in range(1, 60)))
    reader.refresh()
    everything = companies(reader, page_size=100, **query)
    assert len(everything) == 59
    cursor, shown, number = None, [], 1
    while True:
        page = reader.companies(CompanyQuery(page_size=7, cursor=cursor, **query))
        assert page.page == number
        shown += ids(page)
        if page.next_cursor is None:
            break
        cursor, number = page.next_cursor, number + 1
    assert shown == everything


@pytest.mark.parametrize("query", [{}, {"sort": "name"}, {"q": "company"}])
def test_a_cursor_continues_after_an_item_that_was_removed(publisher, reader, query):
    publisher.publish(*(company(n) for n in range(10, 30)))
    reader.refresh()
    everything = companies(reader, page_size=100, **query)
    page = reader.companies(CompanyQuery(page_size=5, **query))
    publisher.unlist("company", everything[4])
    reader.refresh()
    assert companies(reader, page_size=100, cursor=page.next_cursor, **query) == everything[5:]


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "bnVsbA", "é", "WyJuIiwtMSwiIiwwXQ", "W10", "A" * 5000])
def test_an_invalid_cursor_is_refused(publisher, reader, cursor):
    with pytest.raises(CursorError):
        reader.companies(CompanyQuery(cursor=cursor))


def test_a_cursor_of_another_order_is_refused(publisher, reader):
    publisher.publish(*(company(n) for n in range(1, 10)))
    reader.refresh()
    cursor = reader.companies(CompanyQuery(page_size=2)).next_cursor
    with pytest.raises(CursorError, match="name"):
        reader.companies(CompanyQuery(page_size=2, sort="name", cursor=cursor))


def matches(document, query):
    """The rule of each filter, said plainly."""

    def holds(name, wanted):
        if name == "q":
            words = json.dumps(document.texts).lower().replace("-", " ")
            return all(word in words for word in wanted.split())
        if name == "updated_since":
            return document.updated_at >= wanted
        if name == "ids":
            return document.key in wanted
        text = {True: "true", False: "false"}.get(wanted, wanted)
        return text in document.facets[{"has_token": "hasToken"}.get(name, name)]

    return all(holds(name, wanted) for name, wanted in query.items())


def test_every_combination_of_filters_equals_a_plain_search(publisher, reader):
    chance = random.Random(11)
    documents = []
    for number in range(1, 120):
        symbol = {"symbol": f"T{number}"} if chance.random() < 0.4 else {}
        documents.append(
            company(
                number,
                day=chance.randint(0, 9),
                status=chance.choice(["active", "upcoming", "inactive"]),
                type=chance.choice(["DAO", "corporation"]),
                industry=chance.choice(["Water", "Energy"]),
                themes=chance.sample(["open", "public goods", "rivers"], chance.randint(0, 2)),
                raising=chance.random() < 0.3,
                name=chance.choice(["Blue", "Green", "blue"]),
                updatedAt=f"2026-01-0{chance.randint(1, 9)}T00:00:00.000000Z",
                **symbol,
            )
        )
    publisher.publish(*documents)
    reader.refresh()
    choices = {
        "status": ["active", "inactive"],
        "type": ["DAO", "dao"],
        "industry": ["Water"],
        "theme": ["open", "nothing"],
        "has_token": [True, False],
        "raising": [True],
        "q": ["blue", "green rivers", "nobody"],
        "updated_since": ["2026-01-05T00:00:00.000000Z"],
        "ids": [tuple(f"company-{n}" for n in range(1, 60)) + ("unknown",)],
    }
    for _ in range(400):
        query = {name: chance.choice(values) for name, values in choices.items() if chance.random() < 0.35}
        sort = chance.choice(["newest", "name"])

        kept = [document for document in documents if matches(document, query)]
        if sort == "name":
            kept.sort(key=lambda document: (document.name.lower(), document.position))
        else:
            kept.sort(key=lambda document: -document.position)
        page = reader.companies(CompanyQuery(page_size=100, sort=sort, **query))
        assert ids(page) == [document.key for document in kept][:100], query
        assert page.total == len(kept)


def test_the_name_ranks_before_the_slug_before_the_description_before_the_body(publisher, reader):
    publisher.publish(
        company(1, body="On harbours and much else."),
        company(2, description="Keeps harbours clean"),
        company(3, "harbours"),
        company(4, name="Harbours United"),
        company(5, name="Harbours"),
        company(6, name="Nothing of it"),
    )
    reader.refresh()
    assert companies(reader, q="harbours") == [
        "company-5",
        "harbours",
        "company-4",
        "company-2",
        "company-1",
    ] or companies(reader, q="harbours") == ["harbours", "company-5", "company-4", "company-2", "company-1"]


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("Água Límpida São", ["agua", "AGUA", "limp", "água límpida", "sao", "São"]),
        ("Łódź Straße Ørsted", ["lodz", "strasse", "orsted", "STRASSE"]),
        ("中国电信集团", ["中", "中国", "国电", "电信集团", "团", "中国电信集团", "中国 集团"]),
        ("東京カレッジ", ["東京", "カレ", "京カ", "レッジ"]),
        ("สมาคมน้ำสะอาด", ["สมาคม", "น้ำ", "สะอาด", "น้ำสะอาด"]),
        ("한국전력공사", ["한국", "전력", "공사", "력"]),
        ("हिन्दी जल संस्था", ["हिन्दी", "जल", "संस्"]),
        ("Общество Рек", ["общество", "РЕК", "общ"]),
        ("جمعية الماء", ["الماء", "جمعية"]),
        ("C++ & O'Brien 🚀 web3中国", ["o'brien", "brien", "🚀", "web3", "中国", "web3中国"]),
        ("ＦＵＬＬ ｗｉｄｔｈ", ["full width", "wid"]),
    ],
)
def test_names_are_found_in_every_script(publisher, reader, name, queries):
    publisher.publish(company(1, name=name), company(2, name="Other 其他"), person(1, name=name))
    reader.refresh()
    for query in queries:
        assert companies(reader, q=query) == ["company-1"], query
        assert ids(reader.people(PeopleQuery(q=query))) == ["person-1"], query


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        "*",
        "a*b",
        "AND",
        "NOT a OR",
        "name:x",
        "(",
        "^a",
        "a NEAR b",
        "{x}",
        "\x00",
        "-",
        "+",
        "\ud800",
        "%",
        "☃️",
    ],
)
def test_no_query_makes_a_syntax_error(publisher, reader, query):
    publisher.publish(company(1))
    reader.refresh()
    assert reader.companies(CompanyQuery(q=query)).total == 0


def test_only_the_last_word_is_a_prefix(publisher, reader):
    publisher.publish(company(1, name="Bluewater Trust"))
    reader.refresh()
    assert companies(reader, q="trust blue") == ["company-1"]
    assert companies(reader, q="blue trust") == []


def test_another_process_writes_and_only_what_it_touched_is_dropped(publisher, reader):
    publisher.publish(company(1), company(2), person(1))
    assert reader.refresh() is True
    assert reader.refresh() is False
    edition = reader.edition
    kept = {
        "one": (("company", "company-1"),),
        "two": (("company", "company-2"),),
        "companies": (("company", "*"),),
        "people": (("person", "*"),),
    }
    for key, depends in kept.items():
        reader.answers.put(key, key, size_bytes=10, edition=edition, depends=depends)
    publisher.publish(company(1, name="Renamed"))
    assert reader.refresh() is True
    assert [key for key in kept if reader.answers.ready.get(key)] == ["two", "people"]
    assert b"Renamed" in reader.document("company", "company-1").body


def test_an_answer_read_before_a_change_is_not_kept_after_it(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    found = reader.document("company", "company-1")
    publisher.publish(company(1, name="Renamed"))
    reader.refresh()
    reader.answers.put("one", found, size_bytes=10, edition=found.edition, depends=(("company", "company-1"),))
    assert reader.answers.ready.get("one") is None


def test_a_restored_backup_drops_everything(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    reader.answers.put("one", "one", size_bytes=10, edition=reader.edition, depends=(("company", "company-1"),))
    published.renew_epoch(publisher.connection)
    assert reader.refresh() is True
    assert reader.answers.ready.get("one") is None


def test_answers_stay_within_their_bytes_and_the_oldest_leaves(publisher, tmp_path):
    reader = Reader(tmp_path / "published.sqlite3", cache_bytes=100_000)
    for number in range(100):
        reader.answers.put(number, b"", size_bytes=5_000, edition=0, depends=(("company", str(number)),))
        assert reader.answers.currsize <= 100_000
    assert reader.answers.ready.get(0) is None
    assert reader.answers.ready.get(99) == b""
    reader.answers.put("huge", b"", size_bytes=60_000, edition=0, depends=())
    assert reader.answers.ready.get("huge") is None
    reader.close()


def test_the_key_of_a_cached_answer_counts_toward_its_limit(publisher):
    kept = Positions(100_000)
    for number in range(50):
        ids = tuple(f"{number}-{each}-{'x' * 100}" for each in range(100))
        kept.get(publisher.connection, selection("company", CompanyQuery(ids=ids)), 1)
    assert 3 < len(kept._cache) < 8


def test_statistics_follow_every_change(publisher, reader):
    assert json.loads(reader.stats().body)["data"] == {
        "total": 0,
        "projectsRaising": 0,
        "totalTreasury": "$0",
        "founders": 0,
        "frameworks": 0,
    }
    publisher.publish(company(1, raising=True, treasuryMinor=150_000_000), company(2), person(1), framework(1))
    publisher.unlist("company", "company-2")
    reader.refresh()
    assert json.loads(reader.stats().body)["data"] == {
        "total": 1,
        "projectsRaising": 1,
        "totalTreasury": "$1.5M",
        "founders": 1,
        "frameworks": 1,
    }


def test_frameworks_are_listed_in_the_order_of_first_publication(publisher, reader):
    publisher.publish(framework(2, kind="program"), framework(1), framework(3))
    reader.refresh()

    def listed(kind=None):
        return [item["frameworkId"] for item in json.loads(reader.frameworks(kind).body)["data"]]

    assert listed() == ["framework-1", "framework-2", "framework-3"]
    assert listed("program") == ["framework-2"]
    assert listed("score") == ["framework-1", "framework-3"]


def test_the_feed_continues_from_a_number_and_reports_when_it_cannot(publisher, reader):
    publisher.publish(*(company(n) for n in range(1, 8)))
    reader.refresh()
    changes = reader.changes(0, 5)
    assert ([row.sequence for row in changes.rows], changes.next_after) == ([1, 2, 3, 4, 5], 5)
    assert [row.key for row in reader.changes(5, 5).rows] == ["company-6", "company-7"]
    assert (reader.changes(7, 5).rows, reader.changes(7, 5).next_after) == ([], 7)
    publisher.connection.execute("DELETE FROM published_change WHERE sequence <= 3")
    with pytest.raises(FeedGapError):
        reader.changes(2, 5)
    assert reader.changes(3, 1).next_after == 4


def test_token_holders_are_paged(publisher, reader):
    publisher.publish(company(1, capTable=[{"address": f"0x{n}"} for n in range(5)]))
    found = reader.cap_table("company-1", 2, 2)
    assert ([json.loads(item)["address"] for item in found.items], found.total) == (["0x2", "0x3"], 5)
    assert reader.cap_table("company-1", 9, 2).items == []
    assert reader.cap_table("nobody", 1, 2) is None


def test_near_keys_are_offered(publisher, reader):
    publisher.publish(company(1, "blue-river-trust"), company(2, "blue-harbour"), company(3, "中国电信"))
    reader.refresh()
    assert reader.nearest("company", "blue-river-trst") == ["blue-river-trust"]
    assert reader.nearest("company", "Blue Harbour")[0] == "blue-harbour"
    assert reader.nearest("company", "zzzz") == []
    assert reader.nearest("company", "") == []
    assert reader.keys("company", "blue", 10) == ["blue-harbour", "blue-river-trust"]


def test_readers_in_many_threads_see_whole_editions_while_one_writes(publisher, reader, monkeypatch):
    monkeypatch.setattr(published_index, "BLOCK_SPLIT", 8)
    publisher.publish(*(company(n, name="v0") for n in range(1, 40)))
    reader.refresh()
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            page = reader.companies(CompanyQuery(page_size=100))
            names = {json.loads(item)["name"] for item in page.items}
            if len(page.items) != page.total or len(names) > 1:
                wrong.append((len(page.items), page.total, names))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(1, 25):
        publisher.publish(*(company(n, name=f"v{version}") for n in range(1, 40 + version)))
        reader.refresh()
    stop.set()
    for thread in threads:
        thread.join(10)
    assert wrong == []


def test_a_held_snapshot_is_never_older_than_what_the_process_has_noticed(publisher, reader):
    publisher.publish(company(1, name="v0"))
    reader.tick()
    assert b"v0" in reader.document("company", "company-1").body
    for version in range(1, 6):
        publisher.publish(company(1, name=f"v{version}"))
        elsewhere = threading.Thread(target=reader.refresh)
        elsewhere.start()
        elsewhere.join(10)
        assert f"v{version}".encode() in reader.document("company", "company-1").body
        assert f"v{version}".encode() in reader.companies(CompanyQuery()).items[0]
        reader.document("company", "company-1")
        assert reader.tick() is False


def test_a_held_snapshot_ends_with_the_next_tick(publisher, reader):
    publisher.publish(company(1))
    reader.tick()
    reader.document("company", "company-1")
    publisher.publish(company(2))
    reader.tick()
    publisher.publish(company(3))
    busy, written, moved = publisher.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, written, moved) == (0, 0, 0)


def test_many_details_are_found_in_one_go_as_one_by_one(publisher, reader, monkeypatch):
    monkeypatch.setattr("muniment.store.published.document_id", lambda _kind, _key: 7)
    publisher.publish(company(101, "met-another"), company(102, "the-other"))  # both want the same id
    monkeypatch.undo()
    publisher.publish(*(company(number) for number in range(1, 80)), person(3), framework(4))
    names = [
        *(("company", f"company-{number}") for number in range(1, 80)),
        ("company", "met-another"),
        ("company", "the-other"),
        ("company", "nobody"),
        ("person", "person-3"),
        ("person", "company-3"),
        ("framework", framework(4).key),
        ("company", "company-1"),
    ]
    for look in (reader.refresh, reader.tick):
        look()
        found = reader.documents(names)
        assert found == {name: one for name in names if (one := reader.document(*name)) is not None}
        assert set(names) - set(found) == {("company", "nobody"), ("person", "company-3")}
        assert all(json.loads(found[name].body)["data"] for name in found)
    assert reader.documents([]) == {}
