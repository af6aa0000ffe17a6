"""Import in the browser: what the pages show at each step, and what forms do."""

import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from make.accounts import account, signed_in
from make.imports import upload, work
from make.pages import fields_of, valid
from make.registry import document
from make.spreadsheets import zipped
from muniment.kernel.ids import now
from muniment.registry.imports.uploads import remove_old
from muniment.registry.models import Company, ImportRun, ImportUpload
from muniment.registry.settings.versions import latest_version
from muniment.registry.tables.delimited import LIKELY
from muniment.schema.objects import registry_schema
from muniment.web.views.operate import imports

pytestmark = pytest.mark.django_db

TABLE = (
    "Company;Website;Members;Member since;Board;Notes\n"
    "Alder House;alder.example;1.200;03.09.1998;Ida Alder (Chair), Joe Birch;call back\n"
    "Birch House;;10-49;31.12.2004;Kim Cedar;\n"
)


@pytest.fixture
def browser():
    return signed_in(account("operator@harbour.example", "operator"))


def page(browser, address, status=200):
    response = browser.get(address)
    assert response.status_code == status, response.content.decode()
    html = response.content.decode()
    valid(html)
    return html


def press(browser, address, do, fields=None, **more):
    sent = {name: value for name, value in (fields or {}).items() if name != "once"}
    return browser.post(address, {**sent, **more, "do": do})


def preview(browser, here, fields=None, **more):
    html = page(browser, f"{here}?mapping")
    response = press(browser, here, "preview", fields if fields is not None else fields_of(html), **more)
    assert response.status_code == 302, response.content.decode()
    work()
    return page(browser, here)


def bring(browser, content, name="members.csv"):
    here = upload(browser, content, name)
    preview(browser, here)
    press(browser, here, "import")
    work()
    return browser.get(here)["Location"]


def test_a_table_is_uploaded_mapped_previewed_imported_and_undone(browser):
    here = upload(browser, TABLE)
    html = page(browser, here)
    assert "3 columns are left out" not in html
    assert all(each in html for each in ("Member since", "03.09.1998", "alder.example", "call back"))
    fields = fields_of(html)
    assert fields["t0-c0"] == "name"
    assert fields["t0-c3-order"] == "DMY"
    shown = preview(browser, here)
    assert "Nothing is imported yet" in shown
    assert "Choose its field, or keep it as an additional field." in shown
    assert not Company.objects.exists()
    sample = page(browser, f"{here}/pages/1")
    assert "Alder House" in sample
    assert "Ida Alder" in sample
    assert page(browser, f"{here}/pages/1/team")
    assert page(browser, f"{here}/pages/9", 404)
    assert not Company.objects.exists()
    press(browser, here, "import")
    running = page(browser, browser.get(here)["Location"])
    assert "Importing…" in running
    work()
    done = browser.get(here)["Location"]
    assert "5 entries were created or changed" in page(browser, done)
    assert document("company", "alder-house")["company"]["website"] == "https://alder.example"
    assert ImportRun.objects.get().files == ["members.csv"]
    undone = press(browser, done, "undo")["Location"]
    assert "Undoing the import…" in page(browser, undone)
    work()
    assert "5 rows unpublished" in page(browser, undone)
    assert "See what was restored" in page(browser, done)
    assert not Company.objects.filter(state="published").exists()
    again = browser.post(done, {"do": "undo"}, follow=True).content.decode()
    assert "is undone" in again
    assert ImportRun.objects.count() == 2
    assert "members.csv" in page(browser, "/operate/import")


def test_a_table_of_blank_rows_says_so_and_leads_on(browser):
    shown = preview(browser, upload(browser, "Company;Website\n;\n;\n"))
    assert "There is no row to import." in shown
    assert "All rows are blank below the header" in shown
    assert 'value="import"' not in shown
    assert "Change columns" in shown
    assert "Discard import" in shown


