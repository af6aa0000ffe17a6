"""Pictures travel with exports and imports; rows name them by their path."""

import json

import pytest

from make.pictures import picture
from make.registry import document, lines, owner, published
from muniment.registry.company import listings, pictures
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.models import Company, GivenSlug, HistoryEntry, Person, Picture
from muniment.registry.people.profiles import create_profile, set_portrait

pytestmark = pytest.mark.django_db
NO_PICTURES = [
    "javascript:alert(1)",
    "/relative.png",
    "drive.example/file/d/10sR4/view",
    "//x.example/a.png",
    "ftp://a/b",
]


@pytest.fixture
def paths():
    """Return the paths of the logo of a public listing and of a portrait of a public person."""
    me = owner()
    mine = published(me, name="Tidal Works")
    create_profile(me, {"name": "Ada Moss"})
    Person.objects.update(listed=True)
    found = [pictures.store_picture(picture(side=side)) for side in (300, 400)]
    listings.set_icon(me, mine.slug, found[0])
    set_portrait(me, found[1])
    return found


def content(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def forget_everything():
    """Delete the registry, as an empty instance has it."""
    for model in (HistoryEntry, Company, Person, Picture, GivenSlug):
        model.objects.all().delete()


def test_an_export_and_its_import_into_an_empty_instance_have_the_same_files(paths, tmp_path):
    counts = export_registry(tmp_path / "one", private=True)
    assert counts["pictures"] == 2
    exported = content(tmp_path / "one")
    names = {f"pictures/{digest}-{side}.webp" for digest in pictures.digests_of(paths) for side in (144, 512)}
    assert names < exported.keys()
    assert json.loads(exported["companies.jsonl"])["company"]["icon"] == paths[0]
    forget_everything()
    bad = []
    import_registry(tmp_path / "one", tell=bad.append, warn=bad.append)
    assert bad == []
    assert document("company", "tidal-works")["company"]["icon"] == paths[0]
    assert document("person", "ada-moss")["picture"] == paths[1]
    assert Picture.objects.count() == 2
    export_registry(tmp_path / "two", private=True)
    assert content(tmp_path / "two") == exported


def test_an_export_into_the_same_folder_drops_pictures_that_are_no_longer_shown(paths, tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "of-the-operator.webp").write_bytes(b"x")
    export_registry(tmp_path)
    Company.objects.update(icon="")
    export_registry(tmp_path)
    left = {file.name for file in (tmp_path / "pictures").iterdir()}
    (digest,) = pictures.digests_of(paths[1:])
    assert left == {f"{digest}-144.webp", f"{digest}-512.webp", "of-the-operator.webp"}


def test_a_picture_that_is_nowhere_is_left_out_and_reported(tmp_path):
    path = f"/pictures/{'a' * 32}-512.webp"
    lines(tmp_path / "companies.jsonl", {"company": {"id": "acme", "name": "Acme", "icon": path}})
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "picture": path})
    bad = []
    summary = import_registry(tmp_path, tell=bad.append)
    assert [(each.file, each.line, each.field) for each in bad] == [
        ("people.jsonl", 1, "picture"),
        ("companies.jsonl", 1, "company.icon"),
    ]
    assert summary.dropped == 2
    assert "icon" not in document("company", "acme")["company"]
    assert "picture" not in document("person", "ada")


@pytest.mark.parametrize("address", NO_PICTURES)
def test_the_address_of_a_picture_that_leads_nowhere_is_left_out_alone_and_reported(tmp_path, address):
    company = {"id": "acme", "name": "Acme", "icon": address, "website": "https://acme.example"}
    lines(tmp_path / "companies.jsonl", {"company": company})
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "picture": address})
    bad = []
    summary = import_registry(tmp_path, tell=bad.append)
    reason = f"must be a web address such as https://example.org, not {address!r}; left out"
    assert [(each.file, each.field, str(each.reason)) for each in bad] == [
        ("people.jsonl", "picture", reason),
        ("companies.jsonl", "company.icon", reason),
    ]
    assert summary.dropped == 2
    shown = document("company", "acme")["company"]
    assert ("icon" in shown, shown["website"]) == (False, "https://acme.example")
    assert "picture" not in document("person", "ada")


@pytest.mark.parametrize("address", ["", "https://elsewhere.example/logo.png", "http://elsewhere.example/a?b=c"])
def test_an_address_of_a_picture_elsewhere_and_an_empty_one_are_no_fault(tmp_path, address):
    lines(tmp_path / "companies.jsonl", {"company": {"id": "acme", "name": "Acme", "icon": address}})
    lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada", "picture": address})
    bad = []
    import_registry(tmp_path, tell=bad.append)
    assert bad == []
    assert document("company", "acme")["company"].get("icon", "") == address


def test_a_url_of_a_stored_picture_becomes_its_path_and_others_stay(paths, tmp_path):
    unknown = f"https://elsewhere.example/pictures/{'a' * 32}-512.webp"
    given = [f"http://127.0.0.1:9100{paths[0]}", unknown, "https://elsewhere.example/logo.png"]
    rows = [{"company": {"id": f"c{n}", "name": "C", "icon": icon}} for n, icon in enumerate(given)]
    lines(tmp_path / "companies.jsonl", *rows)
    import_registry(tmp_path)
    icons = [document("company", f"c{n}")["company"]["icon"] for n in range(3)]
    assert icons == [paths[0], unknown, given[2]]


def test_a_dry_run_stores_no_picture(paths, tmp_path):
    export_registry(tmp_path)
    forget_everything()
    bad = []
    import_registry(tmp_path, ImportOptions(dry_run=True), tell=bad.append)
    assert (bad, Picture.objects.count()) == ([], 0)
