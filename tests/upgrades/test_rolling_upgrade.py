"""Nodes over one PostgreSQL are upgraded one by one behind the shipped proxy, while they are read and changed."""

import psycopg
import pytest

from muniment.server.process.exit_status import REFUSED
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
