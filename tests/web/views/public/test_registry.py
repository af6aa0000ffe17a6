"""The public pages: what a visitor sees, from the published documents alone."""

import gzip
import io
import json
import re
import xml.etree.ElementTree as ET
import zipfile
from html import escape, unescape
from urllib.parse import quote

import brotli
import html5lib
import pytest
from django.template.base import Variable, VariableDoesNotExist
from django.test import Client

from make.accounts import account, signed_in
from make.published import Publisher, company, framework, person
from muniment.kernel.zstandard import zstd
from muniment.store.published import put_stamp
from muniment.store.reader import Reader
from muniment.web.connecting.clients import clients
from muniment.web.connecting.links import tool_servers
from muniment.web.requests import page_cache, static_files
from muniment.web.views.public import feeds

HOSTILE = '<script>alert("x")</script>'
PAGES = [
    "/",
    "/companies",
    "/companies?q=harbour",
    "/companies?status=upcoming",
    "/companies?page=999",
    "/people",
    "/people?q=layla",
    "/companies/harbour",
    "/companies/bare",
    "/companies/hostile",
    "/people/layla",
    "/frameworks",
    "/frameworks?kind=program",
    "/frameworks/tide-score",
    "/connect",
    "/companies/no-such-company",
]


def harbour():
    made = company(
        1,
        "harbour",
        day=739_000,
        description="Tidal power that towns own.",
        name="Harbour Commons",
        symbol="HARB",
        icon="https://elsewhere.example/logo.png",
        website="https://harbour.example",
        body="# About us\n\nWe **build** generators.",
        socials={"twitter": "@harbour", "email": "hello@harbour.example", "linkedin": "javascript:alert(1)"},
        capTable=[
            {"name": f"Holder {n}", "address": f"0x{n}", "tokens": str(n), "percentage": n / 100} for n in range(1, 60)
        ],
        theirField="kept",
    )
    bundle = json.loads(made.body)
    bundle["data"] |= {
        "distribution": {"method": "vote", "pools": [{"name": "Members", "percentage": 60}]},
        "proposals": [{"id": "p", "title": "A tenth harbour", "status": "passed", "votes": {"for": 3, "against": 1}}],
        "positions": [{"title": "Engineer", "person": {"name": "ليلى حداد", "slug": "layla"}}],
    }
    return changed(made, bundle)


def changed(document, body):
    return type(document)(
        **{name: getattr(document, name) for name in document.__struct_fields__} | {"body": wire(body)}
    )


