"""
The whole suite's set-up.

One process of the suite has one data folder and one database of its own, made before Django is set
up: the SQLite file in that folder, or with ``--database postgresql`` a database of a throwaway
cluster. It is migrated once. A test with a transaction of its own is rolled back; after a test that
commits, the database is put back as it was after the migrations.
"""

import contextlib
import gc
import importlib
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from make.rest import Rest
from muniment import config as settings_of_process
from muniment.kernel import fairness
from muniment.setting_values import Provider
from services import selection
from services.chromium import chromium
from services.mail import Mailbox
from services.postgres import Kept, Postgres
from services.prepared import demo_registry
from services.product import Product, Served
from services.shared import Shared, shared
from services.statements import recorded, repetitions
from services.warm import hash_cheaply

SUITE_PROVIDER = Provider("sso", "Suite", "http://issuer.invalid", "suite", "secret")
IRIS = "rfc3987_syntax"
SHARED = "muniment_shared"
SUITE = "muniment_suite"
LEFT = "muniment_left"


class Stand:
    """What one process of the suite stands on."""

    def __init__(self, *, database: str, worker: str, served: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"muniment-tests-{worker}-"))
        self.cluster: Postgres | None = None
        self.kept: Kept | None = None
        self.migrated: Path | None = None
        self.name = f"muniment_{worker}"
        # With an issuer, its part of Django is installed for the tests that name one of their own.
        overrides: dict[str, Any] = {"data": self.folder, "rate_limit": 0, "oidc_providers": (SUITE_PROVIDER,)}
        if database == "postgresql":
            self.cluster = Postgres()
            if served:
                Served.cluster = self.cluster
            overrides["database_url"] = self.cluster.create(self.name)
        Served.workers = served or 1
        self.config = settings_of_process.use(settings_of_process.Config({}, **overrides))

    def close(self) -> None:
        """Remove everything."""
        if self.cluster is not None:
            self.cluster.close()
        shutil.rmtree(self.folder, ignore_errors=True)


stand_key = pytest.StashKey[Stand]()
left_key = pytest.StashKey[int]()
"""How many tests this run leaves to `make prove`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=("sqlite", "postgresql"),
        default="sqlite",
        help="the database of the tests; with postgresql only the tests that use a database run",
    )
    parser.addoption(
        "--served",
        type=int,
        default=0,
        metavar="WORKERS",
        help="serve every product on --database, by so many processes, and run the whole suite on it",
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="run every case of every test, not the selection of tests/services/selection.py",
    )
    parser.addoption(
        "--without-repetitions",
        action="store_true",
        help="on PostgreSQL, leave out what passes no statement of its own, as the run before recorded it "
        "with -p services.statements",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "requirement(id): the test proves this row of tests/contract/requirements.py",
        "sqlite: only on SQLite, the reason stands beside it",
        "postgresql: only on PostgreSQL; runs with --database postgresql",
        "proof: takes long; runs in `make prove`",
        'whole(keeps): `make test` runs so many cases of the test (or "all"), `make prove` runs every case',
    ):
        config.addinivalue_line("markers", line)
    given = getattr(config, "workerinput", {})
    worker = given.get("workerid")
    if worker is None and getattr(config.option, "numprocesses", None):
        # The one that hands out the tests runs none.
        Shared.folder = Path(tempfile.mkdtemp(prefix="muniment-shared-"))
        return
    Shared.folder = Path(given[SHARED]) if SHARED in given else None
    options = {"database": config.getoption("--database"), "served": config.getoption("--served")}
    gc.disable()  # collecting makes what stays; a collection of it would be in vain
    _leave_grammars_for_later()
    stand = Stand(worker=worker or "alone", **options)
    config.stash[stand_key] = stand
    os.environ["DJANGO_SETTINGS_MODULE"] = "muniment.settings"
    import django

    django.setup()
    from django.conf import settings

    settings.SOCIALACCOUNT_PROVIDERS = {}
    hash_cheaply()


def _leave_grammars_for_later() -> None:
    """Let the 38 grammars of two rare formats be made when the first is checked: it takes longer than all of Django."""

    def is_valid_syntax(rule: str, value: str) -> bool:
        if sys.modules[IRIS] is stands_in:
            del sys.modules[IRIS]
        return bool(importlib.import_module(IRIS).is_valid_syntax(rule, value))

    if IRIS not in sys.modules:
        stands_in = ModuleType(IRIS)
        vars(stands_in)["is_valid_syntax"] = is_valid_syntax
        sys.modules[IRIS] = stands_in


def pytest_unconfigure(config: pytest.Config) -> None:
    stand = config.stash.get(stand_key, None)
    if stand is not None:
        stand.close()
    elif Shared.folder is not None:
        shutil.rmtree(Shared.folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass to a new process the folder that all processes of a run share, and whether they collect the whole suite."""
    node.workerinput[SHARED] = str(Shared.folder)
    node.workerinput[SUITE] = _is_suite(node.config)