def test_a_table_that_changes_nothing_says_so(browser):
    bring(browser, TABLE)
    here = upload(browser, TABLE)
    assert "An import would change nothing" in preview(browser, here)
    press(browser, here, "import")
    work()
    html = page(browser, browser.get(here)["Location"])
    assert "Nothing was changed" in html
    assert "Undo import" not in html


def test_unclear_dates_are_asked_before_the_preview(browser):
    here = upload(browser, "Company,Joined\nAlder,03/04/2001\nBirch,05/06/2002\n")
    html = page(browser, here)
    assert "Some columns need a choice" in html
    fields = fields_of(html)
    assert fields["t0-c1-order"] == "?"
    refused = press(browser, here, "preview", fields)
    assert refused.status_code == 422
    assert "Joined: Order of dates" in refused.content.decode()
    assert "Nothing is imported yet" in preview(browser, here, {**fields, "t0-c1-order": "DMY"})
    assert "April" in page(browser, f"{here}/pages/1")


def test_an_encoding_and_the_row_of_headings_are_changed(browser):
    table = "Mitglieder 2026;;\nName;Stadt;Sonst\nŁódź House;Łódź;x\nŻuk;Gdańsk;y\n".encode("cp1250")
    here = upload(browser, table)
    fields = fields_of(page(browser, here))
    press(browser, here, "save", {**fields, "t0-c2": "extra:sonst"})
    press(browser, here, "read", {**fields, "t0-c2": "extra:sonst", "encoding": "cp1252"})
    work()
    assert "£ód" in page(browser, here)
    press(browser, here, "read", {**fields_of(page(browser, here)), "encoding": "cp1250"})
    work()
    html = page(browser, here)
    assert "Łódź" in html
    assert fields_of(html)["t0-c2"] == "extra:sonst"
    press(browser, here, "read", {**fields_of(html), "t0-header": "1"})
    work()
    assert "Mitglieder 2026" in page(browser, here)


def test_a_field_that_is_chosen_gets_its_options_from_the_values(browser):
    here = upload(browser, 'Company,Zahl,Da seit\nAlder,"1.200",03.09.1998\nBirch,900,31.12.2001\n')
    fields = fields_of(page(browser, here))
    assert fields["t0-c1"] == ""
    press(browser, here, "save", {**fields, "t0-c1": "teamSize", "t0-c2": "listedAt"})
    fields = fields_of(page(browser, f"{here}?mapping"))
    assert (fields["t0-c1-decimal"], fields["t0-c2-order"]) == (",", "DMY")
    fields |= {"t0-c2-order": "nonsense", "t0-c1": "no-field"}
    press(browser, here, "save", fields)
    fields = fields_of(page(browser, f"{here}?mapping"))
    assert (fields["t0-c1"], fields["t0-c2-order"]) == ("", "DMY")


def test_columns_whose_headings_have_no_latin_letters_are_kept_apart(browser, settings):
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    here = upload(browser, "会社名,理念,社風,Name\n桜株式会社,a b,c d,e\n梅株式会社,f g,h i,j\n")
    html = page(browser, here)
    assert '<option value="extra:column2">理念 (' in html
    fields = fields_of(html) | {"t0-c1": "extra:column2", "t0-c2": "extra:column3", "t0-c3": "extra:name2"}
    press(browser, here, "save", fields)
    stored = fields_of(page(browser, f"{here}?mapping"))
    assert [stored[f"t0-c{n}"] for n in (1, 2, 3)] == ["extra:column2", "extra:column3", "extra:name2"]
    preview(browser, here)
    press(browser, here, "import")
    work()
    found = document("company", "桜株式会社")["company"]
    assert (found["column2"], found["column3"], found["name2"]) == ("a b", "c d", "e")
    labels = {each["key"]: each["label"] for each in latest_version().settings.fields}
    assert labels == {"column2": "理念", "column3": "社風", "name2": "Name"}


