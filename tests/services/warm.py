"""
Processes of ``muniment`` that need not import the libraries: forks of an interpreter that has imported them.

Most of what a short command costs is importing: Django and its like, and hundreds of modules of the product. A fork
has all that reads no setting when it is imported, models too, and does the rest itself, `django.setup()` included, with
the environment, folder, mask and files of its caller: a command costs 0.1 s in place of 0.7. This file is also the
program of that interpreter.
"""

import ast
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

SOURCES: Final = Path(__file__).parents[2] / "src" / "muniment"
READ_AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_")
"""What the loader and the interpreter read of their environment: a fork cannot take it up."""
FILES: Final = 4
IMPORTED_LATE: Final = (
    "allauth.account.templatetags.account",
    "allauth.mfa.base.views",
    "allauth.mfa.recovery_codes.views",
    "allauth.mfa.totp.views",
    "allauth.mfa.webauthn.views",
    "allauth.socialaccount.views",
    "allauth.usersessions.middleware",
    "django.contrib.auth.context_processors",
    "django.contrib.humanize.templatetags.humanize",
    "django.contrib.messages.middleware",
    "django.core.wsgi",
    "django.template.context_processors",
    "pycountry.db",
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
)
"""What Django and the server import by name with the first request."""


class Process:
    """A running fork, with the part of ``subprocess.Popen`` that the tests use."""

    def __init__(self, pid: int, ending: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ending = ending

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._ending.settimeout(timeout)
            try:
                self.returncode = int(self._ending.recv(16))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0) from None
            self._ending.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Interpreter:
    """The interpreter with the libraries."""

    def __init__(self) -> None:
        # Without settings: what a library reads at its import must not be another process's.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "DJANGO_"))}
        kept["PYTHONWARNINGS"] = "default"
        self._started_with = read_at_start(kept)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env=kept,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Return whether a fork would be as a new process in *environment*."""
        return read_at_start(environment) == self._started_with

    def start(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        files: tuple[int, int, int],
        *,
        cheap_hashes: bool = False,
        constants: Mapping[str, Any] | None = None,
    ) -> Process:
        """
        Run ``muniment`` with *arguments* in a fork.

        Args:
            arguments: of the command line.
            environment: of the process.
            files: its standard input, output and error output.
            cheap_hashes: hash passwords at the least cost.
            constants: other values of constants of the product; see :func:`set_constants`.
        """
        ours, theirs = socket.socketpair()
        asked = {
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(Path.cwd()),
            "mask": _mask(),
            "cheap_hashes": cheap_hashes,
            "constants": dict(constants or {}),
        }
        with theirs, self._turn:
            socket.send_fds(self._control, [json.dumps(asked).encode()], [*files, theirs.fileno()])
            pid = int(self._control.recv(16))
        return Process(pid, ours)

    def close(self) -> None:
        self._control.close()
        self._process.wait(10)


@functools.cache
def interpreter() -> Interpreter:
    """Return the interpreter of this process of the suite; it is started by the first call."""
    made = Interpreter()
    atexit.register(made.close)
    return made


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def _mask() -> int:
    """Return the mask of this process; ``os.umask`` could not read it without changing it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("\nUmask:")[2].split(maxsplit=1)[0], 8)


class NoSettingsYetError(Exception):
    """A module reads a setting while it is imported: only a process with settings can import it."""