def _is_suite(config: pytest.Config) -> bool:
    """Return whether this run is of all folders: the command names none."""
    given = getattr(config, "workerinput", {})
    return bool(given.get(SUITE, config.args_source is pytest.Config.ArgsSource.TESTPATHS))


def _is_selection(config: pytest.Config) -> bool:
    """Return whether `make prove` runs more cases: not if this run was asked for certain tests, or for all."""
    option = config.option
    return _is_suite(config) and not (option.whole or option.keyword or option.markexpr or getattr(option, "lf", False))


def pytest_collection(session: pytest.Session) -> None:
    """
    Import this process's share of the modules before those of the others, in a run of the whole suite.

    In a new checkout every module is compiled when it is first imported, which takes three times as long as collecting
    it. Processes that all began with the same module would each compile every one; so each finds the others' bytecode.
    """
    given = getattr(session.config, "workerinput", {})
    if not given.get(SUITE) or session.config.getoption("--database") == "postgresql":
        return
    modules = sorted((session.config.rootpath / "tests").rglob("test_*.py"))
    number = int(given["workerid"].removeprefix("gw"))
    for path in modules[number :: given["workercount"]]:
        # What goes wrong goes wrong again when the module is collected, and is reported there.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            _ = pytest.Module.from_parent(session, path=path).obj


LONG = {"attacks", "browser", "clients", "conformance", "surfaces", "trouble", "upgrades"}
"""Folders whose tests mostly wait for servers."""
STARTS_PRODUCTS = re.compile(r"^from services\.(?:former|prepared|product) ", re.MULTILINE)
"""Stands in every other module that may take long with few tests."""
NAMES_DATABASE = re.compile(r"\bdjango_db\b|\bdb\b")
"""Stands in every module with a test that uses a database; which a run on SQLite checks."""
THIN = (
    *("tests/web/", "tests/mcp/", "tests/parity/", "tests/registry/tables/", "tests/schema/test_declared_kinds.py"),
    *("tests/documents/test_http.py", "tests/documents/test_upload_form.py", "tests/surfaces/test_report_refusals.py"),
)


def _uses_database(item: pytest.Item) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(names & {"db", "transactional_db"})


