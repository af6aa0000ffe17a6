"""Pages, order, filters, search and the other parameters of the lists."""

import json
from urllib.parse import quote, urlencode

import pytest

from contract.shapes import PAGINATION, check, check_error
from services.product import DEMO

ROWS = [json.loads(line) for line in (DEMO / "companies.jsonl").read_text().splitlines()]
BOTH = pytest.mark.parametrize("kind", ["companies", "people"])


def ids(answer):
    return [item.get("id") or item["slug"] for item in answer["data"]]


def listed(demo, kind="companies", **query):
    answer = demo.get(f"/api/v1/{kind}?{urlencode(query)}")
    assert answer.status == 200, answer
    return answer.json()


@pytest.mark.requirement("pagination.defaults")
@pytest.mark.requirement("pagination.fields")
@pytest.mark.requirement("envelope.paginated")
@BOTH
def test_without_parameters_the_first_25_are_given_and_pagination_says_so(demo, kind):
    answer = listed(demo, kind)
    check(answer["pagination"], PAGINATION)
    assert set(answer) == {"data", "pagination"}
    assert (answer["pagination"]["page"], answer["pagination"]["pageSize"], len(answer["data"])) == (1, 25, 25)


@pytest.mark.requirement("pagination.two-lists-only")
@pytest.mark.parametrize("path", ["frameworks", "stats", "companies/quillmere", "changes", "exports"])
def test_no_other_answer_has_a_pagination_object(demo, path):
    assert "pagination" not in demo.get(f"/api/v1/{path}").json()


@pytest.mark.requirement("companies.list")
@pytest.mark.requirement("order.companies")
def test_companies_are_listed_newest_first_and_within_a_day_the_later_published_first(demo):
    def key(numbered):
        number, row = numbered
        company = row["company"]
        day = company.get("listedAt") or {"September 2019": "2019-09-01"}.get(company.get("createdAt"), "")
        return (day, number)

    expected = [row["company"]["id"] for _, row in sorted(enumerate(ROWS), key=key, reverse=True)]
    assert ids(listed(demo, pageSize=100)) == expected


@pytest.mark.requirement("order.people")
def test_people_are_listed_with_the_later_published_first(demo):
    lines = (DEMO / "people.jsonl").read_text().splitlines()
    imported = [json.loads(line)["slug"] for line in lines]
    shown = [slug for slug in ids(listed(demo, "people", pageSize=100)) if slug in set(imported)]
    assert shown == imported[::-1]


