"""Nodes over one PostgreSQL are upgraded one by one behind the shipped proxy, while they are read and changed."""

import os
import signal
from unittest import mock

import psycopg
import pytest

from muniment.schema.objects import registry_schema
from muniment.server.process.exit_status import REFUSED
from muniment.store.tables import FILE_NAME
from muniment.store.tables import form as tables_form
from muniment.store.tables.comparing import compare
from services import former
from services.editors import Editors, website
from services.load import PATHS, Load
from services.nodes import EMAIL, KEY, everything, shown
from services.ports import wait_until
from services.product import DEMO, Product, run
from services.proxies import caddy
from services.uploads import tool

pytestmark = [pytest.mark.proof, pytest.mark.postgresql, pytest.mark.timeout(900)]
MIXED = "https://mixed.example"
"""Set by the older node alone, while the newer one serves too."""


class Pair:
    """Two nodes of any version, behind Caddy as it is configured in deploy/."""

    def __init__(self, folder, url, *version):
        self.settings = {"database_url": url, "secret_key": KEY, "trusted_proxies": "127.0.0.1"}
        self.maker = folder / "maker"
        with former.running(*version):
            self.command("import", str(DEMO))
            self.command("user", "create", EMAIL, "--no-password")
            self.token = self.command("user", "token", EMAIL, "--name", "editor").stdout.split()[-1]
            with psycopg.connect(url) as database:
                found = database.execute("SELECT slug FROM registry_company ORDER BY slug LIMIT 5").fetchall()
            self.slugs = [slug for (slug,) in found]
            for slug in self.slugs:  # by the command, which publishes that the listing has an owner
                self.command("own", EMAIL, slug)
        self.nodes = [Product(folder / f"node-{number}", **self.settings) for number in range(2)]
        for node in self.nodes:
            self.start(node, *version)

    def command(self, *arguments, check=True):
        return run(*arguments, data=self.maker, check=check, **self.settings)

    @staticmethod
    def start(node, *version):
        with former.running(*version):
            node.start(within_s=60)
        node.wait_ready("/readyz?writes", within_s=90)

    def change(self, node, slug, website):
        found = tool(node, self.token, "update_my_company", slug=slug, changes={"website": website})
        assert "data" in found, found

    def stored(self, slugs):
        """Return the website of each company in the source."""
        with psycopg.connect(self.settings["database_url"]) as database:
            found = database.execute("SELECT slug, website FROM registry_company WHERE slug = ANY(%s)", (slugs,))
            return dict(found.fetchall())

    def wait_level(self):
        with psycopg.connect(self.settings["database_url"]) as database:
            (newest,) = database.execute("SELECT value FROM published_edition").fetchone()
        wait_until(lambda: {shown(node) for node in self.nodes} == {newest}, within_s=30, what="both nodes level")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for node in self.nodes:
            node.__exit__(*error)


def test_reads_and_writes_continue_while_nodes_are_upgraded_one_by_one(postgres, tmp_path):
    newer = former.expanded(tmp_path / "newer")
    postgres.drop("rolling")
    url = postgres.create("rolling")
    (tmp_path / "caddy").mkdir()
    with (
        Pair(tmp_path, url) as pair,
        caddy(tmp_path / "caddy", *(node.host for node in pair.nodes)) as port,
    ):
        front = Product(tmp_path / "front")
        front.port = port
        slugs = pair.slugs[:4]
        # Not the feed from its beginning: a version that renders documents otherwise starts it over, and says so.
        paths = ["/", "/companies", *(path for path in PATHS if path != "/api/v1/changes")]
        paths += [f"/api/v1/companies?q={slug.partition('-')[0]}" for slug in slugs]
        with (
            Load([port], paths=paths, threads=4, pause_s=0.01) as load,
            Editors([front], pair.token, slugs) as editors,
        ):
            for node in pair.nodes:
                before = editors.total
                wait_until(lambda before=before: editors.total >= before + 40, within_s=60, what="40 changes")
                assert node.stop() == 0
                pair.start(node, *newer)
                if node is pair.nodes[0]:
                    pair.change(pair.nodes[1], pair.slugs[4], MIXED)
                before = editors.total
                wait_until(lambda before=before: editors.total >= before + 40, within_s=60, what="40 changes")
            editors.pause()
            pair.wait_level()
            assert load.failures == []
            kept = pair.stored(slugs)
            assert {slug: int(kept[slug].rpartition("/")[2]) for slug in slugs} == editors.acknowledged
            for slug, number in editors.acknowledged.items():
                for node in pair.nodes:
                    company = node.data_of(f"/api/v1/companies/{slug}")["company"]
                    assert company["website"] == website(slug, number)
            assert everything(pair.nodes[0]) == everything(pair.nodes[1])
            for node in pair.nodes:
                assert node.data_of(f"/api/v1/companies/{pair.slugs[4]}")["company"]["website"] == MIXED
            told = pair.command("doctor", "--deep", check=False).stdout
            assert "OK    published documents: each is what its source says" in told, told
            assert "FAIL" not in told, told
        print(  # noqa: T201 - a proof says what it measured
            f"\nupgraded: {load.total} reads, 0 failed; {editors.total} changes acknowledged, 0 lost,"
            f" {len(editors.refused)} refused: {editors.messages()}"
        )


