"""The command line: import, export, and what a fresh instance needs."""

import csv
import gzip
import hashlib
import io
import json
from urllib.parse import quote

import pytest

from contract.shapes import check_error
from muniment.config import SETTINGS
from services.ports import SEEN_WITHIN_S, wait_until
from services.prepared import demo_registry, new_instance
from services.product import DEMO, Product, run


def write(folder, name, *rows):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def company(slug, **more):
    return {"company": {"id": slug, "name": slug.title(), "status": "active", **more}}


def answers(product):
    """Return every public answer of a registry, by address, without the stamps of when it was published."""
    kept = {}
    for kind, key in (("companies", "id"), ("people", "slug"), ("frameworks", "frameworkId")):
        path = f"/api/v1/{kind}?pageSize=100" if kind != "frameworks" else "/api/v1/frameworks"
        kept[path] = product.get(path).body
        for item in json.loads(kept[path])["data"]:
            detail = f"/api/v1/{kind}/{quote(item[key])}"
            kept[detail] = product.get(detail).body
    for path in ("/api/v1/stats", "/api/v1/companies?q=tide", "/api/v1/companies?sort=name&pageSize=100"):
        kept[path] = product.get(path).body
    return kept


@pytest.mark.requirement("export.round-trip")
@pytest.mark.requirement("import.form")
def test_an_export_with_what_is_private_imports_to_the_same_answers_byte_for_byte(demo, tmp_path):
    run("export", str(tmp_path / "out"), "--private", data=demo.data)
    run("import", str(tmp_path / "out"), data=new_instance(tmp_path / "second"))
    with Product(tmp_path / "second") as second:
        assert answers(second) == answers(demo)


@pytest.mark.requirement("export.private")
def test_specifications_are_exported_only_on_request(demo, tmp_path):
    run("export", str(tmp_path / "open"), data=demo.data)
    run("export", str(tmp_path / "private"), "--private", data=demo.data)
    assert "assessment-spec/1" not in (tmp_path / "open" / "frameworks.jsonl").read_text()
    assert "assessment-spec/1" in (tmp_path / "private" / "frameworks.jsonl").read_text()


@pytest.mark.requirement("import.upsert")
@pytest.mark.usefixtures("new_interpreters")
def test_importing_the_same_again_changes_nothing(tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data) as product:
        before, etag = answers(product), product.get("/api/v1/companies").headers["etag"]
        edition = product.get("/api/v1/changes?after=0").json()
        run("import", str(DEMO), data=data)
        assert answers(product) == before
        assert product.get("/api/v1/companies").headers["etag"] == etag
        assert product.get("/api/v1/changes?after=0").json() == edition


@pytest.mark.requirement("publish.visible")
@pytest.mark.requirement("import.upsert")
@pytest.mark.requirement("changes.feed")
def test_a_change_that_another_process_publishes_is_seen_within_a_second(tmp_path):
    data, source = new_instance(tmp_path / "data"), tmp_path / "source"
    run("import", str(write(source, "companies", company("one"), company("two"))), data=data)
    with Product(data) as product:
        assert product.data_of("/api/v1/companies/one")["company"]["name"] == "One"
        held = product.get("/api/v1/companies").headers["etag"]
        last = product.get("/api/v1/changes?after=0").json()["nextAfter"]
        run("import", str(write(source, "companies", company("one", description="new"))), data=data)
        wait_until(
            lambda: product.data_of("/api/v1/companies/one")["company"].get("description") == "new",
            within_s=SEEN_WITHIN_S,
            what="the change being seen",
        )
        wait_until(
            lambda: product.get("/api/v1/companies", If_None_Match=held).status == 200,
            within_s=SEEN_WITHIN_S,
            what="the change being seen in the list",
        )
        told = product.get(f"/api/v1/changes?after={last}").json()["data"]
        assert [(change["kind"], change["id"], change["change"]) for change in told] == [("company", "one", "updated")]


