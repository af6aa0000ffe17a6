"""
Everything that an instance needs goes away and comes back, one by one and together, under load.

Two nodes stand behind Caddy, nginx and Varnish with the files of deploy/. Public reads never fail, and each service is
used again within 5 s of its return. Prometheus has the alerts of deploy/.
"""

import contextlib
import subprocess
import time
from itertools import count
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml

from services import varnish
from services.clamd import BAD, Clamd
from services.installed import program
from services.issuer import Issuer, upstream
from services.load import PATHS, Load
from services.mail import Mailbox
from services.nodes import EMAIL, Nodes, shown
from services.ports import wait_until
from services.postgres import Postgres
from services.prometheus import ALERTS, Prometheus
from services.proxies import caddy, nginx
from services.s3 import S3
from services.silent import packets_dropped, stopped
from services.uploads import tool
from services.visitor import Visitor

pytestmark = [pytest.mark.proof, pytest.mark.sqlite, pytest.mark.timeout(1200)]  # it has a PostgreSQL of its own
AWAY_S = 8.0
BACK_WITHIN_S = 5.0
READS = 20_000
PAGES = ("/", "/companies", "/companies/tarnwick-tidal")
_numbers = count()


class Instance:
    """Two nodes, the services that they need, and one check for each service that it is used."""

    def __init__(self, folder, nodes, token, running):
        self.folder, self.nodes, self.token = folder, nodes, token
        self.running = running
        self.slug = nodes.slugs[0]

    @property
    def node(self):
        return self.nodes.each[next(_numbers) % 2]

    def change(self):
        website = f"https://outages.example/{next(_numbers)}"
        return "data" in tool(self.node, self.token, "update_my_company", slug=self.slug, changes={"website": website})

    def upload(self, text="The board meets.\n"):
        """Upload a document; return its id, or None if that was refused."""
        name = f"minutes-{next(_numbers)}.txt"
        found = tool(
            self.node, self.token, "upload_document", companySlug=self.slug, filename=name, text=f"{text}{name}"
        )
        return found["data"]["documentId"] if "data" in found else None

    def state(self, document):
        found = tool(self.node, self.token, "list_my_documents", companySlug=self.slug)["data"]
        return next((each["state"] for each in found if each["documentId"] == document), None)

    def sign_up(self):
        """Create an account, whose code is mailed; return its address."""
        address = f"person-{next(_numbers)}@harbour.example"
        with Visitor(self.node.url, {}) as person:
            person.post(
                "/accounts/signup/",
                email=address,
                password1="four harbours, one tide",
                password2="four harbours, one tide",
            )
        return address

    def has_mail(self, address):
        return any(address in str(each["To"]) for each in self.running["mail"].messages)

    def signs_in_upstream(self):
        with Visitor(self.node.url, {}) as person:
            answer = person.send("/accounts/oidc/sso/login/?process=login", follow=False)
        return answer.headers.get("Location", "").startswith(self.running["identity provider"].url)

    def accepts_writes(self):
        return all(node.get("/readyz?writes").status == 200 for node in self.nodes.each)

    def is_level(self):
        """Return whether every node serves the newest edition."""
        with psycopg.connect(self.nodes.settings["database_url"], connect_timeout=2) as connection:
            (newest,) = connection.execute("SELECT value FROM published_edition").fetchone()
        return all(shown(node) == newest for node in self.nodes.each)

    def begin(self, names):
        """Do what must wait for the services *names*, which are away; return what must hold after their return."""
        checks = []
        if "PostgreSQL" in names:
            assert all(node.get("/readyz").status == 200 for node in self.nodes.each)
            checks += [self.change, self.is_level]
        elif names & {"mail"}:
            address = self.sign_up()
            checks.append(lambda: self.has_mail(address))
        if names == {"clamd"}:
            waiting = self.upload()
            assert self.state(waiting) == "uploaded"
            checks.append(lambda: self.state(waiting) == "ready")
        if "S3" in names:
            assert all(node.get("/readyz").status == 200 for node in self.nodes.each)
            checks.append(self.upload)
        checks += [self.accepts_writes, self.signs_in_upstream]
        return checks


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """Yield the running instance."""
    folder = tmp_path_factory.mktemp("outages")
    running = {
        "S3": S3(folder / "store"),
        "mail": Mailbox(),
        "PostgreSQL": Postgres(),
        "identity provider": Issuer({"sub": "person-1", "email": "person@login.example", "email_verified": True}),
        "clamd": Clamd(folder / "clamd"),
    }
    database = running["PostgreSQL"].create("outages")
    running["PostgreSQL"].stop()
    try:
        for service in running.values():
            service.start()
        settings = {
            "storage_url": running["S3"].url(),
            "mail_url": running["mail"].url,
            "clamd": running["clamd"].address,
            "trusted_proxies": "127.0.0.1",
            **upstream(running["identity provider"]),
        }
        with Nodes(folder, database, 2, **settings) as nodes:
            token = nodes.command("user", "token", EMAIL, "--name", "outages").stdout.split()[-1]
            for node in nodes.each:
                node.wait_ready("/readyz?writes")
            yield Instance(folder, nodes, token, running)
    finally:
        running.pop("PostgreSQL").close()
        for service in running.values():
            service.stop()


