"""Sections of plugins on the pages of companies and people: data, escaped, of the published document alone, bounded."""

import threading

import pytest

from make.published import Publisher, company, person
from muniment.plugins import Section, SectionFact, hook
from muniment.store.reader import Reader
from muniment.web.presenters import plugin_sections
from muniment.web.requests import page_cache
from services.plugins import plugged, steward

LEI = "529900T8BM49AURSDO55"


@pytest.fixture
def pages(tmp_path, client):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "harbour", name="Harbour Commons", lei=LEI), person(2, "ines", name="Ines"))
    reader = Reader(tmp_path / "published.sqlite3", currency="USD", cache_bytes=1_000_000)
    page_cache.use(reader)
    plugin_sections._paused.clear()
    yield client.get
    page_cache.use(None)
    reader.close()
    publisher.close()


class Shows:
    """Shows *answer*, and counts how often it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    @hook
    def page_section(self, kind, document):
        self.asked += 1
        return self.answer(kind, document) if callable(self.answer) else self.answer


def test_the_examples_section_is_on_the_company_with_an_anchor_and_not_on_the_person(pages):
    with plugged(steward=steward()):
        page = pages("/companies/harbour").content.decode()
        assert 'id="plugin-identifiers"><h2 dir="auto">Identifiers</h2>' in page
        assert 'href="#plugin-identifiers"' in page
        assert f'href="https://search.gleif.org/#/record/{LEI}" rel="nofollow ugc noopener"' in page
        assert "plugin-identifiers" not in pages("/people/ines").content.decode()


def test_what_a_plugin_says_is_escaped_and_cleaned(pages):
    facts = [
        SectionFact(label="<b>label", value="<i>value", address="javascript:alert(1)"),
        SectionFact(label="own", value="own", address="/companies"),
        SectionFact(label="other", value="other", address="//evil.example/x"),
    ]
    title, text = "<script>alert(1)</script>", "**bold** <script>alert(2)</script>"
    hostile = Section(key="a", title=title, facts=facts, text=text)
    with plugged(hostile=Shows(hostile)):
        page = pages("/people/ines").content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<strong>bold</strong>" in page
    assert "<script>alert" not in page
    assert "&lt;b&gt;label" in page
    assert "javascript:alert" not in page
    assert "//evil.example" not in page
    assert '<a href="/companies">own</a>' in page


def test_a_page_is_kept_and_the_plugin_is_asked_once_in_an_edition(pages):
    shows = Shows(lambda kind, document: Section(key="k", title=f"{kind} {min(document)}"))
    with plugged(shows=shows):
        first, again = pages("/companies/harbour"), pages("/companies/harbour")
        assert (first.content, first["ETag"], shows.asked) == (again.content, again["ETag"], 1)
        assert "company " in first.content.decode()


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        {"key": "a"},
        Section(key="Not a key", title="x"),
        [Section(key="fine", title="fine"), 3],
        lambda *_: 1 / 0,
    ],
    ids=["text", "object", "key", "one of two", "raises"],
)
def test_a_wrong_section_is_left_out_and_logged_and_the_page_is_rendered_again_next_time(pages, answer, caplog):
    wrong, right = Shows(answer), Shows(Section(key="right", title="Right"))
    with plugged(wrong=wrong, right=right):
        page = pages("/companies/harbour")
        assert page.status_code == 200
        assert "plugin-right" in page.content.decode()
        assert "plugin wrong: its section of a company is left out" in caplog.text
        wrong.answer = Section(key="mended", title="Mended")
        assert "plugin-mended" in pages("/companies/harbour").content.decode()


def test_a_slow_plugin_is_not_waited_for_and_not_asked_again_for_a_while(pages, caplog, monkeypatch):
    monkeypatch.setattr(plugin_sections, "PATIENCE_S", 0.05)
    ends = threading.Event()
    slow = Shows(lambda *_: ends.wait(20) and None)
    with plugged(slow=slow):
        assert pages("/companies/harbour").status_code == 200
        assert "it took longer than" in caplog.text
        assert pages("/people/ines").status_code == 200
        plugin_sections._paused.clear()  # the pause is over, and the plugin still hangs: threads must not pile up
        assert pages("/companies/harbour").status_code == 200
        assert slow.asked == 1
        ends.set()
        plugin_sections._late["slow"].join(20)
        plugin_sections._paused.clear()
        slow.answer = Section(key="awake", title="Awake")
        assert "plugin-awake" in pages("/companies/harbour").content.decode()