BAD = [
    ("{not json", "companies.jsonl:2"),
    ("[]", "companies.jsonl:2"),
    ({"company": {"name": "No slug"}}, "id"),
    (company("bad slug"), "id"),
    (company("a/b"), "id"),
    (company("ok", status="Active"), "status"),
    (company("ok", treasury="lots"), "treasury"),
    (company("ok", createdAt="2024-03"), "createdAt"),
    (company("ok", listedAt="2024-02-31"), "listedAt"),
    (company("ok", themes="one"), "themes"),
    (company("ok", name=7), "name"),
    ({**company("ok"), "proposals": [{"id": "1", "title": "t", "status": "won"}]}, "proposals"),
    ({**company("ok"), "capTable": {"address": "a"}}, "capTable"),
    ({**company("ok"), "positions": [{"title": "t"}]}, "positions"),
]


@pytest.mark.requirement("import.bad-rows")
@pytest.mark.requirement("import.treasury-parsed")
def test_bad_rows_are_reported_with_their_place_and_the_good_ones_are_imported(tmp_path):
    rows = [company("first")]
    for index, (row, _) in enumerate(BAD):
        rows.append(json.loads(json.dumps(row).replace('"ok"', f'"ok-{index}"')) if isinstance(row, dict) else row)
    rows.append(company("last"))
    source = write(tmp_path / "source", "companies", *rows)
    done = run("import", str(source), data=new_instance(tmp_path / "data"), check=False)
    assert done.returncode == 1
    report = done.stdout + done.stderr
    for number, (_, field) in enumerate(BAD, 2):
        told = [line for line in report.splitlines() if f"companies.jsonl:{number}" in line.replace(" line ", ":")]
        assert told, f"line {number} is not reported:\n{report}"
        assert "companies.jsonl" in field or any(field in line for line in told), told
    with Product(tmp_path / "data") as product:
        assert [one["id"] for one in product.data_of("/api/v1/companies")] == ["last", "first"]


@pytest.mark.requirement("import.strict")
def test_strict_imports_nothing_when_a_row_is_bad(tmp_path):
    source = write(tmp_path / "source", "companies", company("first"), "{", company("last"))
    data = new_instance(tmp_path / "data")
    assert run("import", str(source), "--strict", data=data, check=False).returncode == 1
    with Product(data) as product:
        assert product.data_of("/api/v1/companies") == []
        assert product.data_of("/api/v1/stats")["totalTreasury"] == "$0"


@pytest.mark.requirement("import.dry-run")
def test_a_dry_run_reports_and_imports_nothing(tmp_path):
    source = write(tmp_path / "source", "companies", company("first"), "{")
    done = run("import", str(source), "--dry-run", data=new_instance(tmp_path / "data"), check=False)
    assert done.returncode == 1
    assert "companies.jsonl" in done.stdout + done.stderr
    assert run("import", str(DEMO), "--dry-run", data=tmp_path / "data").returncode == 0
    with Product(tmp_path / "data") as product:
        assert product.data_of("/api/v1/companies") == []


@pytest.mark.requirement("import.draft")
@pytest.mark.requirement("reviewed.only")
def test_drafts_are_nowhere_in_the_public_answers(tmp_path):
    data = new_instance(tmp_path / "data")
    hidden = {
        **company("hidden", treasury="$5M"),
        "positions": [{"title": "x", "person": {"name": "P", "slug": "pat"}}],
    }
    shown = {**company("shown"), "positions": [{"title": "x", "person": {"name": "P", "slug": "pat"}}]}
    run("import", str(write(tmp_path / "a", "companies", hidden)), "--draft", data=data)
    run("import", str(write(tmp_path / "b", "companies", shown)), data=data)
    with Product(data) as product:
        assert [one["id"] for one in product.data_of("/api/v1/companies")] == ["shown"]
        assert product.get("/api/v1/companies/hidden").status == 404
        assert product.data_of("/api/v1/companies?q=hidden") == []
        assert product.data_of("/api/v1/stats")["totalTreasury"] == "$0"
        assert [p["company"]["id"] for p in product.data_of("/api/v1/people/pat")["positions"]] == ["shown"]
        assert product.data_of("/api/v1/people")[0]["companyCount"] == 1


