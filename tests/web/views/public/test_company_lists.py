"""A company of any size has a page of bounded size, and every row of its lists is on a page of its own."""

import json
import re

import pytest
from django.test import Client

from make.published import Publisher, company, person
from muniment.store.reader import Reader
from muniment.web.requests import page_cache

MOST_BYTES = 150_000
PEOPLE, TITLES, PROPOSALS, HOLDERS, ROUNDS = 500, 4, 1_000, 5_000, 200


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "published.sqlite3"
    publisher = Publisher(path)
    reader = Reader(path)
    publisher.publish(largest(), company(2, "small"), *alone(), *people())
    for year in range(2027, 2039):
        publisher.publish(largest(), at=f"{year}-01-01T00:00:00.000000Z", fields=("treasury",))
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()
    publisher.close()


def alone():
    """Return a company with one person, who has no position elsewhere."""
    made = company(3, "alone", positions=[{"title": "Chair", "person": {"slug": "hermit", "name": "Hermit"}}])
    return made, person(9_001, "hermit", positions=(("Chair", "alone"),))


def largest():
    made = company(
        1,
        "largest",
        name="Largest",
        body="\n\n".join(f"## Part {n}\n\n{'Long words. ' * 20}" for n in range(100)),
        treasuryNote="of all funds",
        capTable=[{"name": f"Holder {n}", "address": f"0x{n:040}", "percentage": 0.01} for n in range(HOLDERS)],
    )
    bundle = json.loads(made.body)
    bundle["data"] |= {
        "positions": [
            {"title": f"Author {n} of {turn}", "person": {"name": f"Person {n}", "slug": f"person-{n}"}}
            for turn in range(TITLES)
            for n in range(PEOPLE)
        ],
        "proposals": [
            {
                "id": f"p{n}",
                "title": f"Proposal {n}.",
                "status": "active" if n < 3 else "passed" if n % 2 else "failed",
                "endDate": "2999-01-01" if n < 3 else f"20{n % 20:02}-01-01",
                "votes": {"for": n, "against": 7},
            }
            for n in range(PROPOSALS)
        ],
        "fundingRounds": [{"name": f"Round {n}.", "opened": "2020-01-01"} for n in range(ROUNDS)],
    }
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return type(made)(**{**fields, "body": json.dumps(bundle).encode()})


def people():
    return [
        person(1, "person-0", positions=tuple((f"Author {n}", "largest") for n in range(150))),
        *(person(n + 1, f"person-{n}", positions=(("Chair", "largest"), ("Chair", "small"))) for n in range(1, 4)),
    ]


