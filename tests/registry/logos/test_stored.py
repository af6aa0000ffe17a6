"""Logos are fetched once, shown wherever their company is, and removed with what named them."""

from datetime import timedelta

import pytest

from make.pictures import picture
from make.registry import changes, document, item, lines, owner, published, reviewer
from muniment import config
from muniment.jobs import queue
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.company import listings, pictures
from muniment.registry.company import listings as companies
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.logos import stored
from muniment.registry.logos.stored import due, fetch_due, remove_all, remove_unused, retry_failed
from muniment.registry.models import Company, FetchedLogo, Picture
from muniment.registry.review import workflow
from muniment.registry_toml import applied, reading

pytestmark = pytest.mark.django_db
SITE = "http://logos.example"


@pytest.fixture
def named(site, tmp_path):
    """Import companies, each with the address of its logo."""
    site.files |= {"/one.png": picture(), "/two.png": picture(side=200)}

    def bring(**icons):
        rows = [{"company": {"id": slug, "name": slug.title(), "icon": icon}} for slug, icon in icons.items()]
        import_registry(lines(tmp_path / "companies.jsonl", *rows))

    return bring


def logo(slug):
    return document("company", slug)["company"].get("logo")


def path_of(slug):
    return f"/pictures/{FetchedLogo.objects.get(company__slug=slug).digest}-512.webp"


def test_a_logo_is_fetched_once_and_hosted_while_icon_stays_what_the_source_gave(named, site):
    named(one=f"{SITE}/one.png")
    assert logo("one") is None
    updated = document("company", "one")["company"]["updatedAt"]
    assert fetch_due() == (1, 0, 0)
    shown = document("company", "one")["company"]
    assert shown["logo"] == {"url": path_of("one"), "width": 512, "height": 512}
    assert (shown["icon"], shown["updatedAt"]) == (f"{SITE}/one.png", updated)
    assert item("company", "one")["logo"] == shown["logo"]
    assert pictures.picture_bytes(shown["logo"]["url"][10:42], 144)
    assert fetch_due() == (0, 0, 0)
    assert site.asked == ["logos.example/one.png"]


def test_listings_that_name_the_same_address_share_one_request(named, site):
    named(one=f"{SITE}/one.png", other=f"{SITE}/one.png")
    told = []
    assert fetch_due(tell=lambda found, listings: told.append((found.address, listings))) == (2, 0, 0)
    assert (len(site.asked), Picture.objects.count(), logo("one")) == (1, 1, logo("other"))
    assert told == [(f"{SITE}/one.png", 2)]


def test_people_and_frameworks_show_the_logo_of_their_company(site, tmp_path):
    site.files["/one.png"] = picture()
    lines(tmp_path / "people.jsonl", {"slug": "layla", "name": "Layla"})
    places = [{"title": "Chair", "person": {"name": "Layla", "slug": "layla"}}]
    row = {"company": {"id": "one", "name": "One", "icon": f"{SITE}/one.png"}, "positions": places}
    lines(tmp_path / "companies.jsonl", row)
    kept = {"frameworkId": "tide", "frameworkName": "Tide", "kind": "score", "company": {"slug": "one"}}
    lines(tmp_path / "frameworks.jsonl", {"framework": kept})
    import_registry(tmp_path)
    fetch_due()
    expected = {"url": path_of("one"), "width": 512, "height": 512}
    assert document("person", "layla")["positions"][0]["company"]["logo"] == expected
    assert document("framework", "tide")["company"]["logo"] == expected


def test_another_address_is_asked_and_the_former_logo_is_gone_at_once(named, site):
    named(one=f"{SITE}/one.png")
    fetch_due()
    former = path_of("one")
    named(one=f"{SITE}/two.png")
    assert logo("one") is None
    assert fetch_due() == (1, 0, 0)
    assert logo("one")["url"] == path_of("one") != former
    assert Picture.objects.count() == 1


def test_an_address_that_failed_is_not_asked_again_before_its_time(named, site):
    named(gone=f"{SITE}/gone.png", away=f"{SITE}/away.png", odd="ipfs://Qm123")
    site.files["/away.png"] = (503, {})
    assert fetch_due() == (0, 2, 0)  # an address that is not http is never asked
    assert fetch_due() == (0, 0, 0)
    gone, away = FetchedLogo.objects.order_by("fault")
    assert [each.fault for each in (gone, away)] == ["the site answered 404", "the site answered 503"]
    assert gone.retry_at - now() > timedelta(days=29)
    assert timedelta(minutes=59) < away.retry_at - now() <= timedelta(hours=1)
    FetchedLogo.objects.filter(pk=away.pk).update(retry_at=now())
    assert fetch_due() == (0, 1, 0)
    away.refresh_from_db()
    assert away.failures == 2
    assert away.retry_at - now() > timedelta(hours=3)
    assert logo("gone") is None


def test_failed_addresses_are_asked_again_when_an_operator_says_so(named, site):
    named(gone=f"{SITE}/gone.png")
    fetch_due()
    site.files["/gone.png"] = picture()
    assert retry_failed() == 1
    assert fetch_due() == (1, 0, 0)
    assert FetchedLogo.objects.get().fault == ""


def test_an_unlisted_company_keeps_no_fetched_picture(named):
    named(one=f"{SITE}/one.png")
    fetch_due()
    workflow.unlist_company(reviewer(), "one", "Closed.")
    assert not due().exists()
    assert remove_unused() == 1
    assert not FetchedLogo.objects.exists()
    assert not Picture.objects.exists()
    workflow.relist_company(reviewer(), "one")
    assert logo("one") is None
    assert due().count() == 1