@pytest.mark.requirement("import.frameworks")
@pytest.mark.requirement("reviewed.program")
def test_a_program_needs_its_company_and_an_open_framework_its_specification(tmp_path):
    source = write(tmp_path / "source", "companies", company("host"))
    write(
        source,
        "frameworks",
        {"framework": {"frameworkId": "lost", "frameworkName": "Lost", "description": "", "kind": "program"}},
        {
            "framework": {
                "frameworkId": "early",
                "frameworkName": "Early",
                "description": "",
                "kind": "program",
                "isOpen": True,
                "company": {"id": "host", "name": "Host"},
            }
        },
    )
    done = run("import", str(source), data=new_instance(tmp_path / "data"), check=False)
    assert done.returncode == 1
    report = done.stdout + done.stderr
    assert "lost" in report or "frameworks.jsonl:1" in report.replace(" line ", ":")
    assert "early" in report or "frameworks.jsonl:2" in report.replace(" line ", ":")
    with Product(tmp_path / "data") as product:
        served = product.data_of("/api/v1/frameworks")
        assert [(one["frameworkId"], one["isOpen"]) for one in served] == [("early", False)]
        assert served[0]["company"]["slug"] == "host"


@pytest.mark.requirement("import.open-objects")
@pytest.mark.requirement("import.form")
def test_a_single_zipped_file_with_a_mark_and_foreign_line_ends_is_read(tmp_path):
    rows = [company("one", invented={"a": [1, None]}, website=None), company("two")]
    text = "\ufeff" + "\r\n".join(json.dumps(row) for row in rows)
    file = tmp_path / "companies.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode()))
    run("import", str(file), data=new_instance(tmp_path / "data"))
    with Product(tmp_path / "data") as product:
        one = product.data_of("/api/v1/companies/one")["company"]
        assert one["invented"] == {"a": [1, None]}
        assert "website" not in one
        assert len(product.data_of("/api/v1/companies")) == 2


@pytest.mark.requirement("cli.serve")
@pytest.mark.usefixtures("new_interpreters")
def test_a_fresh_instance_needs_nothing_but_serve_and_stops_when_asked(tmp_path):
    product = Product(tmp_path / "made" / "by" / "serve")
    product.log = tmp_path / "log"
    with product:
        product.wait_ready()
        assert product.data_of("/api/v1/companies") == []
        assert product.get("/api/v1/companies").json()["pagination"]["pageCount"] == 1
        assert product.stop() == 0


@pytest.mark.requirement("cli.demo", "exports.list")
def test_the_demo_is_served_by_one_command_and_its_first_reader_finds_whole_files(tmp_path):
    with Product(tmp_path / "data", "--demo") as product:
        product.wait_ready()
        wait_until(lambda: product.data_of("/api/v1/stats")["total"] == 60, within_s=60, what="the demo being loaded")
        edition = int(product.get("/api/v1/stats").headers["x-muniment-edition"])
        listed = product.data_of("/api/v1/exports")
    kinds = [file["name"].partition("-")[0] for file in listed if file["rows"] > 0]
    assert {kind: kinds.count(kind) for kind in ("companies", "people", "frameworks", "tables")} == {
        "companies": 2, "people": 2, "frameworks": 2, "tables": 1
    }  # fmt: skip
    assert {file["edition"] for file in listed} == {edition}


@pytest.mark.requirement("cli.doctor")
def test_doctor_names_every_setting(tmp_path):
    done = run("doctor", data=tmp_path / "data", check=False)
    for setting in SETTINGS:
        assert setting.variable in done.stdout