def test_a_row_that_is_imported_is_not_called_left_out(browser):
    rows = "Alder House,Bonn\nAlder House,Kiel\n,Ulm\nBirch House,Bonn\nBirch House,Bonn\n"
    rows += "".join(f"Cedar {n} House,Ulm\n" for n in range(12))
    html = preview(browser, upload(browser, f"Company,City\n{rows}"))
    said = re.findall(r'<th scope="row">(Whole row|Whole table|Row|Table)<br>.*?<span dir="auto">([^<]*)</span>', html)
    assert sorted(said) == [
        ("Row", "Has the name of another row but other values, and is a company of its own"),
        ("Row", "Is about the company of an earlier row, and is combined with it"),
        ("Whole row", "Has no name and is left out"),
    ]
    files = {"members.csv": f"Company,City\n{rows}", "notes.csv": "This file explains everything\nof the list\n"}
    html = preview(browser, upload(browser, zipped(files), "members.zip"))
    assert re.search(r'<th scope="row">Whole table<br><bdi class="quiet small">notes</bdi>', html)


def test_the_unit_of_numbers_is_told_before_they_are_kept(browser):
    html = page(browser, upload(browser, "Company,Budget\nAlder House,€ 1.234\nBirch House,€ 99\n"))
    assert "Would be kept as: Number (EUR)" in html
    assert ">Budget (EUR) (Number)</option>" in html
    assert "Keep it as a new field" in html


PEOPLE = """slug,name,summary,role,organizations,linkedin,profile url,tags
ida,Ida Alder,"Ida has rowed boats for years, and chairs.",Chair,Alder House,linkedin.com/in/ida,p.example/1,a|b
tomb,Tom Birch,"Tom plants trees, mostly birches.",Member,Alder House|Birch House,linkedin.com/in/tom,p.example/2,b
anna,Anna Cedar,Anna keeps the books of the house since 2001.,Treasurer,Birch House,linkedin.com/in/anna,p.example/3,a
"""


def test_people_are_imported_without_a_correction(browser, settings):
    """Read, keep all columns, preview, import: what kind the rows are, and what each column means, is right at once."""
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    bring(browser, TABLE)
    here = upload(browser, PEOPLE, "people.csv")
    html = page(browser, here)
    assert "guess is marked" not in html
    fields = fields_of(html)
    assert fields["t0-kind"] == "people"
    assert [fields[f"t0-c{n}"] for n in range(8)] == [
        *("slug", "name", "bio", "position.title", "position.company"),
        *("", "", ""),
    ]
    press(browser, here, "keep", fields)
    preview(browser, here)
    press(browser, here, "import")
    work()
    ida, tom = document("person", "ida"), document("person", "tomb")
    assert (ida["linkedin"], ida["profileUrl"], ida["tags"]) == (
        "https://linkedin.com/in/ida",
        "https://p.example/1",
        ["a", "b"],
    )
    assert ida["bio"].startswith("Ida has rowed")
    positions = [(each["title"], each["company"]["name"]) for each in tom["positions"]]
    assert sorted(positions) == [("Member", "Alder House"), ("Member", "Birch House")]


def test_words_people_and_money_have_options(browser):
    table = "Company,State,Reserves,Board\nAlder,paused,1000,Ida Alder\nBirch,active,2000,Joe Birch\n"
    here = upload(browser, table)
    fields = fields_of(page(browser, here)) | {"t0-c1": "status", "t0-c2": "treasury"}
    press(browser, here, "save", fields)
    html = page(browser, f"{here}?mapping")
    fields = fields_of(html)
    assert "Reserves: Currency" in html
    chosen = {"t0-c1-words": "paused = inactive", "t0-c2-currency": "usd", "t0-c2-unit": "1000", "t0-c3-title": "Clerk"}
    press(browser, here, "save", {**fields, **chosen})
    preview(browser, here)
    press(browser, here, "import")
    work()
    shown = document("company", "alder")
    assert shown["company"]["status"] == "inactive"
    assert shown["company"]["treasuryAmount"]["amount"] == "1000000.00"
    assert shown["positions"][0]["title"] == "Clerk"


def test_the_names_of_additional_fields_are_words_made_of_headings_and_marked_as_data(browser):
    html = page(browser, upload(browser, TABLE))
    for name, words in (("company2", "Company2"), ("memberSince", "Member since")):
        assert f'<option value="extra:{name}" dir="auto">{words}</option>' in html
    assert '<option value="website" selected>Website</option>' in html


