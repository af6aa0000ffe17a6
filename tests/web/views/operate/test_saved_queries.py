"""The operator's pages of saved queries."""

import html
import re

import pytest

from make.accounts import account, signed_in
from muniment import config
from muniment.accounts.models import SecurityEvent
from muniment.config import Config
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.settings import console_queries
from muniment.registry.settings.versions import apply_file, apply_settings, follow, latest_version, restore_version
from muniment.registry_toml.document import Query, RegistrySettings
from muniment.registry_toml.queries import SHIPPED, saved_queries, saved_query
from muniment.registry_toml.reading import InvalidSettings, parse, written
from muniment.schema.objects import registry_schema

pytestmark = pytest.mark.django_db
HOME = "/operate/queries"
SQL = "SELECT slug, name FROM companies WHERE city = :city"
OF_FILE = '[[queries]]\nslug = "harbours"\ntitle = "Harbours"\nsql = "SELECT slug FROM companies"\n'
BERTHS = {"of": "company", "key": "berths", "label": "Berths", "kind": "number"}


@pytest.fixture(autouse=True)
def own_folder(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    return tmp_path


@pytest.fixture
def operator():
    return signed_in(account("operator@harbour.example", "operator"))


def page(client, address=HOME):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def sent(client, address=f"{HOME}/new", **values):
    given = {"version": str(latest_version().number), "title": "In a city", "text": "", "sql": SQL, "chart": ""}
    return client.post(address, {**given, "slug": "", "do": "save", **values})


def added(slug="in-a-city", sql=SQL):
    return console_queries.save_query(COMMAND, Query(slug, "In a city", "", sql))


def own_slugs():
    return [query.slug for query in latest_version().settings.console_queries]


def test_a_query_is_added_with_a_name_made_of_its_title_edited_and_deleted(operator):
    assert sent(operator, title="Größte Häfen", chart="bar").status_code == 302
    follow()
    assert saved_query("grote-hafen") == Query("grote-hafen", "Größte Häfen", "", SQL, "bar")
    shown = page(operator)
    assert "This page" in shown
    assert f"{HOME}/grote-hafen/edit" in shown
    assert f"{HOME}/open-votes/edit" not in shown
    assert SecurityEvent.objects.filter(event="registry_changed").latest("pk").detail["changed"] == ["console_queries"]
    form = page(operator, f"{HOME}/grote-hafen/edit")
    assert html.escape(SQL) in form
    changed = sent(operator, f"{HOME}/grote-hafen/edit", title="Harbours", slug="another", text="By city.")
    assert changed.status_code == 302
    follow()
    assert saved_query("grote-hafen") == Query("grote-hafen", "Harbours", "By city.", SQL)
    assert "frames on other websites end" in page(operator, f"{HOME}/grote-hafen/delete")
    assert operator.post(f"{HOME}/grote-hafen/delete").status_code == 302
    follow()
    assert saved_query("grote-hafen") is None
    restore_version(COMMAND, latest_version().number - 1)
    assert own_slugs() == ["grote-hafen"]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT slg FROM companies", "There is no column slg, line 1, column 8. Did you mean companies.slug?"),
        ("DELETE FROM companies", "Only reading is allowed"),
        ("SELECT 1; SELECT 2", "statement"),
    ],
)
def test_a_statement_that_fails_is_refused_with_its_place_and_what_was_typed_stays(operator, sql, says):
    for what in ("save", "try"):
        answer = sent(operator, sql=sql, title="Kept title", do=what)
        assert answer.status_code == 422
        shown = html.unescape(answer.content.decode())
        assert says in shown
        assert sql in shown
        assert 'value="Kept title"' in shown
    assert own_slugs() == []


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"title": ""}, "The title is missing."),
        ({"sql": " "}, "The statement is missing."),
        ({"slug": "In a City"}, "ust be lower-case letters, digits and hyphens."),
        ({"title": "春风"}, "Enter a name:"),
        ({"title": "x" * 101}, "101 characters"),
        ({"slug": "harbours"}, "Two queries have the slug harbours."),
        ({"slug": "open-votes", "sql": "SELECT 1" + " " * 8_001 + "x"}, "8,0"),
    ],
)
def test_faults_are_told_and_what_was_typed_stays(operator, own_folder, values, says):
    (own_folder / "registry.toml").write_text(OF_FILE)
    assert apply_file().number == 1
    answer = sent(operator, **{"text": "Kept text.", **values})
    assert answer.status_code == 422
    shown = html.unescape(answer.content.decode())
    assert says in shown
    assert 'value="Kept text."' in shown
    assert own_slugs() == []


def test_a_try_shows_the_answer_and_saves_nothing(operator):
    shown = html.unescape(sent(operator, sql="SELECT count(*) AS n FROM companies", do="try").content.decode())
    assert 'hx-get="/data/query?sql=SELECT+count%28%2A%29+AS+n+FROM+companies"' in shown
    assert "Nothing is saved yet." in shown
    asked = html.unescape(sent(operator, do="try").content.decode())
    assert "Visitors enter: city." in asked
    assert "hx-get" not in asked.partition('id="tried"')[2].partition("</section>")[0]
    assert own_slugs() == []