@pytest.fixture
def proxies(instance, tmp_path):
    """Yield the ports of Caddy, nginx and Varnish, in front of both nodes."""
    hosts = [node.host for node in instance.nodes.each]
    (tmp_path / "caddy").mkdir()
    (tmp_path / "nginx").mkdir()
    with (
        caddy(tmp_path / "caddy", *hosts) as of_caddy,
        nginx(tmp_path / "nginx", *hosts) as of_nginx,
        varnish.varnish(tmp_path, of_caddy) as of_varnish,
    ):
        yield of_caddy, of_nginx, of_varnish


@contextlib.contextmanager
def read(ports):
    """Read through every proxy, JSON and pages, and hold the failures against 0."""
    with Load(ports, paths=(*PATHS, *PAGES), threads=6, pause_s=0.02) as load:
        yield load
    assert load.failures == []


@pytest.mark.requirement("nodes.outage")
def test_services_stop_one_by_one_and_together_and_no_public_read_fails(instance, proxies):
    back = {}
    rounds = [*({name} for name in instance.running), set(instance.running)]
    with read(proxies) as load:
        for names in rounds:
            before = load.total
            for name in names:
                instance.running[name].stop()
            time.sleep(AWAY_S / 2)  # the outage itself
            checks = instance.begin(names)
            time.sleep(AWAY_S / 2)
            for name in names:
                instance.running[name].start()
            began = time.monotonic()
            for check in checks:
                wait_until(
                    lambda check=check: _holds(check),
                    within_s=30,
                    what=f"{sorted(names)} being used again ({check.__name__})",
                    every_s=0.1,
                )
            back[" and ".join(sorted(names))] = round(time.monotonic() - began, 1)
            assert load.total > before
    print(f"\n{load.total} reads through three proxies, 0 failed; used again after seconds: {back}")  # noqa: T201 - a proof says what it measured
    assert {name: seconds for name, seconds in back.items() if seconds > BACK_WITHIN_S} == {}


@contextlib.contextmanager
def silenced(instance, names, how):
    """Let services be silent: their packets are dropped, or their processes are stopped."""
    ports = {
        "S3": instance.running["S3"].port,
        "mail": instance.running["mail"].port,
        "PostgreSQL": instance.running["PostgreSQL"].port,
        "identity provider": urlsplit(instance.running["identity provider"].url).port,
        "clamd": instance.running["clamd"].port,
    }
    with contextlib.ExitStack() as silence:
        if how == "dropped":
            silence.enter_context(packets_dropped(*(ports[name] for name in names)))
        else:
            for name in names:
                service = instance.running[name]
                silence.enter_context(stopped(service.pid if name == "PostgreSQL" else service._process.pid))
        yield


PROCESSES = ["S3", "PostgreSQL", "clamd"]
"""Services with a process of their own; the others are threads of the test."""


def test_services_are_silent_one_by_one_and_together_and_no_public_read_fails(instance, proxies):
    of_caddy, _, _ = proxies
    names = list(instance.running)
    rounds = [*(("dropped", {name}) for name in names), ("dropped", set(names))]
    rounds += [*(("stopped", {name}) for name in PROCESSES), ("stopped", set(PROCESSES))]
    back, slowest = {}, {"readiness": 0.0, "change": 0.0}
    with Load([of_caddy], paths=(*PATHS, *PAGES), threads=6, pause_s=0.01) as load:
        for how, silent in rounds:
            with silenced(instance, silent, how):
                time.sleep(AWAY_S)  # the outage itself
                for node in instance.nodes.each:
                    began = time.monotonic()
                    assert node.get("/readyz").status == 200
                    slowest["readiness"] = max(slowest["readiness"], time.monotonic() - began)
                began = time.monotonic()
                with contextlib.suppress(AssertionError):
                    instance.change()
                slowest["change"] = max(slowest["change"], time.monotonic() - began)
            began = time.monotonic()
            for check in (instance.change, instance.upload, instance.accepts_writes, instance.signs_in_upstream):
                wait_until(lambda check=check: _holds(check), within_s=60, what=f"{how} {silent} used", every_s=0.1)
            back[f"{how}: {' and '.join(sorted(silent))}"] = round(time.monotonic() - began, 1)
            print(how, silent, back, slowest, load.total, len(load.failures), flush=True)  # noqa: T201 - a proof says what it measured
        wait_until(lambda: load.total >= READS, within_s=600, what="enough reads")
    print(f"\n{load.total} reads through Caddy, 0 failed; used again after seconds: {back}; slowest: {slowest}")  # noqa: T201 - a proof says what it measured
    assert load.failures == []
    assert slowest["change"] < 30


