"""Cards for other sites: what they show, what they cost, and who may frame them."""

import base64
import io
import json
import os
import re
import signal
import sys

import pytest
from django.test import Client
from PIL import Image

from make.published import Publisher, company, framework, person
from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness
from muniment.kernel.problems import TooMany, Unavailable
from muniment.registry_toml.document import Texts
from muniment.store.reader import Reader
from muniment.web.cards import drawing, renderer, views
from muniment.web.cards.drawing import drawable, font_for
from muniment.web.requests import page_cache
from muniment.web.views.public import documents

CARD = {"name": "Harbour", "address": "/companies/harbour", "site": "Muniment", "host": "registry.example"}
STORED = f"/pictures/{'0f' * 16}-512.webp"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    path = tmp_path_factory.mktemp("cards") / "published.sqlite3"
    publisher = Publisher(path)
    publisher.publish(
        company(1, "harbour", name='Harbour <Commons> "&"', description="Tidal power that towns own.", symbol="HARB"),
        company(2, "bare", name="Bare"),
        person(3, "layla", name="Layla Marsh", bio="Builds *tidal* mills.", positions=(("Founder", "harbour"),) * 2),
        person(4, "alone", name="Alone"),
        framework(5, "river-score", name="River score", description="How a *river* is kept.", scoreCount=3),
    )
    page_cache.use(Reader(path))
    yield Client()
    page_cache.use(None)
    renderer.forget()
    publisher.close()


@pytest.fixture(autouse=True)
def _limits():
    before = fairness.current()
    yield
    fairness.use(before)


def size_of(png):
    return Image.open(io.BytesIO(png)).size