def test_a_query_of_the_file_is_read_only_and_stays_beside_those_of_the_page(operator, own_folder):
    added()
    (own_folder / "registry.toml").write_text(OF_FILE)
    apply_file()
    shown = page(operator)
    assert re.search(r"Harbours.*?registry\.toml.*?Read-only here", shown, re.DOTALL)
    for address in (f"{HOME}/harbours/edit", f"{HOME}/open-votes/edit", f"{HOME}/harbours/delete"):
        assert operator.get(address).status_code == 404
        assert operator.post(address, {"title": "x", "sql": "SELECT 1"}).status_code == 404
    assert own_slugs() == ["in-a-city"]
    (own_folder / "registry.toml").write_text(OF_FILE.replace("harbours", "in-a-city"))
    apply_file()
    follow()
    assert own_slugs() == ["in-a-city"]
    assert saved_query("in-a-city").title == "Harbours"
    assert "Another query has the name in-a-city" in page(operator)
    again = parse(written(latest_version().settings))
    assert [query.title for query in again.queries] == ["Harbours"]
    (own_folder / "registry.toml").write_text("")
    apply_file()
    follow()
    assert saved_query("in-a-city").title == "In a city"
    assert [query.slug for query in parse(written(latest_version().settings)).queries] == ["in-a-city"]


def test_a_query_replaces_a_built_in_one_in_its_place():
    added("open-votes")
    follow()
    assert len(saved_queries()) == len(SHIPPED)
    assert saved_query("open-votes").title == "In a city"


def test_a_file_does_not_declare_queries_of_the_page():
    with pytest.raises(InvalidSettings, match="Did you mean queries"):
        parse(OF_FILE.replace("queries", "console_queries"))


def test_a_field_that_a_query_reads_stays_until_the_query_is_changed(operator):
    apply_settings(COMMAND, RegistrySettings(fields=(BERTHS,)))
    added(sql="SELECT berths FROM companies")
    answer = operator.post(f"/operate/fields/company/berths/remove?version={latest_version().number}", follow=True)
    assert "no column berths" in html.unescape(answer.content.decode())
    assert [each["key"] for each in latest_version().settings.fields] == ["berths"]


def test_a_query_that_somebody_else_changed_meanwhile_is_kept_with_what_was_typed(operator):
    before = str(latest_version().number)
    added()
    answer = sent(operator, version=before, title="Mine")
    shown = html.unescape(answer.content.decode())
    assert "changed by someone else" in shown
    assert 'value="Mine"' in shown
    assert own_slugs() == ["in-a-city"]


def test_the_hundredth_query_is_the_last_and_the_page_says_so(operator):
    queries = tuple(Query(f"q-{n}", f"Q {n}", "", "SELECT 1") for n in range(100))
    apply_settings(COMMAND, RegistrySettings(console_queries=queries))
    shown = page(operator)
    assert "100 of at most 100 queries were added here." in shown
    assert f"{HOME}/new" not in shown
    answer = sent(operator)
    assert "at most 100 are accepted" in answer.content.decode()
    assert len(own_slugs()) == 100


@pytest.mark.parametrize("role", [None, "owner", "reviewer"])
def test_a_stranger_neither_sees_nor_changes_them(client, role):
    added()
    visitor = signed_in(account("stranger@harbour.example", role)) if role else client
    expected = 404 if role else 302
    for address in (HOME, f"{HOME}/new", f"{HOME}/in-a-city/edit", f"{HOME}/in-a-city/delete"):
        assert visitor.get(address).status_code == expected
        assert visitor.post(address, {"title": "x", "sql": "SELECT 1", "do": "save"}).status_code in {expected, 405}
    assert own_slugs() == ["in-a-city"]
    if role:
        actor = account("other@harbour.example", role).actor("web")
        with pytest.raises(Forbidden):
            console_queries.save_query(actor, Query("x", "X", "", "SELECT 1"))
        with pytest.raises(Forbidden):
            console_queries.delete_query(actor, "in-a-city")


def test_an_operation_on_a_query_that_is_not_there_or_was_changed_is_refused():
    with pytest.raises(NotFound):
        console_queries.delete_query(COMMAND, "none")
    with pytest.raises(NotFound):
        console_queries.save_query(COMMAND, Query("none", "N", "", "SELECT 1"), slug="none")
    added()
    with pytest.raises(Conflict):
        console_queries.delete_query(COMMAND, "in-a-city", expected_number=0)
    with pytest.raises(InvalidSettings):
        console_queries.save_query(COMMAND, Query("in-a-city", "Again", "", "SELECT 1"))


def test_a_built_in_query_is_replaced_from_its_own_text(operator):
    shipped = next(query for query in SHIPPED if query.slug == "open-votes")
    assert f'href="{HOME}/new?copy=open-votes"' in page(operator)
    form = page(operator, f"{HOME}/new?copy=open-votes")
    assert html.escape(shipped.sql) in form
    assert 'value="open-votes"' in form
    sent(operator, slug="open-votes")
    follow()
    assert saved_query("open-votes").sql == SQL
    shown = page(operator)
    assert f"{HOME}/open-votes/edit" in shown
    assert "copy=open-votes" not in shown
    assert 'value="open-votes"' not in page(operator, f"{HOME}/new?copy=nothing")
