"""The proxies of deploy/, in the versions of the distribution: visitors choose languages and operators set up."""

import re
import subprocess

import httpx
import pytest

from services import linters, proxies, varnish
from services.installed import program
from services.owner import EMAIL, PASSWORD
from services.prepared import demo_registry, new_instance
from services.product import Product, run

pytestmark = pytest.mark.proof
SHOWN = re.compile(r'<html lang="(\w+)"')
GERMAN, ENGLISH = {"Accept-Language": "de"}, {"Accept-Language": "en"}


@pytest.fixture(params=["caddy", "nginx", "varnish"])
def through(request, tmp_path):
    """Return what puts a proxy of the distribution in front of a node."""

    def proxy(product):
        if request.param == "varnish":
            return varnish.varnish(tmp_path, product.port)
        if request.param == "nginx":
            return proxies.nginx(tmp_path, product.host)
        return proxies.caddy(tmp_path, product.host, command=program("caddy"))

    return proxy


@pytest.mark.parametrize("made_by", ["Debian", "the suite"])
def test_caddy_takes_its_file(made_by):
    command = program("caddy") if made_by == "Debian" else linters.folder() / "bin" / "caddy"
    file = proxies.DEPLOY / "caddy" / "Caddyfile"
    done = subprocess.run(
        [command, "adapt", "--config", file, "--adapter", "caddyfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def shown(client, path="/companies", **headers):
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return SHOWN.search(answer.text)[1]


def test_the_chosen_language_stays_and_changes_nobody_elses(through, tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data, trusted_proxies="127.0.0.1") as product, through(product) as port:
        product.wait_ready()
        with (
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as visitor,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as other,
        ):
            for _ in range(2):
                assert [shown(visitor, **GERMAN), shown(other, **ENGLISH)] == ["de", "en"]
            assert visitor.post("/language", data={"to": "en"}, headers=GERMAN).status_code == 303
            assert visitor.cookies["language"] == "en"
            other.cookies["unrelated"] = "1"
            for _ in range(3):
                assert [shown(visitor, **GERMAN), shown(other, **GERMAN)] == ["en", "de"]
                assert shown(visitor, "/companies/quillmere", **GERMAN) == "en"
            visitor.cookies["unrelated"] = "language=de"
            assert shown(visitor, **GERMAN) == "en"


def test_an_operator_sets_a_registry_up_and_signs_in(through, tmp_path):
    data = new_instance(tmp_path / "data")
    with Product(data, trusted_proxies="127.0.0.1") as product, through(product) as port:
        product.wait_ready()
        link = re.search(r"/setup/\S+", run("setup-link", data=data).stdout)[0]
        origin = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=origin, timeout=60, headers={"Origin": origin}) as browser:
            assert browser.get(link).status_code == 302
            page = browser.get("/setup")
            assert page.status_code == 200
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
            fields = {"email": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token}
            assert browser.post("/setup", data=fields).headers["Location"] == "/operate/setup"
            for _ in range(2):
                step = browser.get("/operate/setup", follow_redirects=True)
                assert (step.status_code, step.url.path.startswith("/operate/")) == (200, True), step.url
            assert "signed_in" in browser.cookies
            assert browser.get("/companies").status_code == 200
        with httpx.Client(base_url=origin, timeout=60) as stranger:
            assert stranger.get("/operate/setup").status_code in {302, 404}