@pytest.mark.requirement("limits.page-size")
@pytest.mark.parametrize("size", [1, 7, 100])
@BOTH
def test_the_pages_together_are_the_list_at_every_size(demo, kind, size):
    whole = ids(listed(demo, kind, pageSize=100))
    first = listed(demo, kind, pageSize=size)
    assert first["pagination"]["pageCount"] == -(-len(whole) // size)
    pages = range(1, first["pagination"]["pageCount"] + 1)
    assert [one for page in pages for one in ids(listed(demo, kind, page=page, pageSize=size))] == whole


@pytest.mark.requirement("rest.pagination.past-end")
@pytest.mark.parametrize("page", [1000, 999_999_999_999_999])
@BOTH
def test_past_the_end_the_list_is_empty_and_the_asked_page_is_echoed(demo, kind, page):
    total = listed(demo, kind)["pagination"]["total"]
    answer = listed(demo, kind, page=page, pageSize=10)
    assert answer["data"] == []
    assert answer["pagination"] == {"page": page, "pageSize": 10, "pageCount": -(-total // 10), "total": total}


@pytest.mark.requirement("rest.pagination.empty")
def test_nothing_found_is_one_empty_page(demo):
    answer = listed(demo, industry="No such industry")
    assert answer.pop("closest") == []
    assert answer.pop("hint")
    assert answer == {"data": [], "pagination": {"page": 1, "pageSize": 25, "pageCount": 1, "total": 0}}


NO_NUMBERS = ["", "0", "-1", "+1", "1.0", "1e1", "0x1", " 1", "1 ", "abc", "null", "٣", "1,2", "1_0"]


@pytest.mark.requirement("rest.bad-parameter")
@pytest.mark.parametrize("name", ["page", "pageSize"])
@pytest.mark.parametrize("value", NO_NUMBERS)
@BOTH
def test_an_invalid_page_number_is_refused_with_name_value_rule_and_hint(demo, kind, name, value):
    found = check_error(demo.get(f"/api/v1/{kind}?{urlencode({name: value})}"), 400, "bad_request")
    assert name in found["message"]
    assert not value.strip() or value.strip() in found["message"]


@pytest.mark.requirement("rest.bad-parameter")
@pytest.mark.parametrize(
    "query",
    ["pageSize=101", "pageSize=100000", "status=Active", "status=", "hasToken=TRUE", "hasToken=1", "raising=yes"]
    + ["sort=oldest", "sort=Newest", "sort=relevance", "updatedSince=yesterday", "updatedSince=2026-11", "q="]
    + ["cursor=nonsense", "page=1&cursor=nonsense", "ids=", "status=active&status=x", "sort=name&sort=name"],
)
def test_a_bad_value_is_refused_and_the_hint_gives_an_address_that_works(demo, query):
    found = check_error(demo.get(f"/api/v1/companies?{query}"), 400, "bad_request")
    assert query.partition("=")[0] in found["message"] or "cursor" in found["message"]
    word = next(word for word in found["hint"].replace(demo.url, "").split() if word.startswith("/api/v1/"))
    assert demo.get(word.rstrip(".,;")).status == 200, found


@pytest.mark.requirement("rest.bad-parameter")
@pytest.mark.parametrize("value", ["", "Score", "scores", "score,program"])
def test_a_kind_of_framework_that_does_not_exist_is_refused(demo, value):
    found = check_error(demo.get(f"/api/v1/frameworks?kind={value}"), 400, "bad_request")
    assert "kind" in found["message"]
    assert "program" in found["message"]


@pytest.mark.requirement("rest.bad-parameter.repeated")
@pytest.mark.parametrize("query", ["page=1&page=1", "pageSize=5&pageSize=6", "page=1&%70age=2", "q=a&q=b"])
def test_a_repeated_parameter_is_refused(demo, query):
    check_error(demo.get(f"/api/v1/companies?{query}"), 400, "bad_request")


@pytest.mark.requirement("rest.bad-parameter.long-number")
@BOTH
def test_a_number_of_more_than_15_digits_is_refused(demo, kind):
    check_error(demo.get(f"/api/v1/{kind}?page=1000000000000000"), 400, "bad_request")
    check_error(demo.get(f"/api/v1/{kind}?page=0000000000000001"), 400, "bad_request")


@pytest.mark.requirement("rest.unknown-parameter")
@pytest.mark.parametrize("query", ["utm_source=x", "Page=2", "page[]=2", "=", "&&", "%ff=1", "populate=*"])
def test_an_unknown_parameter_is_ignored(demo, query):
    assert demo.get(f"/api/v1/companies?{query}").json() == listed(demo)


@pytest.mark.requirement("search.q")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("tidal", "tarnwick-tidal"),
        ("tid", "tarnwick-tidal"),
        ("SALT MARSH", "saltmarsh-commons"),
        ("MARSH", "saltmarsh-commons"),
        ("mossledger", "mossledger"),
        ("霧灯", "霧灯測量社"),
        ("海図", "霧灯測量社"),
        ("نخلة", "مؤسسة-نخلة-الضوء"),
        ("הערבה", "קרן-ענף-הערבה"),
        ("लिपि", "सरोवर-लिपि-संस्थान"),
        ("маяк", "тихий-маяк"),
        ("θαλασσινο", "θαλασσινό-αρχείο"),
        ("달빛", "달빛지도연구소"),
        ("باران", "بنیاد-باران-آرام"),
    ],
)
def test_words_are_found_by_prefix_and_in_every_script(demo, words, found):
    answer = listed(demo, q=words)
    assert found in ids(answer)
    assert answer["pagination"]["total"] < len(ROWS)


@pytest.mark.requirement("search.q")
@pytest.mark.parametrize("words", ['"', "AND", "NEAR(", "*", "a" * 200, "name:x OR", "--", "'", "%", "💡"])
def test_the_signs_of_a_query_language_are_only_words(demo, words):
    assert demo.get(f"/api/v1/companies?{urlencode({'q': words})}").status == 200


@pytest.mark.requirement("search.q")
def test_a_match_in_the_name_ranks_before_one_in_the_text(demo):
    assert ids(listed(demo, q="Quillmere"))[0] == "quillmere"


@pytest.mark.requirement("search.q")
def test_people_are_searched_too(demo):
    assert "teodrick-vashnell" in ids(listed(demo, "people", q="vashn"))
    assert "haruki-minazato" in ids(listed(demo, "people", q="湊里"))


@pytest.mark.requirement("search.filters")
@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"status": "upcoming"}, lambda c: c.get("status") == "upcoming"),
        ({"type": "DAO"}, lambda c: c.get("type") == "DAO"),
        ({"industry": "Open knowledge"}, lambda c: c.get("industry") == "Open knowledge"),
        ({"theme": "oceans"}, lambda c: "oceans" in c.get("themes", [])),
        ({"hasToken": "true"}, lambda c: "symbol" in c),
        ({"hasToken": "false"}, lambda c: "symbol" not in c),
        ({"raising": "true"}, lambda c: c["raising"]),
        ({"type": "DAO", "status": "inactive"}, lambda c: c.get("type") == "DAO" and c.get("status") == "inactive"),
        ({"theme": "governance", "hasToken": "true"}, lambda c: "governance" in c.get("themes", []) and "symbol" in c),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_filter_gives_those_that_hold_it_in_the_same_order(demo, query, holds):
    expected = [company["id"] for company in listed(demo, pageSize=100)["data"] if holds(company)]
    answer = listed(demo, pageSize=100, **query)
    assert expected
    assert ids(answer) == expected
    assert answer["pagination"]["total"] == len(expected)
    paged = [one for page in range(1, len(expected) + 1) for one in ids(listed(demo, page=page, pageSize=1, **query))]
    assert paged == expected