def test_a_table_of_people_is_chosen_and_left_out(browser):
    here = upload(browser, "Name,Email\nIda Alder,ida@harbour.example\n", "list.csv")
    fields = fields_of(page(browser, here))
    press(browser, here, "save", {**fields, "t0-kind": "people"})
    assert "First people" in preview(browser, here)
    fields = fields_of(page(browser, f"{here}?mapping"))
    refused = press(browser, here, "preview", {**fields, "t0-kind": "skip"})
    assert refused.status_code == 422
    assert "Choose which column is the name" in refused.content.decode()


def test_a_mapping_is_downloaded_and_used_again(browser):
    here = upload(browser, TABLE)
    press(browser, here, "save", {**fields_of(page(browser, here)), "t0-c5": "extra:notes"})
    saved = browser.get(f"{here}/mapping.toml")
    assert saved["Content-Disposition"] == 'attachment; filename="mapping.toml"'

    def file(content):
        return SimpleUploadedFile("mapping.toml", content)

    again = upload(browser, TABLE, mapping=file(saved.content))
    assert fields_of(page(browser, again))["t0-c5"] == "extra:notes"
    other = upload(browser, TABLE)
    press(browser, other, "use", mapping=file(saved.content))
    work()
    assert fields_of(page(browser, other))["t0-c5"] == "extra:notes"
    for wrong, said in (
        (b"no = [", "The mapping is invalid"),
        (b"\xff", "is not a text file"),
        (b"#" * (3 << 20), "too large"),
    ):
        response = browser.post(other, {"do": "use", "mapping": file(wrong)})
        assert said in response.content.decode()


@pytest.mark.parametrize("content", [b"%PDF-1.7 hello", b"\x00\x01\x02" * 90, b"   "])
def test_a_file_without_a_table_says_why_and_lets_another_be_chosen(browser, content):
    here = upload(browser, content, "brochure.pdf")
    html = page(browser, here)
    assert "The file can&#x27;t be read." in html or "The file can't be read." in html
    response = press(browser, here, "discard")
    assert response["Location"] == "/operate/import"
    assert not ImportUpload.objects.exists()
    assert browser.get(here).status_code == 404


def test_no_file_and_bad_addresses_are_refused_with_a_reason(browser):
    for sent, said in (
        ({}, "No file was uploaded"),
        ({"address": "ftp://harbour.example/a.csv"}, "can&#x27;t be used"),
    ):
        response = browser.post("/operate/import", sent)
        assert response.status_code == 422
        assert said in response.content.decode()
    response = browser.post("/operate/import", {"address": "http://127.0.0.1/members.csv"})
    work()
    html = page(browser, response["Location"])
    assert "cannot be fetched" in html


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_only_operators_see_imports(browser, role):
    here = upload(browser, TABLE)
    run = bring(browser, TABLE)
    stranger = signed_in(account(f"{role}@harbour.example", role))
    for address in ("/operate/import", here, f"{here}/mapping.toml", f"{here}/pages/1", run):
        assert stranger.get(address).status_code == 404
    for do in ("import", "preview", "discard", "undo"):
        assert stranger.post(here, {"do": do}).status_code == 404
        assert stranger.post(run, {"do": do}).status_code == 404
    assert ImportUpload.objects.filter(pk=here.rpartition("/")[2]).exists()


def test_texts_of_a_file_are_escaped(browser):
    here = upload(
        browser, 'Company,<script>alert(1)</script>\n"<b>Alder</b>","<img src=x onerror=alert(1)>"\n', "<i>.csv"
    )
    html = page(browser, here)
    assert not re.search(r"<(?:script>alert|b>Alder|img src=x|i>\.csv)", html)
    html = preview(browser, here)
    assert not re.search(r"<(?:script>alert|b>Alder|img src=x|i>\.csv)", html)


