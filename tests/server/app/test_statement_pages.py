"""The pages of statements on a real server: asked once, charged to the visitor, and escaped."""

import xml.etree.ElementTree as ET
from urllib.parse import urlencode

import pytest

from make.pages import valid
from services.ports import wait_until

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def site(demo):
    wait_until(lambda: demo.get("/api/v1/tables").status == 200, within_s=60, what="the tables")
    return demo


def page(site, sql, **parameters):
    answer = site.get(f"/data/query?{urlencode({'sql': sql, **parameters})}")
    assert answer.status == 200
    html = answer.body.decode()
    valid(html)
    return html


def test_a_statement_is_answered_with_a_chart_links_and_the_time_without_scripts(site):
    html = page(site, "SELECT type, count(*) AS n FROM companies GROUP BY type", _sort="-2")
    assert "chart-bar" in html
    assert 'aria-sort="descending"' in html
    assert "ms of CPU time" in html
    assert "/api/v1/query?format=csv&amp;sql=SELECT" in html
    assert "answered from memory" in page(site, "SELECT type, count(*) AS n FROM companies GROUP BY type")


def test_the_rows_of_a_whole_table_are_drawn_only_if_a_chart_is_chosen(site):
    six = "SELECT slug, treasury, treasury_minor, type, status, name FROM companies"
    seven = six.replace("name", "name, website")
    assert "chart-plot" in page(site, six)
    html = page(site, seven)
    assert "chart-plot" not in html
    assert "_chart=scatter" in html
    assert "chart-plot" in page(site, seven, _chart="scatter")


def test_parameters_are_fields_and_a_missing_one_is_asked_for(site):
    sql = "SELECT slug AS company FROM companies WHERE slug = :slug -- :no"
    html = page(site, sql)
    assert 'name="slug"' in html
    assert 'name="no"' not in html
    assert "Fill in the parameters" in html
    assert 'href="/companies/quillmere"' in page(site, sql, slug="quillmere")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nmae FROM companies", "Did you mean companies.name"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("DROP TABLE companies", "Only reading is allowed"),
        (f"SELECT '{HOSTILE}' AS \"{HOSTILE}\"", "&lt;script&gt;"),
        (f"SELECT {HOSTILE}", "&lt;script&gt;"),
        ("SELECT " + "1+" * 3_900 + "1", "notice bad"),
        ("SELECT '" + "x" * 7_900 + "'", "xxx…"),
    ],
)
def test_a_wrong_or_hostile_statement_is_named_and_never_run_as_html(site, sql, said):
    html = page(site, sql)
    assert said in html
    assert HOSTILE not in html


def test_more_rows_than_a_page_are_paged_and_sorted_as_a_whole(site):
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i FROM n"
    html = page(site, sql, _sort="-1", _page="3")
    assert "Rows 201 to 250 of 250" in html
    assert '<td class="number">1</td>' in html
    assert "Only the first 1,000 rows" in page(site, sql.replace("250", "1200"))


def test_a_saved_query_is_a_page_a_feed_and_a_frame(site):
    html = site.get("/data/queries/new-companies-by-month").body.decode()
    valid(html)
    assert "polyline" in html
    assert "&lt;iframe" in html
    feed = site.get("/data/queries/listings-without-a-description.atom")
    assert feed.headers["content-type"].startswith("application/atom+xml")
    ET.fromstring(feed.body)
    frame = site.get("/data/queries/companies-by-country/embed")
    assert "frame-ancestors *" in frame.headers["content-security-policy"]
    assert b"<script" not in frame.body
    assert site.get("/data/queries/none-such").status == 404


def test_links_name_only_what_was_chosen(site):
    """The chart that a saved query has by itself is no choice."""
    for slug, chart in (("people-in-several-teams", "none"), ("companies-by-country", "bar")):
        html = site.get(f"/data/queries/{slug}").body.decode()
        assert "_sort=" in html
        assert f"_chart={chart}" not in html.partition('class="orders')[0]
        assert "_chart=nonsense" not in site.get(f"/data/queries/{slug}?_chart=nonsense").body.decode()
    chosen = site.get("/data/queries/companies-by-country?_chart=none").body.decode()
    assert "_sort=-2&amp;_chart=none" in chosen
    assert "chart-bar" not in chosen
    assert 'href="/data/queries/companies-by-country"' in chosen


def test_every_shipped_query_is_answered(site):
    from muniment.registry_toml.queries import SHIPPED

    for query in SHIPPED:
        html = site.get(f"/data/queries/{query.slug}?company=quillmere").body.decode()
        assert 'role="alert"' not in html, query.slug
        assert "ms of CPU time" in html or "answered from memory" in html, query.slug