@pytest.mark.requirement("search.filters")
@pytest.mark.parametrize("name", ["type", "industry", "theme"])
def test_an_unknown_value_of_an_open_set_gives_an_empty_list(demo, name):
    assert listed(demo, **{name: "unknown value"})["data"] == []


@pytest.mark.requirement("search.filters")
def test_search_and_filter_hold_together(demo):
    assert ids(listed(demo, q="village", type="DAO", pageSize=100))
    both = set(ids(listed(demo, q="village", pageSize=100))) & set(ids(listed(demo, type="DAO", pageSize=100)))
    assert set(ids(listed(demo, q="village", type="DAO", pageSize=100))) == both


@pytest.mark.requirement("search.sort")
def test_sorted_by_name_capitals_count_as_small_letters(demo):
    names = [company["name"] for company in listed(demo, sort="name", pageSize=100)["data"]]
    latin = [name for name in names if name.isascii()]
    assert latin == sorted(latin, key=str.casefold)
    assert len(names) == len(ROWS)


@pytest.mark.requirement("search.sort")
def test_the_default_order_is_newest_and_with_words_one_may_ask_for_relevance(demo):
    assert listed(demo, sort="newest") == listed(demo)
    assert ids(listed(demo, q="tide", sort="relevance")) == ids(listed(demo, q="tide"))
    by_date = ids(listed(demo, pageSize=100))
    newest = ids(listed(demo, q="village", sort="newest", pageSize=100))
    assert newest == [one for one in by_date if one in set(newest)]


@pytest.mark.requirement("list.fields")
def test_a_sparse_list_keeps_what_is_required(demo):
    for company in listed(demo, fields="symbol", pageSize=100)["data"]:
        assert {"id", "name"} <= set(company) <= {"id", "name", "symbol", "body", "socials", "address"}
    with_symbol = [company for company in listed(demo, fields="symbol", pageSize=100)["data"] if "symbol" in company]
    assert len(with_symbol) == sum("symbol" in row["company"] for row in ROWS)


@pytest.mark.requirement("list.cursor")
@BOTH
def test_a_crawl_by_cursor_meets_everything_once_and_says_the_true_page(demo, kind):
    whole = ids(listed(demo, kind, pageSize=100))
    seen, query, page = [], {"pageSize": 9}, 0
    while True:
        answer = listed(demo, kind, **query)
        page += 1
        assert answer["pagination"]["page"] == page
        seen += ids(answer)
        cursor = answer["pagination"].get("nextCursor")
        if not cursor:
            break
        query["cursor"] = cursor
    assert seen == whole