def rows_of(node, table):
    """Return the number of rows of a table, or the message of the refusal."""
    answer = node.get(f"/api/v1/query?sql=SELECT+count(*)+AS+n+FROM+{table}")
    found = answer.json()
    return found["data"][0]["n"] if answer.status == 200 else found["error"]["message"]


def check_tables(node, form):
    """Hold every row of the tables of a node against its published documents."""
    found = compare(node.data / "published.sqlite3", node.data / FILE_NAME, form, "", 1_000_000)
    assert found.faults == []
    assert found.examined > 10, "the tables reached the edition of the documents"


def form_of_newer():
    with mock.patch.dict(tables_form._TABLE_NAMES, {"capTable": "shares"}):
        return tables_form.Form(registry_schema("USD"))


QUESTIONS = (
    *("/api/v1/query?sql=SELECT+count(*)+FROM+companies", "/api/v1/query?sql=SELECT+1&format=csv", "/data/query"),
    "/api/v1/tables",
)


def test_nodes_whose_tables_have_different_forms_each_answer_by_their_own_while_both_are_changed(postgres, tmp_path):
    newer = former.copied(tmp_path / "newer")
    former.rename_holders(newer)
    here, there = tables_form.Form(registry_schema("USD")), form_of_newer()
    assert here.id != there.id
    postgres.drop("forms")
    with Pair(tmp_path, postgres.create("forms")) as pair:
        old, new = pair.nodes
        for node in pair.nodes:
            wait_until(lambda node=node: node.get("/api/v1/tables").status == 200, within_s=60, what="the tables")
        holders = rows_of(new, "holders")
        assert holders > 0
        assert new.stop() == 0
        with Load([old.port], paths=[*PATHS, *QUESTIONS], threads=2, pause_s=0.01) as load:
            pair.start(new, *newer)
            with Load([new.port], paths=QUESTIONS, threads=2, pause_s=0.01) as of_new:
                # Until its own are made, it answers from those that it had: no statement is refused meanwhile.
                wait_until(lambda: rows_of(new, "shares") == holders, within_s=60, what="tables of the newer form")
                with Editors(pair.nodes, pair.token, pair.slugs[:4]) as editors:
                    wait_until(lambda: editors.total >= 40, within_s=60, what="40 changes")
                    editors.pause()
                pair.wait_level()
                check_tables(old, here)
                check_tables(new, there)
        assert (load.failures, of_new.failures) == ([], [])
        assert (rows_of(old, "holders"), rows_of(new, "shares")) == (holders, holders)
        assert "no table shares" in rows_of(old, "shares")
        assert "no table holders" in rows_of(new, "holders")
        assert old.stop() == 0
        pair.start(old, *newer)
        wait_until(lambda: rows_of(old, "shares") == holders, within_s=60, what="tables of the newer form")
        check_tables(old, there)


def test_processes_of_a_node_that_are_replaced_by_a_newer_form_make_its_tables_once(postgres, tmp_path):
    newer = former.copied(tmp_path / "newer")
    postgres.drop("replaced")
    settings = {"database_url": postgres.create("replaced"), "secret_key": KEY}
    run("import", str(DEMO), data=tmp_path / "maker", **settings)
    with former.running(*newer), Product(tmp_path / "node", "--workers", "3", **settings) as node:
        node.wait_ready(within_s=90)
        wait_until(lambda: node.get("/api/v1/tables").status == 200, within_s=60, what="the tables")
        holders = rows_of(node, "holders")
        with Load([node.port], paths=[*PATHS, *QUESTIONS], threads=4, pause_s=0.01) as load:
            former.rename_holders(newer)  # the files of the version are replaced, and then its processes
            os.kill(node.pid, signal.SIGHUP)
            wait_until(lambda: "every process has been replaced" in node.output(), within_s=200, what="the roll")
            wait_until(lambda: rows_of(node, "shares") == holders, within_s=60, what="tables of the newer form")
            # What a process kept of the tables before is not told any more.
            tables = [answer.json()["data"] for answer in node.get_of_each("/api/v1/tables")]
            assert [{each["name"]: each["rows"] for each in found}["shares"] for found in tables] == [holders] * 3
        assert load.failures == []
        check_tables(node, form_of_newer())


def test_a_contracted_database_is_refused_by_a_version_that_does_not_know_its_form(postgres, tmp_path):
    postgres.drop("contracted")
    url = postgres.create("contracted")
    newer = former.contracted(tmp_path / "newer")
    with Pair(tmp_path, url) as pair:
        old, new = pair.nodes
        assert new.stop() == 0
        with Load([old.port], threads=2, pause_s=0.01) as load:
            pair.start(new, *newer)
            wait_until(lambda: old.get("/readyz?writes").status == 503, within_s=60, what="the old node's refusal")
            assert b"This database needs Muniment 9.1.0 or later (form 2)" in old.get("/readyz?writes").body
            assert old.get("/readyz").status == 200
        assert load.failures == []
        assert old.stop() == 0
        for command in (["serve", "--port", str(old.port)], ["migrate"]):
            done = pair.command(*command, check=False)
            assert done.returncode == REFUSED, done
            assert "This database needs Muniment 9.1.0 or later (form 2)" in done.stderr
            assert "restore a backup that an earlier version made" in done.stderr
            assert "Traceback" not in done.stderr
        pair.start(old, *newer)
        assert everything(old) == everything(new)
