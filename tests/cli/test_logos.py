"""`muniment logos`: logos are fetched when an operator says so, from public addresses only, and removed again."""

import pytest
from click.testing import CliRunner

from make.pictures import picture
from make.registry import document, lines
from muniment import cli
from muniment.registry.exchange.importer import import_registry
from services.logo_site import LogoSite
from services.prepared import new_instance
from services.product import Product, run


@pytest.fixture
def site(monkeypatch):
    from muniment.registry.logos import fetching

    found = LogoSite()
    monkeypatch.setattr(fetching, "connection", found.connection)
    yield found
    found.close()


def companies(folder, **icons):
    rows = [{"company": {"id": slug, "name": slug, "icon": icon}} for slug, icon in icons.items()]
    return lines(folder / "companies.jsonl", *rows)


@pytest.mark.django_db
def test_fetching_tells_what_it_fetched_and_why_not_and_removing_shows_monograms_again(site, monkeypatch, tmp_path):
    import muniment.cli.registry  # noqa: F401 - so that it can be patched

    monkeypatch.setattr("muniment.cli.registry.migrated", lambda: None)
    site.files["/one.png"] = picture()
    import_registry(companies(tmp_path, one="http://logos.example/one.png", two="http://logos.example/two.png"))
    asked = CliRunner().invoke(cli.main, ["logos", "fetch"])
    assert asked.exit_code == 0, asked.output
    assert asked.stdout == "1 of 2 listings have a logo now.\n1 without: the site answered 404\n"
    assert "http://logos.example/two.png: the site answered 404" in asked.stderr
    assert document("company", "one")["company"]["logo"]
    assert CliRunner().invoke(cli.main, ["logos", "fetch"]).stdout == "0 of 0 listings have a logo now.\n"
    site.files["/two.png"] = picture(side=200)
    again = CliRunner().invoke(cli.main, ["logos", "fetch", "--again"])
    assert again.stdout == "1 of 1 listings have a logo now.\n"
    removed = CliRunner().invoke(cli.main, ["logos", "remove", "--yes"])
    assert removed.stdout == "2 fetched logos removed.\n"
    assert "logo" not in document("company", "one")["company"]


@pytest.mark.django_db
def test_a_stopped_command_says_how_to_continue(monkeypatch):
    from muniment.registry.logos import stored

    def stopped(**_):
        raise KeyboardInterrupt

    import muniment.cli.registry  # noqa: F401 - so that it can be patched

    monkeypatch.setattr("muniment.cli.registry.migrated", lambda: None)
    monkeypatch.setattr(stored, "fetch_due", stopped)
    done = CliRunner().invoke(cli.main, ["logos", "fetch"])
    assert done.exit_code == 130
    assert "Run the same command again" in done.stderr


def test_a_new_instance_says_how_logos_are_fetched_and_asks_no_site_by_itself(tmp_path):
    data = new_instance(tmp_path / "data")
    run("import", str(companies(tmp_path, one="http://169.254.169.254/x.png", two="http://[::1]/x.png")), data=data)
    done = run("logos", "fetch", data=data)
    assert "0 of 2 listings have a logo now." in done.stdout
    assert "2 without: the name resolves to an address that is not public" in done.stdout
    for said in (True, False):  # once, when it is new
        with Product(tmp_path / "fresh") as product:
            assert ("set MUNIMENT_FETCH_LOGOS=on, or run muniment logos fetch" in product.output()) is said