PAGES = ["/companies/harbour", "/companies/bare", "/people/layla", "/people/alone", "/frameworks/river-score"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_picture_that_is_kept_until_it_changes(visitor, page):
    told = f'<meta property="og:image" content="http://testserver{page}/card.png">'
    assert told in visitor.get(page).content.decode()
    answer = visitor.get(f"{page}/card.png")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png")
    assert size_of(answer.content) == (1200, 630)
    assert answer["Cache-Control"] == "public, max-age=3600"
    known = visitor.get(f"{page}/card.png", headers={"If-None-Match": answer["ETag"]})
    assert (known.status_code, known.content) == (304, b"")


OTHERS = ["/", "/companies", "/people?q=layla", "/frameworks", "/search", "/compare", "/map", "/connect"]
PARTS = {
    "/companies/harbour/team": "/companies/harbour",
    "/companies/harbour/network": "/companies/harbour",
    "/people/layla/positions": "/people/layla",
    "/frameworks/river-score/scores": "/frameworks/river-score",
}


@pytest.mark.parametrize(("page", "room"), [*((each, "") for each in OTHERS), *PARTS.items()])
def test_every_public_page_has_a_picture_its_own_or_that_of_the_registry(visitor, page, room):
    html = visitor.get(page).content.decode()
    assert html.count('<meta property="og:image" ') == 1
    assert f'<meta property="og:image" content="http://testserver{room}/card.png">' in html
    assert '<meta name="twitter:card" content="summary_large_image">' in html


def test_the_card_of_the_registry_is_drawn_once_until_what_it_says_changes(visitor, monkeypatch):
    answer = visitor.get("/card.png")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png")
    assert size_of(answer.content) == (1200, 630)
    known = visitor.get("/card.png", headers={"If-None-Match": answer["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    asked = []
    monkeypatch.setattr(renderer._renderer, "draw", lambda card: (b"another", asked.append(card["name"]) or 0.0))
    assert visitor.get("/card.png").content == answer.content
    assert asked == []
    monkeypatch.setattr(views.applied, "registry_name", lambda: "Quay")
    assert visitor.get("/card.png", headers={"If-None-Match": answer["ETag"]}).content == b"another"
    assert asked == ["Quay"]
    renderer.forget()


def test_the_card_of_the_registry_says_what_is_in_it_in_the_words_of_its_operator():
    stats = {"total": 12_424, "founders": 1, "frameworks": 0}
    said = views.registry_card("Harbour", stats, Texts())
    assert said["facts"] == [("12,424", "companies"), ("1", "person")]
    assert said["summary"].startswith("A public record")
    said = views.registry_card("Harbour", stats, Texts(heading="Who keeps the *sea*", tagline="Tides"))
    assert (said["above"], said["summary"]) == ("Tides", "Who keeps the sea")


def test_a_card_has_the_color_and_not_the_mark_of_another_brand():
    built_in, _ = drawing.layout(CARD)
    assert built_in.count('fill="#8a2b2b"') == 3  # the edge, the tile and the foot
    own, _ = drawing.layout({**CARD, "accent": "#225588", "has_own_mark": True, "letters": "H"})
    assert 'height="12" fill="#225588"' in own
    assert "M8 23V9.5" not in own


def test_the_cards_of_a_person_and_of_a_framework_say_what_their_pages_say(visitor):
    layla, river = (documents.document(*each).body for each in (("person", "layla"), ("framework", "river-score")))
    said = views.person_card(json.loads(layla)["data"])
    assert (said["name"], said["summary"]) == ("Layla Marsh", "Builds tidal mills.")
    assert said["facts"] == [("1", "organization"), ("2", "positions")]
    said = views.framework_card(json.loads(river)["data"])
    assert (said["name"], said["above"]) == ("River score", "Scoring framework")
    assert said["summary"] == "How a river is kept."
    assert said["facts"] == [("Not open", "status"), ("3", "published scores")]


@pytest.mark.parametrize(
    ("body", "summary"), [("Builds mills.", "Builds mills."), ("## Links\n\n- <https://a.example>", "")]
)
def test_a_card_has_no_summary_of_lists_below_headings(body, summary):
    assert views.company_card({"company": {"id": "mills", "name": "Mills", "body": body}})["summary"] == summary


def test_a_picture_of_nothing_is_not_found(visitor):
    for room in ("companies", "people", "frameworks"):
        assert visitor.get(f"/{room}/no-such/card.png").status_code == 404
    assert visitor.get("/companies/harbour/assessments/no-such/card.png").status_code == 404


def test_a_page_names_its_picture_and_how_to_embed_it(visitor):
    html = visitor.get("/companies/harbour").content.decode()
    assert '<meta property="og:image" content="http://testserver/companies/harbour/card.png">' in html
    assert '<meta name="twitter:card" content="summary_large_image">' in html
    link = re.search(r'type="application/json\+oembed" href="([^"]+)"', html)[1].replace("&amp;", "&")
    told = visitor.get(link.removeprefix("http://testserver")).json()
    assert (told["version"], told["type"], told["title"]) == ("1.0", "rich", 'Harbour <Commons> "&"')
    assert 'title="Harbour &lt;Commons&gt; &quot;&amp;&quot;"' in told["html"]
    assert told["thumbnail_url"] == "http://testserver/companies/harbour/card.png"


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://testserver/", "http://testserver/people/layla", "https://other.example/companies/harbour"),
        *("/companies/harbour", "http://testserver/companies/no-such", "http://[bad", "javascript:alert(1)"),
    ],
)
def test_only_pages_of_companies_here_can_be_embedded(visitor, url):
    assert visitor.get("/oembed", {"url": url}).status_code == 404


def test_a_frame_is_as_small_as_its_reader_asks_and_other_formats_are_refused(visitor):
    asked = {"url": "http://testserver/companies/harbour"}
    told = visitor.get("/oembed", {**asked, "maxwidth": "300", "maxheight": "9999"}).json()
    assert (told["width"], told["height"]) == (300, 210)
    assert visitor.get("/oembed", {**asked, "maxwidth": "-1"}).json()["width"] == 480
    assert visitor.get("/oembed", {**asked, "format": "xml"}).status_code == 501


def test_only_the_embedded_card_may_be_framed_and_it_has_no_scripts(visitor):
    answer = visitor.get("/companies/harbour/embed")
    policy = answer["Content-Security-Policy"]
    assert "frame-ancestors *" in policy
    assert "script-src" not in policy
    assert answer.headers.get("X-Frame-Options") != "DENY"
    assert "<script" not in answer.content.decode()
    assert "Harbour &lt;Commons&gt;" in answer.content.decode()
    for path in ("/companies/harbour", "/", "/oembed?url=http://testserver/companies/harbour"):
        other = visitor.get(path)
        assert "frame-ancestors 'none'" in other["Content-Security-Policy"]
        assert other["X-Frame-Options"] == "DENY"


def test_the_registry_is_described_as_a_data_set(visitor):
    html = visitor.get("/").content.decode()
    told = json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', html)[1])
    assert told["@type"] == "Dataset"
    assert told["distribution"][0]["contentUrl"].startswith("http://testserver/exports/companies-latest.")


def test_a_company_is_described_with_its_identifiers(visitor):
    html = visitor.get("/companies/harbour").content.decode()
    told = json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', html)[1])
    assert [each["value"] for each in told["identifier"]] == ["harbour", "HARB"]


def test_drawing_is_charged_to_the_address_and_refused_over_its_limit(visitor):
    renderer.forget()
    limits = fairness.use(Fairness(rate=600, burst=100))
    assert len(limits.drawing) == 0
    assert visitor.get("/companies/harbour/card.png").status_code == 200
    assert len(limits.drawing) == 1
    limits.drawing.charge("127.0.0.1", 30_000)
    assert visitor.get("/companies/harbour/card.png").status_code == 200  # kept
    refused = visitor.get("/companies/bare/card.png")
    assert refused.status_code == 429
    assert limits.refused["drawing"] == 1


def test_a_drawing_that_fails_is_charged_too():
    renderer.forget()
    limits = fairness.use(Fairness(rate=600, burst=100))
    with pytest.raises(Unavailable):
        renderer.card_picture("broken", "1", {**CARD, "logo": "AAAA"}, "192.0.2.1")
    assert len(limits.drawing) == 1
    limits.drawing.charge("192.0.2.1", 30_000)
    with pytest.raises(TooMany):
        renderer.card_picture("broken", "1", {**CARD, "logo": "AAAA"}, "192.0.2.1")
    renderer.forget()


def test_a_drawing_whose_process_ends_is_charged_by_its_time(monkeypatch):
    monkeypatch.setattr(renderer.child_process, "command", lambda *_, **__: ["/bin/false"])
    own = renderer.Renderer()
    try:
        drawn, used_s = own.draw(CARD)
    finally:
        own.close()
    assert drawn == b""
    assert used_s > 0


def test_a_picture_that_is_too_large_is_not_read_as_the_next_one(monkeypatch):
    own = renderer.Renderer()
    try:
        with monkeypatch.context() as small:
            small.setattr(renderer, "MAX_PICTURE_BYTES", 100)
            assert own.draw(CARD)[0] == b""
        assert size_of(own.draw(CARD)[0]) == (1200, 630)
    finally:
        own.close()


def test_a_card_is_drawn_once_in_each_version():
    renderer.forget()
    changed = {**CARD, "name": "Quay"}
    first = renderer.card_picture("harbour", "1", CARD, "192.0.2.1")
    assert renderer.card_picture("harbour", "1", changed, "192.0.2.1") == first
    assert renderer.card_picture("harbour", "2", changed, "192.0.2.1") != first
    renderer.forget()


def test_more_requests_than_may_wait_are_told_to_come_again():
    own = renderer.Renderer()
    for _ in range(renderer.WAITING):
        own._room.acquire()
    with pytest.raises(Unavailable):
        own.draw(CARD)


def test_a_renderer_that_has_ended_is_started_again():
    own = renderer.Renderer()
    try:
        assert size_of(own.draw(CARD)[0]) == (1200, 630)
        os.kill(own._process.pid, signal.SIGKILL)
        own._process.wait()
        assert size_of(own.draw(CARD)[0]) == (1200, 630)
    finally:
        own.close()


def test_a_card_that_cannot_be_drawn_is_a_fault_of_this_card_alone():
    own = renderer.Renderer()
    try:
        drawn, used_s = own.draw({**CARD, "logo": "AAAA"})
        assert drawn == b""
        assert used_s > 0
        assert own.draw(CARD)[0]
    finally:
        own.close()


def test_what_is_kept_is_bounded():
    for number in range(400):
        renderer._kept[str(number)] = ("", b"x" * 60_000)
    assert renderer._kept.currsize <= renderer.KEPT_BYTES
    renderer.forget()


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("Blue River", "zilla-slab-600.ttf"),
        ("Фонд «Река»", "source-sans-3-600.ttf"),
        ("مؤسسة النور DAO 2024", "noto-sans-arabic-600.ttf"),
        ("קרן הים", "noto-sans-hebrew-600.ttf"),
        ("हिन्दी संस्था", "noto-sans-devanagari-600.ttf"),
        ("DAO संस्था", ""),
        ("มูลนิธิ", "noto-sans-thai-600.ttf"),
        ("東京都", ""),
    ],
)
def test_a_text_is_drawn_only_by_a_font_that_has_all_of_it(text, file):
    assert font_for(text, heading=True) == file