def text(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 200, path
    html = answer.content.decode()
    assert len(html) < MOST_BYTES, path
    return html


def pages(visitor, path):
    """Return all pages of a list, by the links to the next."""
    found = []
    while path:
        found.append(text(visitor, path))
        following = re.search(r'rel="next" href="([^"]+)"', found[-1])
        path = following[1].replace("&amp;", "&") if following else None
    return found


def test_the_page_shows_the_beginning_of_each_list_and_links_to_the_whole(visitor):
    html = text(visitor, "/companies/largest")
    assert html.count('class="role"') < 60
    for part, words in (
        ("about", "Read the whole text"),
        ("team", "Show all 500 people"),
        ("proposals", "Show all 1,000 proposals"),
        ("cap-table", "Show all 5,000 holders"),
        ("funding", "Show all rounds"),
        ("history", "Show the whole history"),
    ):
        assert re.search(rf'<a href="/companies/largest/{part}">{words}</a>', html), part
    votes = html[html.index('class="vote"') :]
    assert votes.index("Proposal 0.") < votes.index("Proposal 2.") < votes.index("2019")
    assert "The ten largest have 0.1% of all tokens" in html
    assert "Treasury note" in html


def tabs(html):
    nav = html[html.index('class="sections') :].partition("</nav>")[0]
    return re.findall(r'<a href="([^"]+)"(?: aria-current="page")?>([^<]+)', nav)


@pytest.mark.parametrize("slug", ["largest", "small"])
def test_all_pages_of_a_company_have_the_same_tabs_and_none_leads_to_an_empty_page(visitor, slug):
    home = f"/companies/{slug}"
    shown = tabs(text(visitor, home))
    assert shown[0] == (home, "Overview")
    for address, _ in shown:
        html = text(visitor, address)
        assert tabs(html) == shown
        assert 'class="empty"' not in html or address == home


def test_the_network_is_no_tab_where_nobody_has_a_position_elsewhere(visitor):
    for path in ("", "/team"):
        labels = [label.strip() for _, label in tabs(text(visitor, f"/companies/alone{path}"))]
        assert "Team" in labels
        assert "Network" not in labels
    assert "Network" in [label.strip() for _, label in tabs(text(visitor, "/companies/largest/team"))]


@pytest.mark.whole(keeps=0)
def test_every_row_is_on_a_page_of_its_list(visitor):
    team = "".join(pages(visitor, "/companies/largest/team"))
    assert all(f">Person {n}<" in team for n in range(PEOPLE))
    proposals = "".join(pages(visitor, "/companies/largest/proposals"))
    assert all(f"Proposal {n}." in proposals for n in range(PROPOSALS))
    holders = "".join(pages(visitor, "/companies/largest/cap-table"))
    assert all(f"Holder {n}<" in holders for n in range(HOLDERS))
    rounds = "".join(pages(visitor, "/companies/largest/funding"))
    assert all(f"Round {n}." in rounds for n in range(ROUNDS))
    parts = "".join(pages(visitor, "/companies/largest/about"))
    assert all(f"Part {n}<" in parts for n in range(100))
    assert text(visitor, "/companies/largest/history").count("Updated") == 12
    titles = pages(visitor, "/people/person-0/positions")
    assert len(titles) == 2
    assert all(f"Author {n}<" in "".join(titles) for n in range(150))
    for page in titles:
        assert len(re.findall('<h2><a href="/companies/', page)) == 1, "a run of positions names its organization once"
        assert 'href="/people/person-0">Back to the profile' in page


def test_proposals_are_filtered_by_status(visitor):
    found = pages(visitor, "/companies/largest/proposals?status=active")
    assert len(found) == 1
    assert [n for n in range(10) if f"Proposal {n}." in found[0]] == [0, 1, 2]
    assert len(pages(visitor, "/companies/largest/proposals?status=nothing")) == 34


def test_proposals_and_holders_are_found_by_their_words(visitor):
    page = text(visitor, "/companies/largest/proposals?q=%20proposal%20999")
    assert re.findall(r"Proposal \d+\.", page)[:1] == ["Proposal 999."]
    assert 'aria-current="true">All <span class="quiet">1<' in page
    assert "/companies/largest/proposals.csv?q=proposal+999" in page
    assert '<h2 class="unseen">Proposals</h2>' in page, "the headings of its rows are of the third level"
    assert "No proposal found" in text(visitor, "/companies/largest/proposals?q=nowhere")
    holder = text(visitor, f"/companies/largest/cap-table?q=0X{4_321:040}")
    assert re.findall(r"Holder \d+", holder) == ["Holder 4321"]
    assert "No holder found" in text(visitor, "/companies/largest/cap-table?q=nobody")
    rows = visitor.get("/companies/largest/cap-table.csv?q=holder%204321").content.decode().splitlines()
    assert len(rows) == 2, "the head and the holder that the page shows"


def test_a_searched_list_keeps_its_words_on_every_page_and_in_every_state(visitor):
    found = pages(visitor, "/companies/largest/proposals?q=proposal%2099")
    assert len(set(re.findall(r"Proposal 99\d?\.", "".join(found)))) == 11
    passed = text(visitor, "/companies/largest/proposals?q=proposal%2099&status=passed")
    assert "/companies/largest/proposals?q=proposal+99&amp;status=failed" in passed


def test_a_short_list_has_no_box_of_its_own(visitor):
    assert 'name="q" value="" aria-label="Find' not in text(visitor, "/companies/alone/proposals")
    assert 'aria-label="Find a proposal' in text(visitor, "/companies/largest/proposals")


def test_the_team_is_grouped_by_title(visitor):
    found = pages(visitor, "/companies/largest/team?by=role")
    assert len(found) == 50
    assert "Author 499 of 3" in found[-1]


def test_a_person_has_one_card_for_each_organization(visitor):
    html = text(visitor, "/people/person-0")
    assert html.count('<a class="card"') == 1
    assert "and 142 more" in html
    assert "Show all 150 positions" in html


def test_organizations_that_share_people_are_related(visitor):
    html = text(visitor, "/companies/largest")
    assert re.search(r'href="/companies/small">.*?3 people in common', html, re.DOTALL)


def test_a_listing_without_lists_says_so_on_their_pages(visitor):
    for part, words in (
        ("about", "no further text"),
        ("team", "names no people"),
        ("proposals", "has no proposals"),
        ("cap-table", "has no cap table"),
        ("funding", "no public funding rounds"),
    ):
        shown = text(visitor, f"/companies/small/{part}")
        assert words in shown
        assert 'href="/companies/small/suggest">Suggest edit</a>' in shown


@pytest.mark.parametrize("part", ["about", "team", "proposals", "cap-table", "funding", "history"])
def test_a_company_that_does_not_exist_has_no_lists(visitor, part):
    assert visitor.get(f"/companies/nowhere/{part}").status_code == 404
    assert visitor.get("/people/nowhere/positions").status_code == 404


@pytest.mark.parametrize(
    ("part", "head", "rows"),
    [
        ("team", "title,person.name,person.slug", PEOPLE * TITLES),
        ("proposals", "title,status,votes.for,votes.against,endDate", PROPOSALS),
        ("cap-table", "address,name,tokens,percentage", HOLDERS),
        ("funding", "name,", ROUNDS),
    ],
)
def test_every_list_is_a_file_for_spreadsheets(visitor, part, head, rows):
    page = visitor.get(f"/companies/largest/{part}").content.decode()
    assert f'href="/companies/largest/{part}.csv"' in page
    found = visitor.get(f"/companies/largest/{part}.csv")
    assert (found["Content-Type"], found.status_code) == ("text/csv; charset=utf-8", 200)
    assert found["Content-Disposition"] == f'attachment; filename="largest-{part}.csv"'
    lines = found.content.decode("utf-8-sig").splitlines()
    assert lines[0].startswith(head)
    assert len(lines) == rows + 1
    assert visitor.get(f"/companies/small/{part}.csv").content.count(b"\r\n") == 1
    assert f"/{part}.csv" not in visitor.get(f"/companies/small/{part}").content.decode()
    assert visitor.get(f"/companies/unknown/{part}.csv").status_code == 404


def test_the_file_of_proposals_has_the_chosen_state_and_the_delimiter_of_the_language(visitor):
    page = visitor.get("/companies/largest/proposals?status=active").content.decode()
    assert 'href="/companies/largest/proposals.csv?status=active"' in page
    found = visitor.get("/companies/largest/proposals.csv?status=active", headers={"accept-language": "de"})
    lines = found.content.decode("utf-8-sig").splitlines()
    assert lines[0] == "title;status;votes.for;votes.against;endDate"
    assert len(lines) == 4
    german = visitor.get("/companies?status=active", headers={"accept-language": "de"}).content.decode()
    assert "/api/v1/companies?status=active&amp;format=csv&amp;bom=1&amp;delimiter=semicolon" in german


@pytest.mark.parametrize("name", ["companies", "people"])
def test_every_list_page_links_its_whole_result_with_the_filters_in_force(visitor, name):
    page = visitor.get(f"/{name}?q=largest+person").content.decode()
    assert "format=csv" not in page or name == "people"
    page = visitor.get(f"/{name}?sort=name").content.decode()
    assert f'href="/api/v1/{name}?sort=name&amp;format=csv&amp;bom=1"' in page
    assert visitor.get(f"/{name}.csv?sort=name").url == f"/api/v1/{name}?sort=name&format=csv&bom=1"