def _is_thin(item: pytest.Item) -> bool:
    """Return whether a test is of surfaces over operations with tests of their own; `make prove` runs all of them."""
    return any(item.nodeid.startswith(each) for each in THIN)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the modules all of whose tests would be left out: importing them takes half of the time."""
    if config.getoption("--database") != "postgresql" or config.getoption("--served"):
        return None
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(config.rootpath):
        return None
    if not collection_path.name.startswith("test_"):
        return None
    thin = collection_path.relative_to(config.rootpath).as_posix().startswith(THIN)
    text = collection_path.read_text()
    return None if "mark.postgresql" in text or (not thin and NAMES_DATABASE.search(text)) else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Leave out what belongs to the other database, and the long proofs unless they are asked for by name.

    Of the rest, a run of the suite keeps what `services.selection` says.
    """
    on_postgresql = config.getoption("--database") == "postgresql"
    chosen, left, on_database = [], [], set[Path]()
    for item in items:
        if on_postgresql:
            fits = item.get_closest_marker("sqlite") is None and (
                bool(config.getoption("--served"))
                or (_uses_database(item) and not _is_thin(item))
                or item.get_closest_marker("postgresql") is not None
            )
        else:
            fits = item.get_closest_marker("postgresql") is None
            on_database |= {item.path} if _uses_database(item) else set()
        if item.get_closest_marker("proof") and "proof" not in (config.option.markexpr or ""):
            fits = False
        (chosen if fits else left).append(item)
    for path in on_database:
        assert NAMES_DATABASE.search(path.read_text()), f"{path}: mark django_db, for PostgreSQL"
    if _is_selection(config):
        kept = selection.kept(chosen, on_postgresql=on_postgresql)
        if on_postgresql and config.getoption("--without-repetitions"):
            kept = _without_repetitions(kept)
        config.stash[left_key] = len(chosen) - len(kept)
        still = {item.nodeid for item in kept}
        left += [item for item in chosen if item.nodeid not in still]
        chosen = kept
    if left:
        config.hook.pytest_deselected(items=left)
    items[:] = _ordered(chosen)


def _without_repetitions(items: list[pytest.Item]) -> list[pytest.Item]:
    """
    Leave out the tests whose statements others of *items* pass too.

    Those that run only here stay, and so do those that commit: where connections meet, PostgreSQL has locks of its own.
    """
    shared, always = [], []
    for item in items:
        is_only_here = item.get_closest_marker("postgresql") is not None
        (always if is_only_here or _commits(item) else shared).append(item.nodeid)
    repeated = repetitions(shared, recorded(), always)
    return [item for item in items if item.nodeid not in repeated]


def _commits(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("django_db")
    return "transactional_db" in getattr(item, "fixturenames", ()) or bool(mark and mark.kwargs.get("transaction"))


def _ordered(items: list[pytest.Item]) -> list[pytest.Item]:
    """
    Begin with the modules that may take long, so that no process of the suite is alone with one at the end.

    These are the modules of some folders, those that start the product, then those with the most tests. The tests of a
    module keep their order.
    """
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)

    def late(path: Path) -> tuple[bool, bool, int]:
        is_long = not LONG.isdisjoint(path.parts)
        return not is_long, not is_long and not STARTS_PRODUCTS.search(path.read_text()), -len(modules[path])

    return [item for path in sorted(modules, key=late) for item in modules[path]]


def pytest_collection_finish() -> None:
    """Spare every garbage collection the objects of thousands of tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _nothing_of_a_module_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    Take back limits on accounts that an application in this process has set, and close what a restart has ended.

    Documents that fixtures of the module, or tests without a database, have left go too.
    """
    from django.db import connections

    yield
    fairness.use(fairness.Fairness())
    connections.close_all()
    _remove_documents(request.config)