@pytest.mark.requirement("cli.openapi")
def test_the_contract_is_printed_as_it_is_served(demo, tmp_path):
    printed = json.loads(run("openapi", data=tmp_path / "data").stdout)
    served = demo.get("/openapi.json").json()
    assert printed["paths"] == served["paths"]


FEW_CHANGES = {f"muniment.store.{module}.CHANGES_KEPT": 10 for module in ("published", "postgres_feed")}


@pytest.mark.requirement("changes.too-old")
def test_a_request_for_pruned_changes_is_sent_to_the_exports(tmp_path):
    run("import", str(DEMO), data=new_instance(tmp_path / "data"), constants=FEW_CHANGES)
    with Product(tmp_path / "data", constants=FEW_CHANGES) as product:
        found = check_error(product.get("/api/v1/changes?after=0"), 400, "bad_request")
        assert "/api/v1/exports" in found["hint"]


@pytest.mark.requirement("exports.list")
def test_whole_files_of_the_registry_are_listed_and_served(demo):
    for export in demo.data_of("/api/v1/exports"):
        assert set(export) == {"name", "url", "latestUrl", "rows", "bytes", "sha256", "edition", "at"}
        answer = demo.get("/exports/" + export["name"])
        assert answer.status == 200
        assert len(answer.body) == export["bytes"]
        content = gzip.decompress(answer.body)
        if ".sqlite" in export["name"]:
            assert content.startswith(b"SQLite format 3")
            continue
        text = content.decode()
        if ".jsonl" in export["name"]:
            assert len([json.loads(line) for line in text.splitlines()]) == export["rows"]
        else:
            assert len(list(csv.DictReader(io.StringIO(text)))) == export["rows"]
    assert demo.get("/exports/../muniment.sqlite3").status == 404
    assert demo.get("/exports/%2e%2e%2fmuniment.sqlite3").status == 404


@pytest.mark.requirement("exports.list")
def test_an_export_is_resumed_and_not_sent_twice(demo):
    export = demo.data_of("/api/v1/exports")[0]
    path = f"/exports/{export['name']}"
    whole = demo.get(path)
    etag, modified = whole.headers["etag"], whole.headers["last-modified"]
    assert etag == f'"{export["sha256"]}"'
    assert "immutable" in whole.headers["cache-control"]
    rest = demo.get(path, range=f"bytes={export['bytes'] - 40}-", if_range=etag)
    assert (rest.status, rest.body) == (206, whole.body[-40:])
    assert rest.headers["content-range"] == f"bytes {export['bytes'] - 40}-{export['bytes'] - 1}/{export['bytes']}"
    assert demo.get(path, range="bytes=5-", if_range='"another"').body == whole.body
    assert demo.get(path, range=f"bytes={export['bytes']}-").status == 416
    for condition in ({"if_none_match": f'W/"x", {etag}'}, {"if_modified_since": modified}):
        unchanged = demo.get(path, **condition)
        assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", etag)
    for condition in ({"if_none_match": '"x"', "if_modified_since": modified}, {"if_modified_since": "yesterday"}):
        assert demo.get(path, **condition).status == 200
    head = demo.request("HEAD", path)
    assert (head.status, head.headers["content-length"], head.body) == (200, str(export["bytes"]), b"")


@pytest.mark.requirement("exports.list")
def test_the_newest_edition_of_an_export_has_an_address_that_stays(demo):
    for export in demo.data_of("/api/v1/exports"):
        path = export["latestUrl"][export["latestUrl"].index("/exports/") :]
        assert "-latest." in path
        latest = demo.get(path)
        assert hashlib.sha256(latest.body).hexdigest() == export["sha256"]
        assert latest.headers["cache-control"] == "public, max-age=30"
        assert export["name"] in latest.headers["content-disposition"]
    check_error(demo.get("/exports/stats-latest.jsonl.gz"), 404, "not_found")
