"""`muniment import`: pruning shows its rows first, and pictures are served at the present URL of the instance."""

import hashlib
import os
import subprocess

from make.pictures import picture
from make.registry import lines
from muniment.registry.company.pictures import resize
from services.prepared import new_instance
from services.product import COMMAND, Product, environment, run


def companies(*numbers, **members):
    return [{"company": {"id": f"c{n}", "name": f"Company {n}", **members}} for n in numbers]


def test_a_pruning_is_shown_limited_and_done(tmp_path):
    folder, data = tmp_path / "in", new_instance(tmp_path / "data")
    lines(folder / "companies.jsonl", *companies(*range(12)))
    run("import", str(folder), data=data)
    lines(folder / "companies.jsonl", *companies(*range(11)))
    dry = run("import", str(folder), "--prune", "--dry-run", data=data)
    assert "prune: company c11" in dry.stderr
    assert dry.stdout.endswith("no invalid rows; 1 to unlist.\n")
    done = run("import", str(folder), "--prune", data=data)
    assert "prune: company c11" in done.stderr
    assert done.stdout.endswith("no invalid rows; 1 unlisted.\n")

    lines(folder / "companies.jsonl", *companies(*range(9), website="https://c.example/"))
    dry = run("import", str(folder), "--prune", "--dry-run", data=data)
    assert "warning: This would unlist 2 of 11 companies, more than a tenth." in dry.stderr
    refused = run("import", str(folder), "--prune", data=data, check=False)
    assert refused.returncode == 1
    assert "error: This would unlist 2 of 11 companies, more than a tenth. Nothing was changed." in refused.stderr
    assert "companies: 0 new, 9 changed" in run("import", str(folder), "--dry-run", data=data).stdout
    assert "2 unlisted." in run("import", str(folder), "--prune", "--prune-limit", "2", data=data).stdout

    lines(folder / "companies.jsonl", *companies(*range(12)))
    again = run("import", str(folder), data=data)
    assert "warning: companies.jsonl:12: 'c11' is unlisted and stays so; --relist publishes it" in again.stderr
    assert "'c11'" not in run("import", str(folder), "--relist", data=data).stderr
    mixed = run("import", str(folder), "--draft", "--prune", data=data, check=False)
    assert "--draft leaves published rows unchanged" in mixed.stderr


def test_pictures_are_imported_and_served_at_the_present_url(tmp_path):
    folder, data = tmp_path / "in", new_instance(tmp_path / "data")
    small, large = resize(picture())
    path = f"/pictures/{hashlib.blake2b(large, digest_size=16).hexdigest()}-512.webp"
    lines(folder / "companies.jsonl", *companies(1, icon=path))
    (folder / "pictures").mkdir()
    (folder / path[1:]).write_bytes(large)
    (folder / path[1:].replace("-512", "-144")).write_bytes(small)
    run("import", str(folder), data=data)
    assert "1 companies, 0 people, 0 frameworks, 1 pictures" in run("export", str(tmp_path / "out"), data=data).stdout
    tags = set()
    for base in ("https://registry.example", "https://moved.example"):
        with Product(data, base_url=base) as product:
            answer = product.get("/api/v1/companies/c1")
            assert answer.json()["data"]["company"]["icon"] == base + path
            assert product.get("/api/v1/companies").json()["data"][0]["icon"] == base + path
            tags.add(answer.headers["etag"])
            product.wait_ready()
            assert product.get(path).body == large
    assert len(tags) == 2


def test_a_table_is_previewed_mapped_imported_and_undone(tmp_path):
    data, file, mapping = new_instance(tmp_path / "data"), tmp_path / "members.csv", tmp_path / "mapping.toml"
    file.write_text("Firma;Mitglied seit;Notiz\nWeiher;03/04/1998;x\nDamm;05/06/1999;\n")
    preview = run("import", str(file), "--preview", data=data)
    assert '? members: Mitglied seit: choose order = "DMY" (day first) or "MDY" (month first)' in preview.stdout
    assert '- members: Notiz: is not mapped and is left out, for example "x".' in preview.stderr
    assert "companies: 2 new" in preview.stdout
    assert "Nothing was written." in preview.stdout
    refused = run("import", str(file), data=data, check=False)
    assert refused.returncode == 1
    assert "error: The mapping needs 1 choice: members: Mitglied seit" in refused.stderr
    run("import", str(file), "--write-mapping", str(mapping), data=data)
    mapping.write_text(mapping.read_text().replace('order = "?"', 'order = "DMY"'))
    done = run("import", str(file), "--mapping", str(mapping), data=data)
    assert done.stdout.endswith("To undo it: muniment import --undo 1\n")
    assert "\tmembers.csv\tcompanies: 2 new" in run("import", "--list", data=data).stdout
    assert "2 new rows unpublished, 0 kept" in run("import", "--undo", "1", data=data).stdout
    assert "0 companies" in run("export", str(tmp_path / "out"), data=data).stdout
    assert "is undone" in run("import", "--undo", "1", data=data, check=False).stderr
    assert "Give one of PATH" in run("import", data=data, check=False).stderr