@pytest.fixture(autouse=True)
def _no_document_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the documents that a test left in the folder of this process: the next one counts them."""
    yield
    if _uses_database(request.node):
        _remove_documents(request.config)


def _remove_documents(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[stand_key].folder / "blobs" / "documents", ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the number of tests that are left to `make prove` to the process that hands out the tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[LEFT] = session.config.stash.get(left_key, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note how many tests a process has left: all leave the same ones, and one that broke off says nothing."""
    left = getattr(node, "workeroutput", {}).get(LEFT, 0)
    node.config.stash[left_key] = max(left, node.config.stash.get(left_key, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what this run did not test."""
    left = terminalreporter.config.stash.get(left_key, 0)
    if left:
        terminalreporter.write_line(f"{left} tests were left to `make prove`; --whole runs them too.", bold=True)
    if not sample_folder():
        terminalreporter.write_line(
            "MUNIMENT_SAMPLE_DATA is not set: the tests on a real registry were left out.", yellow=True, bold=True
        )


def sample_folder() -> Path | None:
    """Return the folder of a real registry in the import form, when this machine has one."""
    named = os.environ.get("MUNIMENT_SAMPLE_DATA", "")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def stand(pytestconfig: pytest.Config) -> Stand:
    """Return what this process stands on."""
    return pytestconfig.stash[stand_key]


@pytest.fixture(autouse=True)
def _no_suppressions_stay(stand: Stand) -> Iterator[None]:
    """Remove the suppression list from the data folder: the rows go with the test, but the file would stay."""
    yield
    for name in ("suppressions.jsonl", "suppressions.folders"):
        (stand.folder / name).unlink(missing_ok=True)


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """Return a real registry in the import form; without one the test is skipped, and the summary says so."""
    folder = sample_folder()
    if folder is None:
        pytest.skip("MUNIMENT_SAMPLE_DATA is not set")
    assert folder.is_dir(), f"MUNIMENT_SAMPLE_DATA names {folder}, which is no folder"
    return folder


@pytest.fixture(scope="session")
def django_db_setup(stand: Stand, django_db_blocker: Any) -> None:
    """Migrate this process's own database, once, and keep what it holds: a test that commits is followed by that."""
    from django.db import connections
    from django.test import TransactionTestCase

    from muniment.store.database import migrations

    def migrate(copy_at: Path | None = None) -> None:
        migrations.migrate()
        connections.close_all()
        if copy_at is not None:
            _copy(stand.config.database_file, copy_at)

    with django_db_blocker.unblock():
        if stand.cluster is not None:
            _migrate_cluster(stand, stand.cluster, migrate)
            stand.kept = Kept(stand.cluster.url(stand.name))
        else:
            stand.migrated = shared("after_migrations", migrate)
            _put_back(stand)
    # Django's own way would empty every table, and fill those of its own again.
    TransactionTestCase._fixture_teardown = lambda _: _put_back(stand)


def _migrate_cluster(stand: Stand, cluster: Postgres, migrate: Callable[[], None]) -> None:
    """Migrate the database of this process, or load what another one of this run has dumped after its migrations."""
    is_migrated = False

    def dump(place: Path) -> None:
        nonlocal is_migrated
        migrate()
        cluster.dump(stand.name, place)
        is_migrated = True

    dumped = shared("after_migrations.sql", dump)
    if not is_migrated:
        cluster.load(stand.name, dumped)


def _put_back(stand: Stand) -> None:
    from django.db import connections

    connections.close_all()
    if stand.kept is not None:
        stand.kept.put_back()
        for file in stand.folder.glob("published.sqlite3*"):
            file.unlink()
    elif stand.migrated is not None:
        _copy(stand.migrated, stand.config.database_file)


def _copy(database: Path, place: Path) -> None:
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(place, timeout=60)) as target:
        source.backup(target)


@pytest.fixture(scope="session")
def postgres(stand: Stand) -> Iterator[Postgres]:
    """Yield a PostgreSQL cluster whichever database the run is on: for fleets, followers and moves between the two."""
    if stand.cluster is not None:
        yield stand.cluster
        return
    cluster = Postgres()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Yield the running product with the demo registry. Shared: a test that changes anything starts its own."""
    with Product(demo_registry(tmp_path_factory.mktemp("demo") / "data")) as product:
        yield product


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield Chromium, for the tests of one module."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each process of the product import its libraries itself, as on an operator's machine."""
    monkeypatch.setattr(Served, "forks", False)


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """Yield a mail server that keeps what it is sent."""
    with Mailbox() as box:
        yield box


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Rest]:
    """Return the REST application over a small published file of its own."""
    made = Rest(tmp_path)
    yield made
    made.close()