class FixedSettings:
    """
    The settings of Django that are the same in every process, so that models can be imported; no other can be read.

    There is no database and no language yet: whatever a module kept of one would be another process's.
    """

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._fixed: dict[str, Any] = {}
        for node in ast.parse((SOURCES / "settings.py").read_text()).body:
            if isinstance(node, ast.Assign):
                self._take(node)
        self._fixed |= {"DATABASES": {}, "USE_I18N": False}

    def _take(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._named |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        name = node.targets[0]
        if not isinstance(name, ast.Name):
            return
        value = node.value
        if name.id == "INSTALLED_APPS" and isinstance(value, ast.List):
            # An app that depends on the settings is added by the process that has them.
            value = ast.List([item for item in value.elts if not isinstance(item, ast.Starred)])
        with contextlib.suppress(ValueError):
            self._fixed[name.id] = ast.literal_eval(value)

    def __getattr__(self, name: str) -> Any:
        if name in self._fixed:
            return self._fixed[name]
        if name in self._named:
            raise NoSettingsYetError(name)
        from django.conf import global_settings

        return getattr(global_settings, name)


def import_product() -> None:
    """Import the product and its libraries, but for the modules that read a setting when they are imported."""
    from django.apps import apps
    from django.conf import empty, settings
    from django.db import connections
    from django.utils import translation

    from muniment import config

    read_settings, config.current = config.current, _no_settings
    settings._wrapped = FixedSettings()
    apps.get_app_configs = list  # so that no app is told that it is ready
    apps.populate(settings.INSTALLED_APPS)
    names = [f"{app.name}.migrations.{name}" for app in apps.app_configs.values() for name in _migrations(app.path)]
    for file in sorted(SOURCES.rglob("*.py")):
        parts = file.relative_to(SOURCES.parent).with_suffix("").parts
        if parts[-1] != "__main__":
            names.append(".".join(parts).removesuffix(".__init__"))
    for name in (*names, *IMPORTED_LATE):
        with contextlib.suppress(NoSettingsYetError):
            importlib.import_module(name)
    # A fork begins as before `django.setup()`, which then finds every module there. What Django has kept meanwhile of
    # settings, apps, databases and languages is taken back: it would be used in place of the fork's own.
    config.current = read_settings
    settings._wrapped = empty
    del apps.get_app_configs
    apps.app_configs.clear()
    apps.apps_ready = apps.models_ready = apps.ready = apps.loading = False
    apps.ready_event.clear()
    apps.clear_cache()
    for cached in (connections, translation._trans):
        vars(cached).clear()
    connections.__init__()


def _migrations(app: str) -> list[str]:
    return [module.name for module in pkgutil.iter_modules([str(Path(app) / "migrations")])]


def _no_settings() -> NoReturn:
    raise NoSettingsYetError("muniment.config")


def fork_on_request(control: socket.socket) -> Any:
    """Fork for each request, and report how each fork ended; return the request in a fork, None at the end."""
    endings: dict[int, socket.socket] = {}
    heard, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with control, heard, wake, selectors.DefaultSelector() as selector:
        for each in (control, heard):
            selector.register(each, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if heard in ready:
                heard.recv(64)
                while endings and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    with endings.pop(ended[0]) as ending, contextlib.suppress(OSError):
                        ending.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
            if control in ready:
                message, descriptors, *_ = socket.recv_fds(control, 1 << 20, FILES)
                if not message:
                    return None
                pid = os.fork()
                if not pid:
                    for ending in endings.values():
                        ending.close()
                    return json.loads(message), descriptors
                *files, ending_of = descriptors
                for descriptor in files:
                    os.close(descriptor)
                endings[pid] = socket.socket(fileno=ending_of)
                control.send(str(pid).encode())


def become(asked: Any, descriptors: list[int]) -> None:
    """Take on what a new process would have from its caller."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        if number < FILES - 1:
            os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    os.chdir(asked["folder"])
    os.umask(asked["mask"])
    sys.path.insert(0, asked["folder"])
    sys.argv[1:] = asked["arguments"]
    if asked["cheap_hashes"]:
        hash_cheaply()
    set_constants(asked["constants"])


def hash_cheaply() -> None:
    """Let a hash of a password cost nearly nothing in this process, in place of 0.2 s and 100 MB."""
    from django.contrib.auth.hashers import Argon2PasswordHasher

    Argon2PasswordHasher.time_cost, Argon2PasswordHasher.memory_cost, Argon2PasswordHasher.parallelism = 1, 8, 1


def set_constants(constants: Mapping[str, Any]) -> None:
    """
    Set constants of the product, by module and name, before it runs: limits that no operator needs to change.

    A module that has taken one by ``from`` keeps the former value.

    A value ``{"is": "module:name"}`` is what has that name.
    """
    for place, value in constants.items():
        module, _, name = place.rpartition(".")
        found = importlib.import_module(module)
        if not hasattr(found, name):
            raise AttributeError(f"There is no constant {place}.")
        setattr(found, name, pkgutil.resolve_name(value["is"]) if isinstance(value, dict) else value)


def run_product() -> int:
    """Run ``python -m muniment`` and return its exit status."""
    try:
        runpy.run_module("muniment", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter itself does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def leave(code: int) -> NoReturn:
    """End as the forks of multiprocessing do: to take down all that was imported takes longer than a command."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads
    atexit._run_exitfuncs()
    for (
        each
    ) in gc.get_objects():  # an interpreter that ends closes its databases: the last one moves the log into the file
        if issubclass(type(each), sqlite3.Connection):
            with contextlib.suppress(sqlite3.Error):
                each.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import_product()
    gc.freeze()  # a collection in a fork would copy every page
    request = fork_on_request(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        become(*request)
        leave(run_product())