@pytest.mark.requirement("list.cursor")
def test_a_cursor_with_a_page_is_refused(demo):
    first = listed(demo, pageSize=9)
    cursor = (
        first["pagination"].get("nextCursor") or listed(demo, pageSize=9, sort="newest")["pagination"]["nextCursor"]
    )
    check_error(demo.get(f"/api/v1/companies?page=2&cursor={quote(cursor)}"), 400, "bad_request")


@pytest.mark.requirement("list.ids")
def test_a_look_up_of_many_gives_those_that_exist(demo):
    answer = listed(demo, ids="quillmere,missing,霧灯測量社,quillmere")
    assert set(ids(answer)) == {"quillmere", "霧灯測量社"}
    assert (answer["pagination"]["pageSize"], answer["pagination"]["total"]) == (100, 2)
    check_error(demo.get("/api/v1/companies?ids=" + ",".join(f"a{n}" for n in range(101))), 400, "bad_request")


@pytest.mark.requirement("list.updated-since")
def test_the_feed_lists_the_changes_since_a_moment(demo):
    assert listed(demo, updatedSince="2000-01-01T00:00:00Z")["pagination"]["total"] == len(ROWS)
    assert listed(demo, updatedSince="2999-01-01T00:00:00+01:00")["data"] == []
    stamps = sorted(company["updatedAt"] for company in listed(demo, pageSize=100)["data"])
    assert listed(demo, updatedSince=stamps[-1])["pagination"]["total"] == stamps.count(stamps[-1])


@pytest.mark.requirement("link.headers")
def test_the_pages_are_linked(demo):
    header = demo.get("/api/v1/companies?page=2&pageSize=5&type=DAO").headers["link"]
    links = dict(_links(header))
    assert set(links) == {"first", "prev", "last"}, "two pages of DAOs: the second has no next"
    for address in links.values():
        path = address.removeprefix(demo.url)
        assert "type=DAO" in path
        assert demo.get(path).status == 200
    assert demo.get(links["prev"].removeprefix(demo.url)).json()["pagination"]["page"] == 1
    assert "prev" not in dict(_links(demo.get("/api/v1/companies").headers["link"]))


def _links(header):
    for part in header.split(","):
        address, _, parameters = part.partition(";")
        yield parameters.split('rel="')[1].partition('"')[0], address.strip().strip("<>")


@pytest.mark.requirement("changes.feed")
def test_following_the_changes_from_the_start_finds_everything_that_is_published(demo):
    after, told = 0, []
    while True:
        answer = demo.get(f"/api/v1/changes?after={after}").json()
        assert set(answer) == {"data", "nextAfter", "chain", "feedId", "head"}
        if not answer["data"]:
            break
        assert [change["sequence"] for change in answer["data"]] == sorted(c["sequence"] for c in answer["data"])
        told += answer["data"]
        after = answer["nextAfter"]
    assert all(set(change) - {"fields"} == {"sequence", "kind", "id", "change", "at", "chain"} for change in told)
    assert len({change["chain"] for change in told}) == len(told)
    assert all("fields" not in change for change in told if change["change"] != "updated")
    assert {change["change"] for change in told} <= {"published", "updated", "unlisted"}
    published = {change["id"] for change in told if change["kind"] == "company"}
    assert published == {row["company"]["id"] for row in ROWS}


@pytest.mark.requirement("search.q")
def test_a_slip_is_forgiven_and_said(demo):
    answer = listed(demo, q="quillmree")
    assert (answer["data"], answer["pagination"]["total"]) == ([], 0)
    assert answer["closest"][0]["id"] == "quillmere"
    assert "quillmree" in answer["closest"][0]["why"]
    assert set(listed(demo, q="quillmere")) == {"data", "pagination"}


@pytest.mark.requirement("search.filters")
def test_an_unknown_value_is_answered_with_what_exists(demo):
    answer = listed(demo, type="no such type")
    assert (answer["data"], answer["closest"]) == ([], [])
    assert 'No company has the type "no such type". Values in use: ' in answer["hint"]


@pytest.mark.requirement("search.filters")
def test_filters_know_case(demo):
    assert ids(listed(demo, type="daos")) == ids(listed(demo, type="DAO")) != []
