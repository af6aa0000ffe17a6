"""Credits, runs and reports on the pages; the link and the badge that owners give away."""

import csv
import re
from datetime import timedelta

import html5lib
import pytest
from django.test import Client

from make import files
from make.accounts import account, signed_in
from make.documents import uploaded
from make.registry import reviewer
from make.reports import SECRETS, company, do_jobs, finished, framework, specification
from muniment.assessments import operations as runs
from muniment.assessments import scores, sharing
from muniment.assessments.models import ShareLink
from muniment.assessments.report_views import STATUSES
from muniment.credits import operations as ledger
from muniment.documents.models import Document
from muniment.documents.operations import delete_document
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.frameworks.authoring import author_framework
from muniment.registry.models import Company, Score
from muniment.registry.review.workflow import unlist_own_company

pytestmark = pytest.mark.django_db


@pytest.fixture
def me(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    return account()


def page(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 200, answer.content.decode()[:2000]
    text = answer.content.decode()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(text)
    assert not [error for _, error, _ in parser.errors if "head" not in error], parser.errors
    return text


def test_an_owner_prepares_runs_and_reads_a_report(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor, name="Tide & Sons <b>"), framework()
    assert "(10 credits)" in page(browser, "/manage/reports")
    prepared = browser.post("/manage/reports", {"company": slug, "framework": of, "key": "once"})
    where = prepared["Location"]
    assert browser.post("/manage/reports", {"company": slug, "framework": of, "key": "once"})["Location"] == where
    waiting = page(browser, where)
    assert "Run for 10 credits" in waiting
    assert "too low" not in waiting
    assert "<strong>Documents</strong>: needed for 2 criteria" in waiting
    assert browser.post(f"{where}/execute")["Location"] == where
    assert 'hx-trigger="every 1s"' in page(browser, where)
    assert "On hold for unfinished runs: 10." in page(browser, "/manage/credits")
    do_jobs()
    report = page(browser, where)
    assert "Tide &amp; Sons &lt;b&gt;" in report
    assert '<dt>Team size</dt><dd dir="auto">5</dd>' in report
    assert "teamSize" not in report
    assert report.count("<svg") >= 2
    assert not [secret for secret in SECRETS if secret in report]
    markdown = browser.get(f"{where}/report.md")
    assert markdown["Content-Type"].startswith("text/markdown")
    assert "attachment" in markdown["Content-Disposition"]
    left = page(browser, "/manage/credits")
    assert "Balance: <strong>90</strong> credits." in left
    assert "−10" in left
    assert "<svg" not in left.partition("<main")[2], "two entries need no curve"


def test_a_report_whose_score_is_published_names_its_proof_and_no_other_does(me):
    browser, actor = signed_in(me), me.actor("web")
    report = finished(actor)

    def markdown(run_id):
        return browser.get(f"/manage/reports/{run_id}/report.md").content.decode()

    proof = f"http://testserver/api/v1/log/proof?kind=company&id={report.run.company.slug}"
    assert "/log/proof" not in markdown(report.run_id)
    scores.publish_score(actor, report.run_id)
    assert f"in the public log of the registry: {proof}\n" in markdown(report.run_id)
    later = finished(actor, report.run.company.slug, report.run.framework.slug)
    assert "/log/proof" not in markdown(later.run_id), "its score is not the published one"
    unlist_own_company(actor, report.run.company.slug)
    assert "/log/proof" not in markdown(report.run_id)


def test_a_run_is_canceled_and_a_refusal_is_shown_on_the_page(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor), framework()
    where = browser.post("/manage/reports", {"company": slug, "framework": of})["Location"]
    browser.post(f"{where}/execute")
    refused = browser.post("/manage/reports", {"company": slug, "framework": of}, follow=True).content.decode()
    assert "is already active" in refused
    browser.post(f"{where}/cancel")
    assert "Canceled" in page(browser, where)
    assert ledger.get_balance(actor).held == 0


def test_an_owner_with_too_few_credits_is_told_before_the_run_and_led_to_more(me, settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 1, 1000
    browser, actor = signed_in(me), me.actor("web")
    where = browser.post("/manage/reports", {"company": company(actor), "framework": framework()})["Location"]
    waiting = page(browser, where)
    assert "Balance: 1 credit. Your balance is too low for this run. " in waiting
    assert '<a href="/manage/credits">Get credits</a>' in waiting
    assert "Run for 1,000 credits" in waiting
    refused = browser.post(f"{where}/execute", follow=True).content.decode()
    assert "This costs 1000 credits, but only 1 are available." in refused
    assert ledger.get_balance(actor).held == 0


def test_a_run_that_would_find_nothing_is_not_the_first_thing_offered(me):
    browser, actor = signed_in(me), me.actor("web")
    bare = company(actor, teamSize=None, positions=[], description="")
    waiting = page(browser, browser.post("/manage/reports", {"company": bare, "framework": framework()})["Location"])
    assert "This run would find nothing." in waiting
    assert '<button class="button" type="submit">Run for' in waiting
    assert f'<a class="button main" href="/manage/companies/{bare}">' in waiting
    known = company(actor)  # has a team size, and nothing else that is asked for
    waiting = page(browser, browser.post("/manage/reports", {"company": known, "framework": framework()})["Location"])
    assert "would find nothing" not in waiting
    assert '<button class="button main" type="submit">Run for' in waiting


def test_strangers_and_visitors_are_refused_on_every_page(me):
    report = finished(me.actor("web"))
    where = f"/manage/reports/{report.run_id}"
    stranger = signed_in(account("other@harbour.example"))
    for path in (where, f"{where}/report.md", f"{where}/publish"):
        assert stranger.get(path).status_code == 404
        assert Client().get(path).status_code == 302
    for action in ("execute", "cancel", "share", "revoke", "publish", "withdraw-score", "submit"):
        assert stranger.post(f"{where}/{action}").status_code == 404
        assert Client().post(f"{where}/{action}").status_code == 302
    assert report.run_id not in stranger.get("/manage/reports").content.decode()
    for path in ("/manage/credits", "/manage/credits.csv", "/manage/reports"):
        assert Client().get(path).status_code == 302


def test_links_stay_visible_to_the_owner_and_show_the_report_until_they_are_revoked(me):
    browser = signed_in(me)
    report = finished(me.actor("web"))
    where = f"/manage/reports/{report.run_id}"
    assert browser.post(f"{where}/share", {"name": "The <b>bank"})["Location"] == f"{where}#links"
    browser.post(f"{where}/share")
    text = page(browser, where)
    links = re.findall(r"<code>http://testserver(/reports/shared/\w{32})</code>", text)
    assert len(links) == 2
    assert 'aria-label="The &lt;b&gt;bank"' in text
    assert text.count("never opened") == 2
    for link in links:
        seen = Client().get(link)
        assert (seen.status_code, seen["Referrer-Policy"], seen["X-Robots-Tag"]) == (200, "no-referrer", "noindex")
        assert "<dt>Team size</dt>" in seen.content.decode()
        assert "/manage/reports/" not in seen.content.decode()
        assert "bank" not in seen.content.decode()
    text = page(browser, where)
    assert text.count("last opened") == 2
    ids = re.findall(r'name="link" value="(\w{26})"', text)
    assert "Link revoked." in browser.post(f"{where}/revoke", {"link": ids[0]}, follow=True).content.decode()
    assert [Client().get(link).status_code for link in links] == [404, 200]
    assert browser.post(f"{where}/revoke", {"link": ids[0]}).status_code == 404
    ShareLink.objects.update(sealed="unreadable")
    assert "its address cannot be shown" in page(browser, where)


def test_an_owner_publishes_a_score_after_a_question_and_withdraws_it(me):
    browser, actor = signed_in(me), me.actor("web")
    report = finished(actor)
    where, slug = f"/manage/reports/{report.run_id}", report.run.company.slug
    assert f'href="{where}/publish"' in page(browser, where)
    asked = page(browser, f"{where}/publish")
    assert "Findings, evidence, documents and next steps stay private." in asked
    assert "checked" not in asked[asked.index('id="sections"') :].partition(">")[0]
    assert not Score.objects.exists()

    told = browser.post(f"{where}/publish", follow=True).content.decode()
    summary = f"/companies/{slug}/assessments/{report.run.framework.slug}"
    assert f'href="{summary}"' in told
    assert "Section scores are private." in told
    assert f'src="{summary}/badge.svg"' in told
    browser.post(f"{where}/publish", {"sections": "on"})
    assert "Section scores are public too." in page(browser, where)
    link = sharing.share_report(actor, report.run_id)
    assert f'href="{summary}"' in page(Client(), f"/reports/shared/{link}")

    again = finished(actor, slug, report.run.framework.slug)
    there = f"/manage/reports/{again.run_id}"
    assert "Publish this one to replace it." in page(browser, there)
    assert "It replaces the published score" in page(browser, f"{there}/publish")
    browser.post(f"{there}/publish")
    assert "of a later report" in page(browser, where)
    assert f'href="{there}"' in page(browser, where)
    refused = browser.post(f"{where}/publish", follow=True).content.decode()
    assert "The score of a later report of this framework is public." in refused
    assert "Score withdrawn." in browser.post(f"{where}/withdraw-score", follow=True).content.decode()
    assert not Score.objects.exists()
    assert f'href="{summary}"' not in page(Client(), f"/reports/shared/{link}")


def test_a_report_without_a_score_offers_none_to_publish(me):
    browser = signed_in(me)
    report = finished(me.actor("web"))
    report.document["overall"]["score"] = None
    report.save()
    where = f"/manage/reports/{report.run_id}"
    assert "This report has no score to publish." in page(browser, where)
    assert "there is no score to publish" in page(browser, f"{where}/publish")


def test_the_table_of_runs_shows_scores_and_trends_and_leads_to_a_comparison(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor, name="Aaron's Boats"), framework()
    other = company(actor, name="Zebra Boats")
    assert f'<option value="{other}" selected>' in page(browser, "/manage/reports"), "the one that changed last"
    first = finished(actor, slug, of)
    update_company(actor, slug, CompanyChange(teamSize=1))
    second = finished(actor, slug, of)
    before, after = (each.document["overall"]["score"] for each in (first, second))
    text = page(browser, "/manage/reports")
    assert f'<option value="{slug}" selected>' in text, "the one that was assessed last"
    assert f'<span class="unseen">{before - after:g} less than before</span></span> {after:g}</td>' in text
    assert f"> {before:g}</td>" in text
    chosen = f"/manage/reports/compare?run={first.run_id}&run={second.run_id}"
    assert "Enough hands" in page(browser, chosen)
    for wrong in (f"run={first.run_id}", f"run={first.run_id}&run={second.run_id}&run={first.run_id}", ""):
        told = browser.get(f"/manage/reports/compare?{wrong}", follow=True).content.decode()
        assert "Choose two runs of the same listing and framework to compare." in told


def test_evidence_is_shown_by_the_labels_of_the_form_and_text_without_markup(me):
    report = finished(me.actor("web"))
    quotes = (
        ("profile", "socials.email: hello@boats.example"),
        ("profile", "The board is elected **each October**: in public."),
        ("proposals", "title: A tenth boat; votes.for: 3; endDate: 2026-02-01; theirOwn.word: kept"),
        ("profile", "raising: true"),
        ("profile", "status: active"),
        ("profile", "treasuryAmount.amount: 4200000.00; treasuryAmount.currency: USD"),
        ("proposals", "status: failed"),
        ("unknown", "title: shown as it is"),
    )
    criterion = report.document["sections"][0]["criteria"][0]
    criterion["citations"] = [
        {"source": source, "documentId": None, "page": None, "quote": quote} for source, quote in quotes
    ]
    report.save()
    text = page(signed_in(me), f"/manage/reports/{report.run_id}")
    for label, value in (
        ("Links · Email", "hello@boats.example"),
        ("Title", "A tenth boat"),
        ("Votes · Votes for", "3"),
        ("End date", "1 February 2026"),
        ("Their own · Word", "kept"),
        ("Raising funds", "Yes"),
        ("Status", "Active"),
        ("Treasury, exact", "4,200,000"),
        ("Status", "Failed"),
    ):
        assert f'<dt>{label}</dt><dd dir="auto">{value}</dd>' in text, label
    assert "The board is elected each October: in public." in text
    assert "title: shown as it is" in text


def test_a_report_says_in_the_language_of_its_reader_what_the_rules_found(me):
    report = finished(me.actor("web"))
    said = {each["rationale"] for section in report.document["sections"] for each in section["criteria"]}
    assert said & {"No evidence was found.", "No evidence was found, and no documents were provided."}
    where = f"/manage/reports/{report.run_id}"
    text = signed_in(me).get(where, headers={"Accept-Language": "de"}).content.decode()
    assert "Es wurden keine Nachweise gefunden" in text
    assert not [each for each in said if each in text]
    assert not [word for word in STATUSES.values() if f">{word}<" in text]


def test_two_runs_are_compared_with_what_changed_first(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor, teamSize=2), framework()
    first = finished(actor, slug, of)
    update_company(actor, slug, CompanyChange(teamSize=5))
    second = finished(actor, slug, of)
    assert f'<option value="{first.run_id}"' in page(browser, f"/manage/reports/{second.run_id}")
    shown = page(browser, f"/manage/reports/compare?run={second.run_id}&with={first.run_id}")
    assert "1 of 3 criteria changed" in shown
    assert shown.index("Better") < shown.index("Other evidence" if "Other evidence" in shown else "Same")
    assert "Overall score: 0 → 46.7 (+46.7) of 100" in shown
    assert "different versions" not in shown
    assert not [secret for secret in SECRETS if secret in shown]
    author_framework(reviewer(), of, specification(4, reports="remediation"))
    third = finished(actor, slug, of)
    shown = page(browser, f"/manage/reports/compare?run={third.run_id}&with={second.run_id}")
    assert "different versions of the specification" in shown
    assert "Not assessed" in shown


def test_a_comparison_is_refused_to_strangers_and_of_unlike_runs(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor), framework()
    mine, other = finished(actor, slug, of), finished(actor, slug)
    theirs = finished(account("other@harbour.example").actor("web"), of=of)
    where = "/manage/reports/compare?run={}&with={}"
    for first, second in ((mine, theirs), (theirs, mine), (theirs, theirs)):
        assert browser.get(where.format(first.run_id, second.run_id)).status_code == 404
    assert Client().get(where.format(mine.run_id, other.run_id)).status_code == 302
    for first, second, told in ((mine, other, "not of the same listing"), (mine, mine, "with itself")):
        refused = browser.get(where.format(first.run_id, second.run_id), follow=True)
        assert refused.redirect_chain == [("/manage/reports", 302)]
        assert told in refused.content.decode()


def test_a_quote_links_to_the_page_of_its_document_for_owners_only(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor), framework()
    paper = uploaded(actor, slug, files.pdf("The annual accounts stand open."), name="accounts <2025>.pdf")
    report = finished(actor, slug, of, (paper.pk,))
    shown = page(browser, f"/manage/reports/{report.run_id}")
    assert (
        f'<a href="/manage/documents/{paper.pk}/file#page=1"><bdi>accounts &lt;2025&gt;.pdf</bdi>, page 1</a>' in shown
    )
    assert 'href="#c1-2"' in shown
    assert "Publish the accounts." in shown
    assert "Add evidence to the listing or upload a document" in shown
    link = f"/reports/shared/{sharing.share_report(actor, report.run_id)}"
    seen = page(Client(), link)
    assert "Document, page 1" in seen
    assert "accounts &lt;2025&gt;" not in seen
    assert paper.pk not in seen
    delete_document(actor, paper.pk)
    assert f"/manage/documents/{paper.pk}" not in page(browser, f"/manage/reports/{report.run_id}")


def test_the_entries_come_as_a_file_in_which_no_note_is_a_formula(me):
    ledger.grant(COMMAND, me.email, 5, note="=HYPERLINK(1)")
    rows = list(csv.reader(signed_in(me).get("/manage/credits.csv").content.decode().splitlines()))
    assert rows[0] == ["at", "kind", "amount", "balance", "run", "note"]
    assert {(row[1], row[2], row[3]) for row in rows[1:]} == {("grant", "5", "105"), ("start", "100", "100")}
    assert "'=HYPERLINK(1)" in {row[5] for row in rows}
    assert runs.list_runs(me.actor("web")).items == []


def _documents(owner, slug, count):
    """Make rows of ready documents, the first the oldest; nothing reads their files."""
    listing, made = Company.objects.get(slug=slug), now() - timedelta(days=1)
    return [
        Document.objects.create(
            company=listing,
            account_id=owner.account_id,
            via="web",
            filename=f"paper-{n}.txt",
            content_type="text/plain",
            size_bytes=1,
            state="ready",
            blob_key=f"documents/none/{slug}/{n}",
            created_at=made + timedelta(seconds=n),
        ).pk
        for n in range(count)
    ]


def _ticked(html):
    return set(re.findall(r'name="documents" value="(\w+)" checked', html))


def test_every_document_of_a_listing_can_be_quoted_without_a_script(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor), framework()
    papers = _documents(actor, slug, 120)
    first = page(browser, f"/manage/reports?company={slug}")
    assert "1 to 50 of 120, newest first." in first
    assert papers[0] not in first
    form = {"company": slug, "framework": of, "documents": [papers[119]], "key": "k"}
    second = browser.post("/manage/reports", {**form, "files": "2"})
    assert "csrf" not in second["Location"]
    assert _ticked(page(browser, second["Location"])) == {papers[119]}
    third = page(browser, browser.post("/manage/reports", {**form, "files": "3"})["Location"])
    assert papers[0] in third
    assert "101 to 120 of 120" in third
    assert _ticked(third) == {papers[119]}
    chosen = {**form, "documents": [papers[119], papers[0]]}
    run = runs.get_run(actor, browser.post("/manage/reports", chosen)["Location"].rpartition("/")[2])
    assert run.row.document_ids == [papers[119], papers[0]]
    past = page(browser, f"/manage/reports?company={slug}&files=9")
    assert "There are 120" in past


def test_a_refused_choice_of_documents_is_not_lost(me):
    browser, actor = signed_in(me), me.actor("web")
    slug, of = company(actor), framework()
    papers = _documents(actor, slug, 51)
    form = {"company": slug, "framework": of, "documents": papers}
    answer = browser.post("/manage/reports", form)
    refused = answer.content.decode()
    assert answer.status_code == 400
    assert "documentIds has 51 items. A run takes at most 50 documents." in refused
    assert _ticked(refused) == set(papers)
    assert f'<option value="{of}" selected>' in refused
    assert "51 documents" not in page(browser, "/manage/reports")  # it is told once


def test_the_documents_offered_are_those_of_the_chosen_listing(me):
    browser, actor = signed_in(me), me.actor("web")
    framework()
    other, one = company(actor, name="Buoy"), company(actor, name="Anchor")
    (mine,), (others,) = _documents(actor, one, 1), _documents(actor, other, 1)
    (stranger,) = _documents(account("far@harbour.example").actor("web"), other, 1)
    assert mine in page(browser, "/manage/reports")
    shown = page(browser, browser.post("/manage/reports", {"company": other, "files": "1"})["Location"])
    assert others in shown
    assert mine not in shown
    foreign = company(account("else@harbour.example").actor("web"))
    (hidden,) = _documents(account("else2@harbour.example").actor("web"), foreign, 1)
    told = page(browser, f"/manage/reports?company={foreign}&documents={hidden}")
    assert hidden not in told
    assert stranger in shown  # owners of one listing share its documents


def test_every_run_can_be_reached_from_the_list(me):
    browser, actor = signed_in(me), me.actor("web")
    slug = company(actor)
    made = [runs.start_run(actor, slug, framework()).run.row.pk for _ in range(27)]
    assert made[0] not in page(browser, "/manage/reports")
    assert "Page 1 of 2" in page(browser, "/manage/reports")
    assert made[0] in page(browser, "/manage/reports?page=2")
    assert "This page doesn't exist" in page(browser, "/manage/reports?page=9")
