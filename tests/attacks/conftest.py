"""One product, directly and behind the proxies of deploy/, with an attacker and a victim who own a listing each."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from attacks.harness import Site
from muniment import config
from services.owner import COMPANY, EMAIL, PASSWORD, owned_registry
from services.prepared import copied
from services.product import Product, Served, run
from services.proxies import caddy, nginx

ATTACKER = "attacker@storm.example"
ATTACKED_WITH = "quillmere"
LIMITS = ("rate_limit", "rate_burst", "account_writes", "account_cpu_ms")
"""Settings that the suite otherwise turns off."""
FRONTS = ("direct", "caddy", "nginx")


def attacked_with(data: Path, **settings: str) -> None:
    """Create an instance in *data* with a listing of the attacker and one of the victim."""
    owned_registry(data, **settings)
    run("user", "create", ATTACKER, "--password-stdin", data=data, stdin=PASSWORD + "\n", **settings)
    run("own", ATTACKER, ATTACKED_WITH, data=data, **settings)


def signed_in(url: str, email: str) -> tuple[str, str]:
    """Sign in and return the cookies of the session and its CSRF token."""
    with httpx.Client(base_url=url, timeout=30) as web:
        web.get("/accounts/login/")
        fields = {"login": email, "password": PASSWORD, "csrfmiddlewaretoken": web.cookies["csrftoken"]}
        assert web.post("/accounts/login/", data=fields).status_code == 302
        return "; ".join(f"{name}={value}" for name, value in web.cookies.items()), web.cookies["csrftoken"]


def token(data: Path, email: str) -> str:
    return run("user", "token", email, "--name", "suite", data=data).stdout.strip()


@contextlib.contextmanager
def attacked_site(folder: Path) -> Iterator[Site]:
    data = copied(attacked_with, folder / "data")
    tokens = token(data, ATTACKER), token(data, EMAIL)
    with contextlib.ExitStack() as stack:
        # The limits are those of an instance whose operator set nothing.
        defaults = {each.name: each.default for each in config.SETTINGS if each.name in LIMITS}
        with Served.hashing_at_full_cost():  # attempts to sign in are an attack on the processor
            product = stack.enter_context(Product(data, "--workers", "1", trusted_proxies="127.0.0.1", **defaults))
        product.wait_ready(within_s=60)
        signed_in(product.url, EMAIL)  # from here on, the hash of the account that is attacked costs as much
        ports = {"direct": product.port}
        for name, proxy in (("caddy", caddy), ("nginx", nginx)):
            (folder / name).mkdir()
            ports[name] = stack.enter_context(proxy(folder / name, product.host))
        cookies, csrf = signed_in(product.url, ATTACKER)
        yield Site(
            ports,
            product.pid,
            product.output,
            company=ATTACKED_WITH,
            token=tokens[0],
            cookies=cookies,
            csrf=csrf,
            victim_company=COMPANY,
            victim_token=tokens[1],
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield an instance with the default limits, and the proxies in front of it."""
    with attacked_site(tmp_path_factory.mktemp("attacked")) as made:
        yield made