def wire(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    made.publish(
        harbour(),
        company(2, "bare"),
        company(
            3, "hostile", name=HOSTILE, description=HOSTILE, body=HOSTILE, type=HOSTILE, website="javascript:alert(1)"
        ),
        *(company(n, f"more-{n}") for n in range(4, 40)),
        person(1, "layla", name="ليلى حداد", bio="Builds **turbines**."),
        framework(1, "tide-score"),
    )
    yield made
    made.close()


@pytest.fixture
def visitor(publisher, tmp_path):
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()


def text(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 200, (path, answer.content[:300])
    return answer.content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_valid_html_without_script_inside_and_without_foreign_addresses(visitor, path):
    answer = visitor.get(path)
    html = answer.content.decode()
    parser = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False)
    tree = parser.parse(html)
    assert list(parser.errors) == []
    for script in tree.iter("script"):
        assert script.get("src", "").startswith("/static/") or script.get("type") == "application/ld+json"
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        assert not [name for name in element.attrib if name.startswith("on") or name == "style"], element.attrib
        loaded = element.get("src") or (element.get("href") if element.tag == "link" else None)
        if loaded and element.get("rel") not in {"canonical", "alternate"}:
            assert loaded.startswith("/"), loaded
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert "script-src 'self'" in answer["Content-Security-Policy"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/companies", "/companies/harbour", "/connect"])
def test_one_time_messages_appear_on_no_public_page(visitor, path):
    told = signed_in(account())
    told.post("/manage/credits", {"credits": "1"})
    answer = told.get(path)
    assert b"notice" not in answer.content
    assert "Set-Cookie" not in answer
    assert answer.content == visitor.get(path).content
    assert b"does not sell credits" in told.get("/manage").content


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_every_visitor_gets_the_same_bytes_and_headers_and_the_database_is_not_asked(
    visitor, path, django_assert_num_queries
):
    browsers = [signed_in(account()), signed_in(account("judge@registry.example", "reviewer"))]
    expected = visitor.get(path)
    assert not expected.cookies
    for browser in browsers:
        with django_assert_num_queries(0):
            answer = browser.get(path)
        assert answer.content == expected.content
        assert answer.headers == expected.headers
        assert not answer.cookies


def test_visitors_are_offered_to_sign_in_and_to_list_their_organization(visitor):
    html = text(visitor, "/companies/harbour")
    assert '<a class="for-visitors" href="/manage">Sign in</a>' in html
    assert 'href="/manage/companies/new">List your organization</a>' in html


def test_a_company_page_shows_its_facts_team_votes_shares_and_body(visitor):
    html = text(visitor, "/companies/harbour")
    for words in ("Harbour Commons", "HARB", "Tidal power", "<strong>build</strong>", "ليلى حداد", "A tenth harbour"):
        assert words in html
    assert html.count("<svg viewBox") >= 3
    assert "Their field" in html
    assert "linkedin" not in html.lower()


def test_a_company_page_shows_when_it_changed(visitor, publisher):
    assert text(visitor, "/companies/harbour").count("<time") == 1
    publisher.publish(harbour(), at="2026-05-07T10:00:00.000000Z")
    html = text(visitor, "/companies/harbour")
    assert "7 May 2026" in html
    assert html.index("<li>Updated <time") < html.index("Added to this registry <time")


@pytest.mark.parametrize(
    ("members", "label"),
    [
        ({"listedAt": "2024-10-06"}, "Listed at its source"),
        ({"createdAt": "March 2024"}, "Listed at its source"),
        ({"listedAt": "2026-05-07"}, "Listed"),
        ({"createdAt": "May 2026"}, "Listed"),
        ({"createdAt": "in spring"}, "Listed"),
    ],
)
def test_a_date_of_listing_before_the_registry_had_the_company_is_that_of_its_source(
    publisher, visitor, members, label
):
    publisher.publish(company(70, "kelp", **members), at="2026-05-07T10:00:00.000000Z")
    page_cache.reader().refresh()
    html = text(visitor, "/companies/kelp")
    assert "Added to this registry" in html
    assert re.search(rf"<dt>{label}</dt>", html)
    for n in range(9):  # then the page shows the latest changes alone
        fields = ("treasury" if n % 2 else "teamSize",)
        publisher.publish(company(70, "kelp", **members, teamSize=n), at="2026-05-08T10:00:00.000000Z", fields=fields)
    page_cache.reader().refresh()
    later = text(visitor, "/companies/kelp")
    assert "Added to this registry" not in later
    assert "<dt>Listed</dt>" in later


def test_a_remote_logo_shows_as_a_monogram(visitor):
    html = text(visitor, "/companies/harbour")
    assert "<img" not in html
    assert 'aria-hidden="true">HC</span>' in html


def test_user_input_is_shown_as_text_everywhere(visitor):
    for path in ("/companies/hostile", "/companies", "/companies?type=" + quote(HOSTILE), "/feed.atom"):
        assert "<script>alert" not in text(visitor, path)
    assert 'href="javascript:' not in text(visitor, "/companies/hostile")


def test_json_ld_describes_the_organization_and_cannot_end_its_element(visitor):
    for slug, name in (("harbour", "Harbour Commons"), ("hostile", HOSTILE)):
        block = re.search(r'<script type="application/ld\+json">(.*?)</script>', text(visitor, f"/companies/{slug}"))
        described = json.loads(block[1])
        assert (described["@type"], described["name"]) == ("Organization", name)


def described(visitor, path):
    return json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', text(visitor, path))[1])


def test_json_ld_describes_the_first_positions_and_names_the_page_of_all(visitor, publisher):
    team = [{"title": f"Seat {n}", "person": {"name": f"Person {n}"}} for n in range(300)]
    publisher.publish(
        company(60, "wide", positions=team),
        person(60, "busy", positions=tuple((f"Seat {n}", f"more-{n}") for n in range(20_000))),
        company(61, "narrow", positions=team[:50]),
    )
    page_cache.pages.clear()
    wide, busy = described(visitor, "/companies/wide"), described(visitor, "/people/busy")
    assert (len(wide["member"]), len(busy["worksFor"])) == (50, 50)
    for profile, path, total in ((wide, "/companies/wide/team", 300), (busy, "/people/busy/positions", 20_000)):
        whole = profile["subjectOf"]
        assert whole["url"].endswith(path)
        assert whole["mainEntity"]["numberOfItems"] == total
        assert visitor.get(path).status_code == 200
    assert len(text(visitor, "/people/busy")) < 64 * 1024
    assert "subjectOf" not in described(visitor, "/companies/narrow")


@pytest.mark.parametrize("count", [49, 50, 51])
def test_json_ld_names_the_page_of_all_positions_beyond_the_fiftieth(visitor, publisher, count):
    team = [{"title": f"Seat {n}", "person": {"name": f"Person {n}"}} for n in range(count)]
    publisher.publish(
        company(60, "wide", positions=team),
        person(60, "busy", positions=tuple(("Seat", f"c-{n}") for n in range(count))),
    )
    page_cache.pages.clear()
    for path, member, page in (("/companies/wide", "member", "team"), ("/people/busy", "worksFor", "positions")):
        profile = described(visitor, path)
        assert len(profile[member]) == min(count, 50)
        assert ("subjectOf" in profile) == (count == 51)
        if count == 51:
            assert profile["subjectOf"]["url"].endswith(f"{path}/{page}")
            assert profile["subjectOf"]["mainEntity"] == {"@type": "ItemList", "numberOfItems": 51}


def test_search_and_filters_lead_to_the_same_companies_as_the_reader(visitor):
    html = text(visitor, "/companies?q=harb")
    assert "1 company" in html
    assert "/companies/harbour" in html
    assert "0 companies" in text(visitor, "/companies?theme=none-such")


def test_pages_of_a_list_lead_to_each_other_and_keep_the_filter(visitor):
    html = text(visitor, "/companies?status=active&page=2")
    assert 'rel="prev" href="/companies?status=active"' in html
    assert "Page 2 of 2" in html


@pytest.mark.parametrize(
    "query", ["page=0", "page=-1", "page=1.5", "page=x", "page=99999999999", "status=gone", "raising=1"]
)
def test_a_value_that_a_list_does_not_take_is_refused_with_a_way_out(visitor, query):
    answer = visitor.get(f"/companies?{query}")
    assert answer.status_code == 400
    assert b'href="/companies"' in answer.content


def test_an_unknown_slug_is_a_page_with_the_nearest_names(visitor):
    answer = visitor.get("/companies/harbor")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
    assert b'href="/companies/harbour"' in answer.content


def test_a_search_text_is_never_read_as_a_filter(visitor):
    searched = visitor.get("/companies", {"q": "harbour&status=inactive"})
    assert visitor.get("/companies", {"q": "harbour", "status": "inactive"}).content != searched.content


def test_a_page_is_kept_until_something_is_published_and_answers_304(visitor, publisher):
    first = visitor.get("/companies")
    again = visitor.get("/companies", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert visitor.get("/companies")["ETag"] == first["ETag"]
    publisher.publish(company(90, "newcomer", day=739_001, name="Newcomer"))
    after = visitor.get("/companies", headers={"If-None-Match": first["ETag"]})
    assert after.status_code == 200
    assert b"Newcomer" in after.content
    for path in ("/", "/feed.atom", "/sitemap-companies-1.xml", "/companies?q=newcomer"):
        assert b"newcomer" in visitor.get(path).content


@pytest.mark.parametrize("path", ["/frameworks", "/feed.atom", "/sitemap.xml"])
def test_a_page_and_a_feed_answer_304_to_the_date_of_their_edition(visitor, publisher, path):
    put_stamp(publisher.connection, publisher.publish(company(91)), "2026-01-05T10:00:04Z")
    first = visitor.get(path)
    assert first["Last-Modified"] == "Mon, 05 Jan 2026 10:00:04 GMT"
    again = visitor.get(path, headers={"If-Modified-Since": first["Last-Modified"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    for other in ({"If-Modified-Since": "Mon, 05 Jan 2026 10:00:06 GMT"}, {"If-None-Match": '"other"'}):
        assert visitor.get(path, headers={"If-Modified-Since": first["Last-Modified"], **other}).status_code == 200
    publisher.publish(company(92), framework(93, "eddy-score"))
    assert visitor.get(path, headers={"If-Modified-Since": first["Last-Modified"]}).status_code == 200


def test_pages_look_for_no_name_that_is_missing(visitor, monkeypatch):
    # Django takes 12 to 24 microseconds to find out that a name is missing; the page of a company had 16 such names.
    missing = []
    original = Variable._resolve_lookup

    def resolve(self, context):
        try:
            return original(self, context)
        except VariableDoesNotExist:
            missing.append(self.var)
            raise

    monkeypatch.setattr(Variable, "_resolve_lookup", resolve)
    for path in ("/companies/harbour", "/people/layla", "/frameworks/tide-score"):
        assert visitor.get(path).status_code == 200
    assert set(missing) == set()


def test_public_pages_set_no_cookie_and_ask_no_database(visitor, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        for path in PAGES:
            assert not visitor.get(path).cookies


STYLES = "/static/web/muniment.css"
DECODERS = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": zstd.decompress}


@pytest.mark.parametrize("path", ["/companies", "/feed.atom", STYLES])
@pytest.mark.parametrize("encoding", ["br", "gzip", "zstd"])
def test_pages_and_files_are_compressed_under_a_strong_tag_of_their_own(visitor, path, encoding):
    plain, small = visitor.get(path), visitor.get(path, headers={"Accept-Encoding": encoding})
    assert small["Content-Encoding"] == encoding
    assert DECODERS[encoding](small.content) == plain.content
    assert small["ETag"] == f'{plain["ETag"][:-1]}-{encoding}"'
    assert len(small.content) < len(plain.content)
    is_page = path == "/companies"
    vary = "Accept-Encoding, Accept-Language, Cookie" if is_page else "Accept-Encoding"
    assert plain["Vary"] == small["Vary"] == vary


@pytest.mark.parametrize("path", ["/companies", STYLES])
@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [("br;q=0", None), ("gzip, br;q=0", "gzip"), ("gzip;q=0.9, br;q=0.1", "gzip"), ("identity", None), ("*", "zstd")],
)
def test_pages_and_files_never_come_in_an_encoding_that_the_client_refuses(visitor, path, accepted, chosen):
    assert visitor.get(path, headers={"Accept-Encoding": accepted}).headers.get("Content-Encoding") == chosen


@pytest.mark.parametrize("path", ["/companies", STYLES])
def test_pages_and_files_answer_304_to_the_tag_of_any_encoding(visitor, path):
    tag = visitor.get(path)["ETag"]
    for known in (tag, f'{tag[:-1]}-br"', f"W/{tag}", f'"other", W/{tag}', f'"a,b" ,{tag[:-1]}-zstd"', "*"):
        answer = visitor.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
        assert "Content-Type" not in answer.headers
    for unknown in ('"other"', f'{tag[:-1]}-lzma"', tag.strip('"'), f'"x{tag[1:]}', ""):
        assert visitor.get(path, headers={"If-None-Match": unknown}).status_code == 200


def test_a_page_takes_get_and_head_only(visitor):
    assert visitor.head("/companies").status_code == 200
    refused = visitor.post("/companies")
    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")


def test_the_site_map_lists_every_public_address(visitor):
    index = ET.fromstring(visitor.get("/sitemap.xml").content)
    parts = [element.text for element in index.iter() if element.tag.endswith("loc")]
    listed = []
    for part in parts:
        tree = ET.fromstring(visitor.get(part.removeprefix("http://testserver")).content)
        listed += [element.text for element in tree.iter() if element.tag.endswith("loc")]
    assert len(listed) == 39 + 1 + 1
    assert "http://testserver/companies/harbour" in listed
    assert visitor.get("/sitemap-companies-2.xml").status_code == 404


def test_a_long_site_map_is_cut_into_parts_and_each_reads_its_own_addresses_alone(visitor, monkeypatch):
    read, dated = [], feeds.dated_keys
    monkeypatch.setattr(feeds, "dated_keys", lambda *given: read.extend(found := dated(*given)) or found)
    monkeypatch.setattr("muniment.web.views.public.feeds.ADDRESSES_A_MAP", 20)
    assert visitor.get("/sitemap.xml").content.count(b"sitemap-companies-") == 2
    first, second = (visitor.get(f"/sitemap-companies-{number}.xml").content.decode() for number in (1, 2))
    assert (first.count("<url>"), second.count("<url>")) == (20, 19)
    assert len(read) == len(set(read)) == 39
    assert all(
        f"/companies/{key}<" in text for text, part in ((first, read[:20]), (second, read[20:])) for key, _ in part
    )
    assert all(f"<lastmod>{at[:19]}Z</lastmod>" in first for _, at in read[:20])


def test_the_feed_is_atom_with_the_newest_first(visitor):
    feed = ET.fromstring(visitor.get("/feed.atom").content)
    titles = [e.findtext("{http://www.w3.org/2005/Atom}title") for e in feed.iter("{http://www.w3.org/2005/Atom}entry")]
    assert titles[0] == "Harbour Commons"
    assert HOSTILE in titles


def test_robots_txt_names_the_sitemap_and_the_private_paths(visitor):
    told = visitor.get("/robots.txt").content.decode()
    assert "Sitemap: http://testserver/sitemap.xml" in told
    assert all(f"Disallow: {path}\n" in told for path in ("/manage", "/review", "/operate", "/accounts", "/oauth"))
    assert "Disallow: /*?*&" in told


def test_connect_shows_this_instances_addresses_for_every_client(visitor):
    html = text(visitor, "/connect")
    for words in ("Claude Code", "Cursor", "VS Code", "ChatGPT", "mcp-remote", "curl"):
        assert words in html
    assert "claude mcp add --transport http registry http://testserver/api/mcp" in html


def test_connect_shows_each_link_as_it_is_and_sends_bundles(visitor):
    html = text(visitor, "/connect")
    for client in clients(*tool_servers("http://testserver", "Muniment")):
        for link in client["links"]:
            assert f'<a class="button" href="{escape(link["href"])}">{escape(link["text"])}</a>' in html
    for name in ("registry", "my-registry"):
        answer = visitor.get(f"/connect/{name}.mcpb")
        assert answer["Content-Disposition"] == f'attachment; filename="{name}.mcpb"'
        assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
        again = visitor.get(f"/connect/{name}.mcpb", headers={"If-None-Match": answer["ETag"]})
        assert again.status_code == 304
    assert visitor.get("/connect/other.mcpb").status_code == 404


def test_an_empty_registry_says_what_it_is_and_what_to_do(tmp_path):
    empty = Publisher(tmp_path / "empty.sqlite3")
    reader = Reader(tmp_path / "empty.sqlite3")
    page_cache.use(reader)
    client = Client()
    assert "No companies yet" in text(client, "/")
    for path in ("/companies", "/people", "/frameworks", "/map", "/compare"):
        html = text(client, path)
        assert 'class="button" href="/manage/companies/new">List your organization</a>' in html, path
        assert 'role="search" aria-label="Add' not in html
        assert 'id="search"' not in html
        assert "lists.js" not in html
    assert "No people yet" in text(client, "/people")
    assert "No frameworks yet" in text(client, "/frameworks")
    assert visitor_feed(client)
    page_cache.use(None)
    reader.close()
    empty.close()


def test_the_public_history_says_which_fields_changed(publisher, visitor):
    publisher.publish(harbour(), fields=("treasury", "capTable"))
    text = re.sub(r"<[^>]+>|\s+", " ", visitor.get("/companies/harbour").content.decode())
    assert re.search(r"Updated\s*:\s*Treasury, Cap table\s+\d", text)
    assert re.search(r"Added to this registry\s+\d", text)


def test_a_history_that_the_feed_no_longer_has_says_so(tmp_path):
    publisher = Publisher(tmp_path / "old.sqlite3")
    publisher.publish(company(1, "recent"), company(2, "old"))
    publisher.connection.execute("DELETE FROM published_change WHERE key = 'old'")
    reader = Reader(tmp_path / "old.sqlite3")
    page_cache.use(reader)
    sentence = "The change feed no longer has a change of this listing"
    assert sentence in text(Client(), "/companies/old/history")
    assert sentence not in text(Client(), "/companies/recent/history")
    page_cache.use(None)
    reader.close()
    publisher.connection.close()


def visitor_feed(client):
    return ET.fromstring(client.get("/feed.atom").content) is not None


def test_a_first_visit_costs_at_most_100_kilobytes(visitor):
    total = 0
    for path in ("/companies/harbour", "/companies", "/"):
        page = visitor.get(path, headers={"Accept-Encoding": "br"})
        parts = re.findall(r'(?:src|href)="(/static/[^"]+)"', visitor.get(path).content.decode())
        total = len(page.content) + sum(
            len(visitor.get(part, headers={"Accept-Encoding": "br"}).content) for part in parts
        )
        assert total < 100_000


def test_static_files_are_immutable_under_their_digest(visitor):
    html = text(visitor, "/")
    address = re.search(r'href="(/static/web/muniment\.[0-9a-f]{12}\.css)"', html)[1]
    answer = visitor.get(address)
    assert answer["Cache-Control"] == static_files.FOR_EVER
    assert answer["Content-Type"] == "text/css; charset=utf-8"
    assert visitor.get(address, headers={"If-None-Match": answer["ETag"]}).status_code == 304
    assert visitor.get("/static/web/muniment.css")["Cache-Control"] == static_files.FOR_A_WHILE
    stale = address.replace(address.split(".")[1], "0" * 12)
    assert visitor.get(stale)["Cache-Control"] == static_files.FOR_A_WHILE


def test_the_bundled_fonts_are_immutable_and_loaded_once(visitor):
    html = text(visitor, "/")
    preloaded = re.findall(
        r'<link rel="preload" href="/static/web/([^"]+)" as="font" type="font/woff2" crossorigin>', html
    )
    styles = text(visitor, re.search(r'href="(/static/web/muniment\.[0-9a-f]{12}\.css)"', html)[1])
    named = re.findall(r'url\("([^"]+)"\)', styles)
    assert len(preloaded) == 2
    assert len(named) == 4
    assert set(preloaded) < set(named)  # the same addresses, so that no font is loaded twice
    for name in named:
        answer = visitor.get(f"/static/web/{name}")
        assert answer["Content-Type"] == "font/woff2"
        assert answer["Cache-Control"] == static_files.FOR_EVER
        assert answer.content[:4] == b"wOF2"
    assert "font-src 'self'" in visitor.get("/")["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", ["../settings.py", "web/../../settings.py", "%2e%2e/settings.py", "web", "none.css", "/etc/passwd"]
)
def test_static_files_are_only_those_of_the_static_folders(visitor, path):
    assert visitor.get(f"/static/{path}").status_code == 404


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/companies/", "/companies"),
        ("/Companies", "/companies"),
        ("/people//", "/people"),
        ("/companies/Harbour", "/companies/harbour"),
        ("/COMPANIES/HARBOUR/Team?page=2", "/companies/harbour/Team?page=2"),
        ("/companies/harbour/", "/companies/harbour"),
        ("/people/Layla/", "/people/layla"),
        ("/frameworks/Tide-Score?x=%2F%2Fevil.example", "/frameworks/tide-score?x=%2F%2Fevil.example"),
    ],
)
def test_another_form_of_an_address_leads_to_its_page(visitor, path, there):
    answer = visitor.get(path)
    assert (answer.status_code, answer["Location"]) == (308, there)
    assert answer["Cache-Control"] == "public, max-age=3600"


@pytest.mark.parametrize(
    "path",
    ["/companies/No-Such", "/companies//evil.example/", "/Companies/%2F%2Fevil.example/", "/companies/\\evil.example/"],
)
def test_an_address_without_a_page_leads_nowhere(visitor, path):
    answer = visitor.get(path)
    assert (answer.status_code, answer.headers.get("Location")) == (404, None)


def test_a_browser_that_knows_only_favicon_ico_gets_the_mark(visitor):
    answer = visitor.get("/favicon.ico")
    assert answer.status_code == 200
    assert answer.content[:4] == b"\0\0\1\0"
    assert answer["Cache-Control"] == static_files.FOR_A_WHILE


@pytest.mark.parametrize("name", ["apple-touch-icon.png", "apple-touch-icon-precomposed.png"])
def test_a_phone_gets_an_icon_and_the_name_of_the_registry(visitor, name):
    icon = visitor.get(f"/{name}")
    assert (icon.status_code, icon["Content-Type"], icon.content[:4]) == (200, "image/png", b"\x89PNG")
    manifest = visitor.get("/manifest.webmanifest")
    assert manifest["Content-Type"] == "application/manifest+json; charset=utf-8"
    shown = manifest.json()
    assert (shown["name"], shown["start_url"]) == ("Muniment", "/")
    assert visitor.get(shown["icons"][0]["src"]).status_code == 200
    head = text(visitor, "/").partition("</head>")[0]
    assert '<link rel="manifest" href="/manifest.webmanifest">' in head
    assert '<link rel="apple-touch-icon"' in head


def test_a_listing_without_a_description_does_not_say_that_it_has_none(visitor):
    assert "No description yet" not in text(visitor, "/companies/bare")


def test_a_printed_page_says_whose_it_is_and_of_which_day(visitor):
    html = text(visitor, "/companies/harbour")
    printed = re.search(r'<p class="on-paper"><strong>Muniment</strong> · (\S+) · (\d+ \w+ \d{4})</p>', html)
    assert printed[1] == "http://testserver/companies/harbour"


@pytest.mark.parametrize(
    "path", ["/companies?status=active", "/search?q=harbour", "/compare?c=harbour&c=bare", "/data/query?sql=SELECT+1"]
)
def test_a_printed_list_names_the_address_of_what_is_on_the_paper(visitor, path):
    printed = re.search(r'<p class="on-paper"><strong>Muniment</strong> · (\S+) · ', text(visitor, path))
    assert unescape(printed[1]) == f"http://testserver{path}"


def test_the_newest_listings_are_a_json_feed(visitor):
    feed = visitor.get("/feed.json").json()
    assert feed["items"][0]["title"] == "Harbour Commons"
    assert HOSTILE in [item["title"] for item in feed["items"]]
    assert 'type="application/feed+json"' in visitor.get("/").text


@pytest.mark.parametrize(("kind", "path"), [("company", "/companies/hostile"), ("person", "/people/hostile")])
def test_a_listing_has_a_json_feed_of_its_changes(visitor, kind, path):
    if visitor.get(path).status_code == 404:
        path = path.replace("hostile", first_of(visitor, path))
    feed = visitor.get(f"{path}/feed.json").json()
    assert feed["home_page_url"] == f"http://testserver{path}"
    assert [item["url"] for item in feed["items"]] == [f"http://testserver{path}"] * len(feed["items"])
    assert feed["items"][-1]["content_text"].startswith("Added to this registry")
    assert f'href="{path}/feed.json"' in visitor.get(path).text


def first_of(visitor, path):
    room = path.split("/")[1]
    return visitor.get(f"/{room}.feed.json").json()["items"][0]["id"].rpartition("/")[2]


def test_a_listing_that_is_not_published_has_no_feed(visitor):
    for path in ("/companies/nowhere/feed.json", "/people/nowhere/feed.json"):
        assert visitor.get(path).status_code == 404