def test_alerts_of_silence_fire_in_a_real_prometheus_and_end_with_it(instance, tmp_path):
    nodes = instance.nodes.each
    with Prometheus(tmp_path / "prometheus", [node.host for node in nodes], waits=False) as prometheus:

        def fires(name, *, within_s=150):
            def is_firing():
                for node in nodes:
                    with contextlib.suppress(OSError):
                        node.get("/readyz?writes")  # a load balancer asks
                return prometheus.alerts().get(name) == "firing"

            wait_until(is_firing, within_s=within_s, what=f"{name} firing", every_s=0.5)

        def ends(name):
            def is_over():
                for node in nodes:
                    node.get("/readyz?writes")
                return name not in prometheus.alerts()

            wait_until(is_over, within_s=150, what=f"the end of {name}", every_s=0.5)

        with silenced(instance, {"PostgreSQL"}, "stopped"):
            fires("MunimentDatabaseAway")
        ends("MunimentDatabaseAway")
        # The one change below must wait for its whole deadline, not be refused because of what is over.
        wait_until(lambda: _holds(instance.change), within_s=60, what="a change after the outage")
        with psycopg.connect(instance.nodes.settings["database_url"]) as other:
            other.execute("SELECT value FROM published_edition FOR UPDATE")
            with contextlib.suppress(AssertionError):
                instance.change()
            fires("MunimentChangesWait")
            fires("MunimentChangesGivenUp")
        ends("MunimentChangesWait")
        with silenced(instance, {"S3"}, "stopped"):
            fires("MunimentStoreAway")
        ends("MunimentStoreAway")


def _holds(check):
    try:
        return check()
    except (OSError, AssertionError, psycopg.Error):
        return False


def test_a_real_scanner_finds_our_signature(instance):
    bad, good = instance.upload(BAD.decode()), instance.upload()
    wait_until(lambda: instance.state(good) == "ready", within_s=20, what="a clean file")
    wait_until(lambda: instance.state(bad) in {"rejected", None}, within_s=20, what="a verdict")


def test_with_every_node_gone_varnish_serves_what_it_has(instance, proxies):
    _, _, port = proxies
    paths = (*PATHS, *PAGES)
    with Load([port], paths=paths, threads=2, pause_s=0.01) as warm:
        wait_until(lambda: warm.total > 4 * len(paths), within_s=30, what="a warm cache")
    assert warm.failures == []
    with Load([port], paths=paths, threads=4, pause_s=0.01) as load:
        for node in instance.nodes.each:
            node.kill()
        wait_until(lambda: load.total > 500, within_s=60, what="500 reads without a node")
        time.sleep(40)  # beyond max-age
        for node in instance.nodes.each:
            node.start(within_s=60)
        for node in instance.nodes.each:
            node.wait_ready("/readyz?writes", within_s=60)
    assert load.failures == []
    print(f"\n{load.total} reads through Varnish, most of them without a node: 0 failed")  # noqa: T201 - a proof says what it measured


def test_promtool_takes_the_alerts():
    done = subprocess.run(
        [program("promtool"), "check", "rules", ALERTS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(yaml.safe_load(ALERTS.read_text())['groups'][0]['rules'])} rules found" in done.stdout


def test_an_alert_fires_in_a_real_prometheus_for_a_real_fault_and_ends_with_it(instance, tmp_path):
    with Prometheus(tmp_path / "prometheus", [node.host for node in instance.nodes.each]) as prometheus:
        assert all(rule["health"] == "ok" for rule in prometheus.rules())
        wait_until(lambda: prometheus.alerts() == {}, within_s=60, what="no alert", every_s=0.5)
        instance.running["PostgreSQL"].stop()
        wait_until(
            lambda: prometheus.alerts().get("MunimentDatabaseAway") == "pending",
            within_s=30,
            what="the alert",
            every_s=0.5,
        )
        wait_until(
            lambda: prometheus.alerts().get("MunimentDatabaseAway") == "firing",
            within_s=180,
            what="the alert firing",
            every_s=1,
        )
        instance.running["PostgreSQL"].start()
        wait_until(
            lambda: "MunimentDatabaseAway" not in prometheus.alerts(), within_s=60, what="the end of it", every_s=0.5
        )