def test_a_name_without_a_font_gives_way_to_the_address_of_its_page():
    svg, _ = drawing.layout({**CARD, "name": "東京都水道局", "address": "/companies/tokyo-water", "letters": "東"})
    assert ">tokyo-water</text>" in svg
    assert "東" not in svg
    assert drawable("Green 🌱 DAO\u200b") == "Green DAO"


@pytest.mark.parametrize("told", [{"url": STORED}, STORED, {"url": "https://other.example/a.webp"}, None])
def test_a_card_has_the_hosted_picture_in_the_small_size(monkeypatch, told):
    monkeypatch.setattr(views.pictures, "picture_bytes", lambda digest, side: f"{digest} {side}".encode())
    shown = base64.b64decode(views._logo(told)).decode()
    assert shown == (f"{'0f' * 16} 144" if STORED in str(told) else "")


def test_what_people_wrote_is_text_on_a_card():
    hostile = '<image href="/etc/hostname"/>&amp;'
    said = {"name": hostile, "summary": hostile, "above": hostile, "facts": [(hostile, hostile)]}
    svg, _ = drawing.layout({**CARD, **said})
    assert "<image" not in svg


@pytest.mark.parametrize("name", ["W" * 200, "Word " * 40, "x"])
def test_a_name_of_any_length_stays_on_the_card(name):
    svg, _ = drawing.layout({**CARD, "name": name, "summary": "word " * 100, "facts": [("1", "person")] * 20})
    places = [(float(x), float(y)) for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', svg)]
    assert all(x <= 1_200 and y <= 600 for x, y in places)
    assert not [y for _, y in places if 440 < y < 480]


@pytest.mark.parametrize(
    ("drawn", "used_s", "is_taken"),
    [
        (renderer.PNG, renderer.MAX_USED_S, True),
        (b"", 0.0, True),
        (renderer.PNG, renderer.MAX_USED_S + 1, False),
        (renderer.PNG, -1.0, False),
        (renderer.PNG, float("nan"), False),
        (renderer.PNG, float("inf"), False),
        (b"<html>", 0.0, False),
    ],
)
def test_what_the_process_says_of_a_card_is_used_only_in_its_declared_form(monkeypatch, drawn, used_s, is_taken):
    asked = renderer.Renderer()
    said = drawing.HEAD.pack(len(drawn), used_s) + drawn
    program = f"import sys\nfor _ in sys.stdin:\n    sys.stdout.buffer.write({said!r})\n    sys.stdout.flush()"
    monkeypatch.setattr(renderer.child_process, "command", lambda *_, **__: [sys.executable, "-c", program])
    found, charged_s = asked.draw(CARD)
    asked.close()
    assert found == (drawn if is_taken else b"")
    assert 0 <= charged_s <= renderer.MAX_USED_S + 2 * renderer.DEADLINE_S
