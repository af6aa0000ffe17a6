"""The tables equal the published documents after imports, random edits, undo and restore, on every node."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Self

import psycopg
import pytest

from muniment.schema.objects import registry_schema
from muniment.store import published
from muniment.store.tables import FILE_NAME
from muniment.store.tables.comparing import compare
from muniment.store.tables.form import Form
from services.nodes import EMAIL, KEY, shown
from services.ports import wait_until
from services.product import DEMO, Product, environment, run

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]
EDITS = 500
GONE_WITHIN_S = 2
TESTS = Path(__file__).parents[1]


class Instance:
    """
    An instance and the products that serve it.

    Args:
        maker: the data folder of its commands.
        served: the data folders of its products.
        documents: the name of the file with the published documents in each of these.
    """

    def __init__(self, maker: Path, served: list[Path], documents: str, *arguments: str, **settings: str) -> None:
        self.maker, self.documents, self.settings = maker, documents, settings
        maker.mkdir(exist_ok=True)
        self.products = [Product(folder, *arguments, **settings) for folder in served]

    def command(self, *arguments: str, check: bool = True) -> str:
        return run(*arguments, data=self.maker, check=check, **self.settings).stdout

    def edit(self, seed: int, changes: int) -> str:
        """Make random edits and erase a person; return the name of the person."""
        slugs = [item["id"] for item in self.products[0].data_of("/api/v1/companies?pageSize=100")]
        command = [sys.executable, "-m", "services.random_edits", str(seed), str(changes), EMAIL, *slugs]
        more = {"DJANGO_SETTINGS_MODULE": "muniment.settings", "PYTHONPATH": str(TESTS)}
        told = environment(self.maker, **self.settings) | more
        return subprocess.run(command, env=told, check=True, capture_output=True, text=True, timeout=400).stdout.strip()

    def newest(self) -> int:
        if url := self.settings.get("database_url"):
            with psycopg.connect(url) as database:
                return database.execute("SELECT value FROM published_edition").fetchone()[0]
        with closing(sqlite3.connect(self.maker / self.documents)) as own:
            return published.head(own)[0]

    def check(self, least: int = 10) -> None:
        """Hold every row of the tables of each product against its published documents."""
        newest = self.newest()
        wait_until(lambda: {shown(each) for each in self.products} == {newest}, within_s=60, what=f"all at {newest}")
        for product in self.products:
            # Waits until the tables show the edition of the documents.
            found = compare(
                product.data / self.documents, product.data / FILE_NAME, Form(registry_schema("USD")), "", 1_000_000
            )
            assert found.faults == []
            assert found.examined > least, "the tables reached the edition of the documents"

    def named_in(self, text: str) -> list[str]:
        """Return the files of tables and their logs that contain a text."""
        files = [file for product in self.products for file in product.data.glob(f"{FILE_NAME}*")]
        return [str(file) for file in files if text.encode() in file.read_bytes()]

    def __enter__(self) -> Self:
        for product in self.products:
            product.start(within_s=60)
        for product in self.products:
            product.wait_ready(within_s=90)
        return self

    def __exit__(self, *error: object) -> None:
        for product in self.products:
            product.__exit__(None, None, None)


def changed_demo(folder: Path) -> Path:
    """Copy the demo registry with other names, themes and positions."""
    shutil.copytree(DEMO, folder)
    lines = []
    for number, line in enumerate((folder / "companies.jsonl").read_text().splitlines()):
        row = json.loads(line)
        row["company"] |= {"description": "Imported once more.", "themes": ["imported", "again"]}
        row["positions"] = [
            *row.get("positions", []),
            {"title": "Importer", "person": {"name": f"Ida Imported {number:02}"}},
        ]
        lines.append(json.dumps(row))
    (folder / "companies.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def count(product: Product, sql: str) -> int:
    return product.get(f"/api/v1/query?sql={sql.replace(' ', '+')}").json()["data"][0]["n"]


def check_through_everything(instance: Instance, restored: Instance, folder: Path) -> None:
    instance.command("import", str(DEMO))
    instance.command("user", "create", EMAIL, "--no-password")
    with instance:
        instance.check()
        backup = folder / "backup"
        instance.command("backup", str(backup))
        instance.command("import", "--overwrite", str(changed_demo(folder / "changed")))
        instance.check()
        assert count(instance.products[-1], "SELECT count(*) AS n FROM themes WHERE theme = 'imported'") > 5
        number = re.search(r"^\s*(\d+)\b", instance.command("import", "--list"), re.MULTILINE)
        assert number is not None
        erased = instance.edit(7, EDITS)
        instance.check()
        wait_until(lambda: not instance.named_in(erased), within_s=GONE_WITHIN_S, what="the end of the erased person")
        assert instance.named_in("Importer"), "what is public is seen"
        instance.command("import", "--undo", number[1])
        instance.check()
    for product, other in zip(instance.products, restored.products, strict=True):
        # As of nodes that keep their folders, or of a folder that is restored in place: they are of another history.
        other.data.mkdir(parents=True, exist_ok=True)
        for file in product.data.glob(f"{FILE_NAME}*"):
            shutil.copy(file, other.data)
        if product.data != instance.maker:
            shutil.copy(product.data / instance.documents, other.data)
    restored.command("restore", str(backup))
    with restored:
        restored.check()
        assert count(restored.products[-1], "SELECT count(*) AS n FROM themes WHERE theme = 'imported'") == 0
        restored.edit(8, 20)
        restored.check()


@pytest.mark.sqlite
def test_the_tables_equal_the_documents_through_import_edits_undo_and_restore(tmp_path):
    made = [Instance(tmp_path / name, [tmp_path / name], "muniment.sqlite3", "--workers", "2") for name in ("a", "b")]
    check_through_everything(*made, tmp_path)


@pytest.mark.postgresql
def test_the_tables_of_two_nodes_equal_the_documents_through_import_edits_undo_and_restore(postgres, tmp_path):
    made = []
    for name in ("tables_a", "tables_b"):
        postgres.drop(name)
        folders = [tmp_path / f"{name}-{number}" for number in range(2)]
        settings = {"database_url": postgres.create(name), "secret_key": KEY}
        made.append(Instance(tmp_path / f"{name}-maker", folders, "published.sqlite3", **settings))
    check_through_everything(*made, tmp_path)
