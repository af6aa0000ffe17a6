"""Each REST route answers what the service document says, and refuses the rest in the envelope."""

import pytest

from make.published import AT, company, framework
from muniment.store import published

LISTS = ["/api/v1/companies", "/api/v1/people"]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_page_1_of_25_when_nothing_is_asked(filled, path):
    answer = filled.ask(path)
    assert answer.status == 200
    assert set(answer.json) == {"data", "pagination"}
    pagination = answer.json["pagination"]
    total = {"/api/v1/companies": 62, "/api/v1/people": 30}[path]
    assert pagination.pop("nextCursor")
    assert pagination == {"page": 1, "pageSize": 25, "pageCount": -(-total // 25), "total": total}
    assert len(answer.json["data"]) == 25


def test_companies_are_newest_first(filled):
    shown = [item["id"] for item in filled.ask("/api/v1/companies?pageSize=3").json["data"]]
    assert shown == ["中国电信", "a,b", "company-60"]


@pytest.mark.parametrize("path", LISTS)
def test_a_page_past_the_end_is_empty_and_says_what_there_is(filled, path):
    answer = filled.ask(f"{path}?page=999999999999999&pageSize=10")
    assert answer.status == 200
    assert answer.json["data"] == []
    assert answer.json["pagination"]["page"] == 999999999999999
    assert answer.json["pagination"]["pageSize"] == 10


def test_an_empty_registry_has_one_empty_page(rest):
    answer = rest.ask("/api/v1/companies")
    assert answer.json == {"data": [], "pagination": {"page": 1, "pageSize": 25, "pageCount": 1, "total": 0}}


@pytest.mark.parametrize(
    ("path", "key"),
    [("companies/company-7", "company"), ("people/person-3", "slug"), ("frameworks/framework-1", "companyDescription")],
)
def test_a_detail_is_found_with_and_without_a_trailing_slash(filled, path, key):
    answer = filled.ask(f"/api/v1/{path}")
    assert answer.status == 200
    assert set(answer.json) == {"data"}
    assert key in answer.json["data"]
    assert filled.ask(f"/api/v1/{path}/").body == answer.body


def test_a_native_slug_is_found_percent_encoded_or_plain(filled):
    for slug in ("%E4%B8%AD%E5%9B%BD%E7%94%B5%E4%BF%A1", "中国电信"):
        answer = filled.ask(f"/api/v1/companies/{slug}".encode())
        assert answer.json["data"]["company"]["id"] == "中国电信"


def test_frameworks_are_listed_whole_and_by_kind(filled):
    assert set(filled.ask("/api/v1/frameworks").json) == {"data"}
    assert len(filled.ask("/api/v1/frameworks").json["data"]) == 4
    kinds = {item["kind"] for item in filled.ask("/api/v1/frameworks?kind=program").json["data"]}
    assert kinds == {"program"}


def test_frameworks_are_found_by_words_with_the_best_match_first(rest):
    rest.publisher.publish(
        framework(1, description="How harbours are led."),
        framework(2, name="Harbour score"),
        framework(3, kind="program"),
    )

    def found(words):
        return [each["frameworkId"] for each in rest.ask(f"/api/v1/frameworks?{words}").json["data"]]

    assert found("") == ["framework-1", "framework-2", "framework-3"]
    assert found("q=harbour") == ["framework-2", "framework-1"]
    assert found("q=harbour&kind=program") == []
    assert "hint" in rest.ask("/api/v1/frameworks?q=zzzz").json


def test_statistics_are_one_object(filled):
    assert filled.ask("/api/v1/stats").json["data"] == {
        "total": 62,
        "projectsRaising": 0,
        "totalTreasury": "$62",
        "founders": 30,
        "frameworks": 4,
    }


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *((f"/api/v1/companies?page={value}", "page") for value in
          ("", "0", "-1", "%2B1", "1.0", "1e3", "x", "1000000000000000", "%EF%BC%91", "0x1", " 1", "1&page=2", "%ff")),
        *((f"/api/v1/people?pageSize={value}", "pageSize") for value in
          ("", "0", "101", "-5", "25.5", "25&pageSize=25")),
        *((f"/api/v1/frameworks?kind={value}", "kind") for value in
          ("", "Score", "all", "score&kind=score", "score,program")),
        ("/api/v1/companies?status=Active", "status"),
        ("/api/v1/companies?status=", "status"),
        ("/api/v1/companies?hasToken=True", "hasToken"),
        ("/api/v1/companies?raising=1", "raising"),
        ("/api/v1/companies?type=", "type"),
        ("/api/v1/companies?industry=&theme=x", "industry"),
        ("/api/v1/companies?theme=%00", "theme"),
        ("/api/v1/companies?sort=oldest", "sort"),
        ("/api/v1/companies?sort=relevance", "sort"),
        ("/api/v1/companies?q=", "q"),
        ("/api/v1/companies?q=%20%20", "q"),
        ("/api/v1/companies?q=" + "x" * 201, "q"),
        ("/api/v1/companies?fields=", "fields"),
        ("/api/v1/companies?fields=name,,id", "fields"),
        ("/api/v1/companies?ids=", "ids"),
        ("/api/v1/companies?ids=" + ",".join(["x"] * 101), "ids"),
        ("/api/v1/companies?cursor=", "cursor"),
        ("/api/v1/companies?cursor=zzz", "cursor"),
        ("/api/v1/companies?cursor=zzz&page=1", "page"),
        ("/api/v1/companies?updatedSince=2026-01", "updatedSince"),
        ("/api/v1/companies?updatedSince=0001-01-01T00:00:00%2B14:00", "updatedSince"),
        ("/api/v1/companies?updatedSince=2026-13-01T00:00:00Z", "updatedSince"),
        ("/api/v1/companies/company-7/cap-table?page=0", "page"),
        ("/api/v1/changes?after=-1", "after"),
        ("/api/v1/changes?limit=1001", "limit"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_refused_by_name_with_an_address_that_works(filled, target, name):
    answer = filled.ask(target)
    assert answer.status == 400
    error = answer.error
    assert error["code"] == "bad_request"
    assert error["message"].startswith(f"{name} ")
    hint = error["hint"].split(" ")[-1]
    assert hint.startswith("/api/v1/")
    assert filled.ask(hint).status == 200


def test_parameters_that_mean_nothing_are_ignored(filled):
    plain = filled.ask("/api/v1/companies")
    for query in ("utm=1", "Page=x", "page2=0&page2=0", "%ff=%ff", "&&=&", "x" * 5000, "kind=nothing"):
        assert filled.ask(f"/api/v1/companies?{query}").body == plain.body


@pytest.mark.parametrize(
    "target",
    [
        "/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/companies", "/api/v1/company", "/api/v1/companies//",
        "/api//v1/companies", "/API/v1/companies", "/api/v1/companies/%", "/api/v1/companies/%zz",
        "/api/v1/companies/%00", "/api/v1/companies/%ff", "/api/v1/companies/%c3", "/api/v1/companies/a%2Fb",
        "/api/v1/companies/" + "x" * 201, "/api/v1/companies/" + "x" * 9000, "/api/v1/companies/../stats",
        "/api/v1/companies/missing", "/api/v1/companies/COMPANY-7", "/api/v1/people/missing",
        "/api/v1/frameworks/missing",
        "/api/v1/companies/missing/cap-table", "/api/v1/frameworks/missing/scores",
        "/api/v1/companies/company-7/other", "/api/v1/stats/x",
        "/api/v1/people/person-1/cap-table", "/api/%E0%A4%A", "/exports/nothing", "/exports/../config",
        "/exports/companies-1.jsonl.gz", "/api%2Fv1%2Fcompanies",
    ],
)  # fmt: skip
def test_an_unknown_path_is_a_json_404(filled, target):
    for method in ("GET", "HEAD", "POST"):
        answer = filled.ask(target, method)
        if method == "POST" and answer.status == 405:
            continue
        assert answer.status == 404
        if method == "GET":
            assert answer.error["code"] == "not_found"


def test_an_unknown_company_is_named_and_the_hint_points_to_the_list(filled):
    error = filled.ask("/api/v1/companies/company-77x").error
    assert "company-77x" in error["message"]
    assert "GET /api/v1/companies" in error["hint"]
    assert "id" in error["hint"]
    assert "Did you mean company-7" in error["hint"]


@pytest.mark.parametrize("path", ["/api/v1/companies", "/api/v1/companies/company-7", "/api/v1/stats", "/openapi.json"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get"])
def test_other_methods_are_refused_with_those_that_work(filled, path, method):
    answer = filled.ask(path, method)
    assert answer.status == 405
    assert answer.error["code"] == "method_not_allowed"
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/api/v1/companies", "/api/v1/people/person-1", "/llms.txt", "/openapi.json"])
def test_head_is_get_without_the_body(filled, path):
    whole, head = filled.ask(path), filled.ask(path, "HEAD")
    assert (head.status, head.headers, head.body) == (200, whole.headers, b"")


def test_options_tells_browsers_that_any_origin_may_read(filled):
    answer = filled.ask("/api/v1/companies", "OPTIONS", origin="https://a.example", access_control_request_method="GET")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    assert "content-length" not in answer.headers


def test_filters_words_and_order_combine(filled):
    answer = filled.ask("/api/v1/companies?q=comp&status=active&theme=rivers&hasToken=false&sort=name&pageSize=100")
    shown = [item["id"] for item in answer.json["data"]]
    assert shown == sorted(f"company-{n}" for n in range(3, 61) if n % 3 == 0 and n % 2)
    assert filled.ask("/api/v1/companies?industry=Nothing").json["pagination"]["total"] == 0
    assert filled.ask("/api/v1/companies?q=%E4%B8%AD").json["data"][0]["id"] == "中国电信"


def test_only_the_asked_fields_are_sent_and_the_required_ones(filled):
    item = filled.ask("/api/v1/companies?fields=status,themes,nothing&pageSize=1").json["data"][0]
    assert set(item) == {"id", "name", "status", "themes"}
    assert set(filled.ask("/api/v1/people?fields=bio&pageSize=1").json["data"][0]) == {"name", "slug", "bio"}


def test_ids_choose_companies_and_unknown_ones_are_left_out(filled):
    answer = filled.ask("/api/v1/companies?ids=company-3,unknown,company-9,a%5C,b")
    assert [item["id"] for item in answer.json["data"]] == ["a,b", "company-9", "company-3"]
    assert answer.json["pagination"] == {"page": 1, "pageSize": 100, "pageCount": 1, "total": 3}


def test_updated_since_takes_any_offset(rest):
    rest.publish(
        company(1, updatedAt="2026-01-01T10:00:00.000000Z"), company(2, updatedAt="2026-01-01T12:00:00.000000Z")
    )
    for moment in ("2026-01-01T11:00:00Z", "2026-01-01T12:00:00%2B01:00", "2026-01-01T12:00:00+01:00"):
        answer = rest.ask(f"/api/v1/companies?updatedSince={moment}")
        assert [item["id"] for item in answer.json["data"]] == ["company-2"]


def test_cursors_lead_through_everything_once(filled):
    shown, target, number = [], "/api/v1/companies?pageSize=10&sort=name", 1
    while target:
        answer = filled.ask(target)
        assert answer.json["pagination"]["page"] == number
        shown += [item["id"] for item in answer.json["data"]]
        cursor = answer.json["pagination"].get("nextCursor")
        target = cursor and f"/api/v1/companies?pageSize=10&sort=name&cursor={cursor}"
        number += 1
    assert len(shown) == len(set(shown)) == 62


def test_links_lead_to_the_neighbouring_pages_and_keep_the_question(filled):
    def relations(target):
        header = filled.ask(target).headers["link"]
        return {part.split("rel=")[1].strip('"'): part.split(">")[0].lstrip(" <") for part in header.split(",")}

    first = relations("/api/v1/companies?status=active&pageSize=5&q=company")
    assert set(first) == {"first", "next", "last"}
    assert filled.ask(first["next"]).json["pagination"]["page"] == 2
    assert "status=active" in first["next"]
    middle = relations("/api/v1/companies?page=2")
    assert set(middle) == {"first", "prev", "next", "last"}
    assert set(relations(middle["last"])) == {"first", "prev", "last"}
    beyond = relations("/api/v1/companies?page=99")
    assert filled.ask(beyond["prev"]).json["pagination"]["page"] == 3
    cursor = filled.ask("/api/v1/companies?pageSize=5").json["pagination"]["nextCursor"]
    following = relations(f"/api/v1/companies?pageSize=5&cursor={cursor}")
    assert set(following) == {"first", "next"}
    assert filled.ask(following["next"]).json["pagination"]["page"] == 3


def test_token_holders_come_in_pages(filled):
    answer = filled.ask("/api/v1/companies/company-7/cap-table?page=2&pageSize=20")
    assert set(answer.json) == {"data", "total", "nextPage"}
    assert (len(answer.json["data"]), answer.json["total"], answer.json["nextPage"]) == (10, 30, None)
    assert filled.ask("/api/v1/companies/company-7/cap-table").json["nextPage"] == 2


def test_the_scores_of_a_framework_come_in_pages_the_best_first(rest):
    def assessed(score, **more):
        url = "/companies/x/assessments/framework-1"
        each = {"frameworkId": "framework-1", "frameworkName": "One", "score": score, "url": url, "assessedAt": AT}
        return {"assessments": [{**each, "frameworkId": "framework-2"}, {**each, **more}]}

    rest.publish(framework(1), framework(2), framework(3), company(1, **assessed(9.5)))
    rest.publish(company(2, **assessed(100, grade="A", previousScore=64, sections=[])), company(3, **assessed(20)))
    rest.publish(company(4, symbol="FOUR", **assessed(20)), company(5))
    first = rest.ask("/api/v1/frameworks/framework-1/scores?pageSize=3")
    assert set(first.json) == {"data", "total", "nextPage"}
    assert (first.json["total"], first.json["nextPage"]) == (4, 2)
    second = rest.ask("/api/v1/frameworks/framework-1/scores?pageSize=3&page=2").json
    assert second["nextPage"] is None
    rows = [*first.json["data"], *second["data"]]
    assert [(row["rank"], row["company"]["slug"], row["score"]) for row in rows] == [
        (1, "company-2", 100),
        (2, "company-4", 20),
        (2, "company-3", 20),
        (4, "company-1", 9.5),
    ]
    best, other = rows[:2]
    assert (best["grade"], best["previousScore"], best["url"]) == (
        "A",
        64,
        "/companies/x/assessments/framework-1",
    )
    assert "sections" not in best
    assert other["company"] == {"id": "company-4", "name": "Company 4", "slug": "company-4", "symbol": "FOUR"}
    assert rest.ask("/api/v1/frameworks/framework-3/scores").json == {"data": [], "total": 0, "nextPage": None}
    rest.unlist("company", "company-2")
    assert rest.ask("/api/v1/frameworks/framework-1/scores?pageSize=3").json["total"] == 3


def test_the_feed_tells_what_happened_and_when_it_no_longer_can(rest):
    rest.publish(company(1), company(2))
    rest.unlist("company", "company-1")
    answer = rest.ask("/api/v1/changes?after=1")
    assert [(row["sequence"], row["id"], row["change"]) for row in answer.json["data"]] == [
        (2, "company-2", "published"),
        (3, "company-1", "unlisted"),
    ]
    assert answer.json["nextAfter"] == 3
    feed, chain = rest.reader.changes(3, 1).feed_id, answer.json["data"][-1]["chain"]
    assert rest.ask("/api/v1/changes?after=3").json == {
        "data": [],
        "nextAfter": 3,
        "chain": chain,
        "feedId": feed,
        "head": 3,
    }
    rest.publisher.connection.execute("DELETE FROM published_change WHERE sequence = 1")
    gone = rest.ask("/api/v1/changes?after=0&limit=2")
    assert gone.status == 400
    assert "/api/v1/exports" in gone.error["hint"]
    assert rest.ask("/" + gone.error["hint"].split(" /")[-1]).status == 200


def test_a_number_beyond_the_head_belongs_to_another_feed_and_is_refused(rest):
    rest.publish(company(1))
    feed = rest.ask("/api/v1/changes").json
    ahead = rest.ask("/api/v1/changes?after=2")
    assert (ahead.status, ahead.error["code"]) == (400, "bad_request")
    assert "latest change is 1" in ahead.error["message"]
    assert "/api/v1/exports" in ahead.error["hint"]
    assert rest.ask("/" + ahead.error["hint"].split(" /")[-1]).status == 200
    published.clear(rest.publisher.connection, edition=1)
    rest.publish(company(1))
    rebuilt = rest.ask("/api/v1/changes?after=1").json
    assert (rebuilt["head"], rebuilt["feedId"] != feed["feedId"]) == (2, True)


def test_a_past_that_the_feed_does_not_have_is_refused_with_the_way_to_start_again(rest):
    rest.publish(company(1), company(2))
    first = rest.ask("/api/v1/changes?limit=1").json
    assert first["chain"] == first["data"][0]["chain"] != rest.reader.changes(0, 2).chain
    address = f"/api/v1/changes?after={first['nextAfter']}&chain="
    assert [row["id"] for row in rest.ask(address + first["chain"]).json["data"]] == ["company-2"]
    refused = rest.ask(address + "0" * 64)
    assert (refused.status, refused.error["code"]) == (400, "bad_request")
    assert "another past" in refused.error["message"]
    assert "/api/v1/exports" in refused.error["hint"]
    assert rest.ask("/" + refused.error["hint"].split(" /")[-1]).status == 200
    assert rest.ask(address + "0").status == 400


def test_a_follower_with_the_chain_notices_a_restored_feed_whose_numbers_have_overtaken_its_own(rest):
    rest.publish(company(1))
    kept = rest.ask("/api/v1/changes").json
    database = rest.publisher.connection
    rest.publish(company(2), company(3))
    lost = rest.ask("/api/v1/changes").json
    database.execute("DELETE FROM published_change WHERE sequence > 1")
    database.execute("DELETE FROM published_chain WHERE sequence > 1")
    database.execute("UPDATE published_meta SET edition = 1, epoch = 'restored'")
    rest.publish(company(4), company(5), company(6))
    assert rest.ask(f"/api/v1/changes?after={lost['nextAfter']}&chain={lost['chain']}").status == 400
    goes_on = rest.ask(f"/api/v1/changes?after={kept['nextAfter']}&chain={kept['chain']}").json
    assert [row["id"] for row in goes_on["data"]] == ["company-4", "company-5", "company-6"]


def test_changes_of_before_the_chain_carry_its_beginning(rest):
    rest.publish(company(1), company(2))
    rest.publisher.connection.execute("DELETE FROM published_chain")
    rest.publish(company(3))
    one, two, three = (row["chain"] for row in rest.ask("/api/v1/changes").json["data"])
    assert one == two != three
    assert rest.ask(f"/api/v1/changes?after=1&chain={one}").json["nextAfter"] == 3


def test_another_process_may_have_published_the_number_that_a_follower_has(rest):
    rest.publish(company(1))
    rest.publisher.publish(company(2))
    answer = rest.ask("/api/v1/changes?after=2")
    assert (answer.status, answer.json["head"]) == (200, 2)


def test_a_replica_that_cannot_ask_its_source_refuses_no_number(rest):
    rest.publish(company(1))
    rest.reader._catch_up = lambda: False
    answer = rest.ask("/api/v1/changes?after=9")
    assert (answer.status, answer.json["nextAfter"], answer.json["head"]) == (200, 9, 1)
    answer = rest.ask(f"/api/v1/changes?after=1&chain={'0' * 64}")
    assert (answer.status, answer.json["nextAfter"], answer.json["chain"]) == (200, 1, None)


def test_an_update_in_the_feed_names_the_changed_members(rest):
    rest.publish(company(1))
    rest.publisher.publish(company(1, treasury="$2M"), fields=("treasury", "positions"))
    first, second = rest.ask("/api/v1/changes").json["data"]
    assert "fields" not in first
    assert (second["change"], second["fields"]) == ("updated", ["treasury", "positions"])


def test_an_unlisted_company_is_gone_everywhere_at_once(rest):
    rest.publish(company(1), company(2))
    targets = ["/api/v1/companies/company-1", "/api/v1/companies", "/api/v1/companies?q=company", "/api/v1/stats"]
    before = [rest.ask(target) for target in targets]
    rest.unlist("company", "company-1")
    after = [rest.ask(target) for target in targets]
    assert [answer.status for answer in after] == [404, 200, 200, 200]
    assert all(b"company-1" not in answer.body for answer in after[1:])
    assert all(old.headers["etag"] != new.headers["etag"] for old, new in zip(before[1:], after[1:], strict=True))


def test_a_failure_shows_the_request_id_and_no_detail(rest, monkeypatch):
    def fail(*_):
        message = "secret path /var/lib"
        raise RuntimeError(message)

    monkeypatch.setattr(rest.reader, "stats", fail)
    answer = rest.ask("/api/v1/stats")
    assert answer.status == 500
    assert answer.error["code"] == "internal_error"
    assert "r-1" in answer.error["message"]
    assert b"secret" not in answer.body


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("treasuryMin=5M&treasuryMax=1M", "treasuryMin is greater than treasuryMax"),
        ("teamMin=9&teamMax=3", "teamMin is greater than teamMax"),
        ("listedFrom=2025-01-02&listedTo=2025-01-01T00:00:00Z", "listedFrom is greater than listedTo"),
        ("treasuryMin=lots", 'treasuryMin is "lots"; it takes an amount such as 1.5M'),
        ("listedFrom=01.02.2025", "it takes a date such as 2024-01-31, or an RFC 3339 moment"),
        ("facets=type,name", 'facets is "type,name"; it takes some of: hasToken'),
        ("&".join(f"type=t{n}" for n in range(51)), "type is given with more than 50 values"),
        ("country=%20", 'country is " "'),
    ],
)
def test_a_bad_filter_is_refused_with_an_address_that_works(filled, query, named):
    error = filled.ask(f"/api/v1/companies?{query}")
    assert error.status == 400
    assert named in error.error["message"]
    assert filled.ask(error.error["hint"].removeprefix("For example: ")).status == 200


def test_ten_thousand_repetitions_of_a_value_are_one(filled):
    many = filled.ask("/api/v1/companies?" + "&".join(["status=active"] * 10_000))
    assert many.json["pagination"]["total"] == filled.ask("/api/v1/companies?status=active").json["pagination"]["total"]


def test_links_keep_repeated_values_ranges_and_commas(filled):
    query = "status=active&status=inactive&type=a%2Cb&type=corporation&treasuryMax=1.5M&listedTo=2030-01-31&pageSize=2"
    answer = filled.ask(f"/api/v1/companies?{query}&facets=status")
    following = answer.headers["link"].split('rel="next"')[0].rpartition("<")[2].partition(">")[0]
    assert answer.json["pagination"]["total"] == 0  # no company here has a date
    for part in ("status=active&status=inactive", "type=a%2Cb&type=corporation", "treasuryMax=1500000.00"):
        assert part in answer.headers["link"]
    assert "listedTo=2030-01-31" in following
    assert "facets=status" in following


def test_facets_of_another_list_are_ignored_like_its_filters_and_its_own_are_counted(filled):
    assert filled.ask("/api/v1/facets?list=people&facets=type").json["data"] == {}
    assert list(filled.ask("/api/v1/facets?list=people&facets=type,title").json["data"]) == ["title"]
    counted = filled.ask("/api/v1/facets?status=active&status=upcoming&facets=status,hasToken").json
    selected = {each["value"]: each.get("selected") for each in counted["data"]["status"]["values"]}
    assert selected == {"active": True, "upcoming": True, "inactive": None}
    assert counted["total"] == sum(each["count"] for each in counted["data"]["hasToken"]["values"])
    assert filled.ask("/api/v1/frameworks?facets=kind").json["facets"]["kind"]["more"] == 0