def test_guesses_are_marked_and_confirmed_by_the_preview(browser):
    here = upload(browser, "Ettevõte;Kontakt meilile\nKask Selts;info@kask.example\nTamm Liit;info@tamm.example\n")
    html = page(browser, here)
    assert "3 guesses are marked." in html
    assert html.count("A guess. Please check.") == 3
    shown = preview(browser, here)
    assert "Kask Selts" in shown
    assert "A guess. Please check." not in page(browser, f"{here}?mapping")
    assert "check" not in ImportUpload.objects.get().mapping


def test_a_changed_field_is_no_guess_any_more(browser):
    here = upload(browser, "Ettevõte;Kontakt meilile\nKask Selts;info@kask.example\nTamm Liit;info@tamm.example\n")
    fields = fields_of(page(browser, here))
    press(browser, here, "save", fields, **{"t0-c1": ""})
    html = page(browser, f"{here}?mapping")
    assert fields_of(html)["t0-c1"] == ""
    assert html.count("A guess. Please check.") == 2


def test_the_mapping_of_a_file_is_used_for_the_next_one_with_its_headings(browser):
    here = upload(browser, "Company;Zug\nAlder House;harbour\nBirch House;river\n", "may.csv")
    assert fields_of(page(browser, here))["t0-c1"] == ""
    preview(browser, here, fields_of(page(browser, here)), **{"t0-c1": "themes"})
    press(browser, here, "import")
    work()
    again = upload(browser, "Company;Zug\nCedar House;lake\n", "june.csv")
    html = page(browser, again)
    assert "A file with the same headings was imported before." in html
    assert fields_of(html)["t0-c1"] == "themes"
    other = upload(browser, "Company;Bahn\nCedar House;lake\n", "june.csv")
    assert "imported before" not in page(browser, other)


def test_finished_imports_keep_their_mapping_and_open_ones_are_removed_after_a_week(browser):
    bring(browser, "Company;City\nAlder House;Leeds\n")
    upload(browser, "Company;City\nBirch House;York\n")
    ImportUpload.objects.update(updated_at=now() - timedelta(days=8))
    assert remove_old() == 2  # the upload with its file
    assert [each.state for each in ImportUpload.objects.all()] == ["done"]


def test_a_currency_that_the_cells_name_is_not_asked(browser):
    here = upload(browser, "Company,Treasury\nAlder House,$1200\nBirch House,USD 90\n")
    html = page(browser, here)
    assert "Some columns need a choice" not in html
    assert fields_of(html)["t0-c1-currency"] == ""
    assert "Nothing is imported yet" in preview(browser, here)


def test_a_currency_that_no_cell_names_is_asked_until_it_is_entered(browser):
    here = upload(browser, "Company,Treasury\nAlder House,1200\nBirch House,90\n")
    assert press(browser, here, "preview", fields_of(page(browser, here))).status_code == 422
    assert "Some columns need a choice" in page(browser, here)


@pytest.mark.parametrize("encoding", LIKELY)
def test_an_encoding_that_can_be_guessed_can_be_chosen(encoding):
    assert imports.encoding_named(encoding) in imports.ENCODINGS


@pytest.mark.parametrize(
    ("name", "listed"),
    [("iso8859-2", "iso8859_2"), ("shift_jis", "cp932"), ("utf-8-sig", "utf-8"), ("latin9", "iso8859_15")],
)
def test_an_encoding_is_listed_once_whatever_its_name(name, listed):
    assert imports.encoding_named(name) == listed


def test_a_western_file_is_read_again_as_iso_8859_15(browser):
    text = "Société;Trésorerie\nChœur d'Été;1 200 €\n"
    here = upload(browser, text.encode("iso8859_15"), "choeurs.csv")
    fields = fields_of(page(browser, here))
    press(browser, here, "read", {**fields, "encoding": "cp1252"})
    work()
    assert "Ch½ur" in page(browser, here)
    press(browser, here, "read", {**fields_of(page(browser, here)), "encoding": "iso8859_15"})
    work()
    assert "Chœur d&#x27;Été" in page(browser, here)