def test_the_second_import_of_a_table_names_what_changed_and_prunes_what_is_gone(tmp_path):
    data, table = new_instance(tmp_path / "data"), tmp_path / "members.csv"
    heading = "Company,Website\n"
    rows = [f"Alder {n},a{n}.example\n" for n in range(12)]
    table.write_text(heading + "".join(rows))
    run("import", str(table), data=data)
    later = tmp_path / "members-2026-12-01.csv"
    later.write_text(heading + "".join(rows[:10]).replace("a3.example", "three.example") + "Birch,b.example\n")

    dry = run("import", str(later), "--dry-run", data=data)
    assert 'changed: company alder-3 (row 5): website: "https://a3.example" → "https://three.example"' in dry.stdout
    assert "gone: company alder-10\ngone: company alder-11\n" in dry.stderr
    assert "The table no longer has these rows, which stay public; --prune unlists them." in dry.stderr
    refused = run("import", str(later), "--prune", data=data, check=False)
    assert refused.returncode == 1
    assert "This would unlist 2 of 12 companies, more than a tenth." in refused.stderr
    done = run("import", str(later), "--prune", "--prune-limit", "2", data=data)
    assert "prune: company alder-10\nprune: company alder-11\n" in done.stderr
    assert "companies: 1 new, 1 changed, 9 unchanged; no invalid rows; 2 unlisted" in done.stdout
    assert "2 unlisted" in run("import", "--list", data=data).stdout
    undone = run("import", "--undo", "2", data=data).stdout
    assert "Undone: 3 rows restored, 1 new rows unpublished, 0 kept." in undone

    other = tmp_path / "others.csv"
    other.write_text(heading + "".join(rows[:11]))
    assert "gone:" not in run("import", str(other), "--dry-run", data=data).stderr
    for option in (("--complete",), ("--source", "members.csv")):
        assert "gone: company alder-11\n" in run("import", str(other), "--dry-run", *option, data=data).stderr
    folder = lines(tmp_path / "in" / "companies.jsonl", *companies(1)).parent
    mixed = run("import", str(folder), "--complete", data=data, check=False)
    assert "--complete and --source are for tables" in mixed.stderr


def test_an_undo_of_a_pruning_publishes_again_what_it_unlisted(tmp_path):
    folder, data = tmp_path / "in", new_instance(tmp_path / "data")
    lines(folder / "companies.jsonl", *companies(*range(12)))
    run("import", str(folder), data=data)
    lines(folder / "companies.jsonl", *companies(*range(11)))
    run("import", str(folder), "--prune", data=data)
    assert "1 unlisted" in run("import", "--list", data=data).stdout
    assert "1 rows restored" in run("import", "--undo", "2", data=data).stdout
    assert "12 companies" in run("export", str(tmp_path / "out"), data=data).stdout


def test_an_output_that_is_closed_early_ends_quietly(tmp_path):
    data, table = new_instance(tmp_path / "data"), tmp_path / "members.csv"
    table.write_text("Company,Website\n" + "".join(f"Alder {n},a{n}.example\n" for n in range(12)))
    reads, writes = os.pipe()
    os.close(reads)
    command = [*COMMAND, "import", str(table), "--preview"]
    done = subprocess.run(command, env=environment(data), stdout=writes, stderr=subprocess.PIPE, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, b"")


def test_settings_of_pages_are_carried_over_as_a_file(tmp_path):
    first, second = new_instance(tmp_path / "first"), new_instance(tmp_path / "second")
    (first / "registry.toml").write_text('[registry]\nname = "Guild"\nlanguages = ["de", "en"]\n')
    run("settings", "apply", data=first)
    shown = run("settings", "show", data=first).stdout
    (second / "registry.toml").write_text(shown)
    run("settings", "apply", data=second)
    assert run("settings", "show", data=second).stdout == shown
    assert shown == '[registry]\nname = "Guild"\nlanguages = ["de", "en"]\n'


def test_another_currency_than_that_of_the_amounts_is_told_in_a_sentence(tmp_path):
    data, table = new_instance(tmp_path / "data"), tmp_path / "members.csv"
    table.write_text("Company,Website\nAlder,a.example\n")
    run("import", str(table), data=data)
    refused = run("import", str(table), data=data, check=False, currency="EUR")
    assert refused.returncode != 0
    assert "The amounts of this instance are in USD, but MUNIMENT_CURRENCY is EUR." in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_import_of_blank_rows_says_so_and_what_to_do(tmp_path):
    data, table = new_instance(tmp_path / "data"), tmp_path / "companies.csv"
    table.write_text("name,website\n,\n,\n")
    for options in ((), ("--preview",)):
        told = run("import", str(table), *options, data=data, check=False)
        assert "no rows found." in told.stdout
        assert "no invalid rows" not in told.stdout
        assert "All rows are blank below the header" in told.stderr
        assert "--write-mapping" in told.stderr
    lines(tmp_path / "people.jsonl")
    told = run("import", str(tmp_path / "people.jsonl"), data=data)
    assert told.stdout.endswith("no rows found.\n")
    assert "The files have no lines." in told.stderr