def test_an_upload_of_the_same_picture_is_never_removed_with_the_fetched_one(named):
    named(one=f"{SITE}/one.png")
    fetch_due()
    actor = owner()
    listings.add_owner(COMMAND, "one", actor.account_id)
    content = pictures.picture_bytes(path_of("one")[10:42], 512)
    path = pictures.store_picture(content)
    same = Picture.objects.get(digest=path[10:42])
    Picture.objects.filter(pk=same.pk).update(is_fetched=True)
    assert pictures.store_picture(content) == path
    assert not Picture.objects.get(pk=same.pk).is_fetched
    companies.set_icon(actor, "one", path)
    assert logo("one")["url"] == path
    remove_unused()
    assert Picture.objects.get().digest == path[10:42]


def test_an_uploaded_logo_is_shown_without_a_request(site):
    actor = owner()
    slug = published(actor).slug
    path = pictures.store_picture(picture())
    companies.set_icon(actor, slug, path)
    assert logo(slug) == {"url": path, "width": 512, "height": 512}
    assert fetch_due() == (0, 0, 0)
    assert site.asked == []


def test_drafts_are_not_asked_for(site):
    Company.objects.create(slug="draft", name="Draft", icon=f"{SITE}/one.png")
    assert fetch_due() == (0, 0, 0)
    assert site.asked == []


def test_a_listing_that_changed_while_its_logo_was_fetched_keeps_what_it_names_now(named, monkeypatch):
    named(one=f"{SITE}/one.png")
    fetched = stored.fetch_all

    def then_changed(*given, **options):
        found = list(fetched(*given, **options))
        named(one=f"{SITE}/two.png")
        return iter(found)

    monkeypatch.setattr(stored, "fetch_all", then_changed)
    assert fetch_due() == (0, 0, 1)
    assert logo("one") is None


def test_followers_read_of_a_new_logo_in_the_feed(named):
    named(one=f"{SITE}/one.png")
    before = len(changes())
    fetch_due()
    assert changes()[before:] == [("company", "one", "updated")]


def test_an_export_leaves_out_what_was_fetched_here(named, tmp_path):
    named(one=f"{SITE}/one.png")
    fetch_due()
    counts = export_registry(tmp_path / "out")
    assert "pictures" not in counts
    line = (tmp_path / "out" / "companies.jsonl").read_text()
    assert '"logo"' not in line
    assert f'"icon":"{SITE}/one.png"' in line


def test_what_an_import_says_about_a_hosted_logo_is_ignored(tmp_path):
    row = {"id": "one", "name": "One", "logo": {"url": "https://tracker.example/x.png", "width": 1, "height": 1}}
    import_registry(lines(tmp_path / "companies.jsonl", {"company": row}))
    assert logo("one") is None


def test_all_fetched_logos_are_removed_at_once_and_uploaded_ones_stay(named):
    named(one=f"{SITE}/one.png")
    actor = owner()
    slug = published(actor).slug
    companies.set_icon(actor, slug, pictures.store_picture(picture(side=250)))
    fetch_due()
    assert remove_all() == 1
    assert logo("one") is None
    assert logo(slug)
    assert Picture.objects.count() == 1


def run_job():
    queue.enqueue(stored.KIND)
    job = queue.claim("test", "logos")
    result = stored.run(job)
    job.finish(result)
    return result


def test_the_job_fetches_only_where_the_instance_says_so(named, site, monkeypatch):
    named(one=f"{SITE}/one.png")
    assert run_job() == {"removed": 0}
    assert site.asked == []
    here = config.current()
    monkeypatch.setattr(config, "_current", config.Config({}, data=here.data, fetch_logos=True))
    assert run_job() == {"fetched": 1, "failed": 0, "left": 0}
    assert logo("one")


def test_the_registry_s_settings_say_so_where_the_process_does_not(monkeypatch, tmp_path):
    chosen = reading.check({"registry": {"fetch_logos": True}})
    monkeypatch.setattr(applied, "current", lambda: chosen)
    for variables, is_wanted in (({}, True), ({"MUNIMENT_FETCH_LOGOS": "off"}, False)):
        monkeypatch.setattr(config, "_current", config.Config(variables, data=tmp_path))
        assert stored.are_wanted() == is_wanted
    monkeypatch.setattr(applied, "current", lambda: reading.check({}))
    for variables, is_wanted in (({}, False), ({"MUNIMENT_FETCH_LOGOS": "on"}, True)):
        monkeypatch.setattr(config, "_current", config.Config(variables, data=tmp_path))
        assert stored.are_wanted() == is_wanted


def test_a_job_without_time_for_all_continues_in_another_one(named, site, monkeypatch):
    named(one=f"{SITE}/one.png", two=f"{SITE}/two.png")
    monkeypatch.setattr(config, "_current", config.Config({}, data=config.current().data, fetch_logos=True))
    monkeypatch.setattr(stored, "PER_RUN", 1)
    assert run_job() == {"fetched": 1, "failed": 0, "left": 1}
    job = queue.claim("test", "logos")
    assert stored.run(job) == {"fetched": 1, "failed": 0, "left": 0}


def test_a_job_that_is_handed_back_begins_no_request(named, site, monkeypatch):
    named(one=f"{SITE}/one.png")
    monkeypatch.setattr(config, "_current", config.Config({}, data=config.current().data, fetch_logos=True))
    queue.enqueue(stored.KIND)
    job = queue.claim("test", "logos")
    job.drain()
    assert stored.run(job) == {"fetched": 0, "failed": 0, "left": 1}
    assert site.asked == []
