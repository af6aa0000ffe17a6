"""A child that reads an untrusted file has no other file, no network and no program, and its parsers still work."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from muniment import child_process, confinement
from muniment.server.doctor import confinement_finding

ESCAPES = """
import fcntl, json, os, socket, struct, sys, threading
from pathlib import Path
from muniment import confinement

PREPARE
confinement.limit(20, 1 << 30)
missing = confinement.confine()
secret, folder, parent = sys.argv[1], Path(sys.argv[2]), os.getppid()
done = []

def attempt(name, act):
    try:
        act()
    except OSError:
        return
    done.append(name)

attempt("read", lambda: Path(secret).read_bytes())
attempt("list", lambda: list(folder.iterdir()))
attempt("write", lambda: os.open(folder / "new", os.O_CREAT | os.O_WRONLY))
attempt("mode", lambda: os.chmod(secret, 0o777))
attempt("mode of an open file", lambda: os.fchmod(0, 0o777))
attempt("owner", lambda: os.chown(secret, os.getuid(), os.getgid()))
attempt("times", lambda: os.utime(secret, (0, 0)))
attempt("attribute", lambda: os.setxattr(secret, b"user.mark", b"1"))
attempt("shorten", lambda: os.truncate(secret, 0))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
attempt("processors", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("signals of a pipe", lambda: fcntl.fcntl(1, fcntl.F_SETOWN, parent))
attempt("lease", lambda: fcntl.fcntl(0, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("lock of a range", lambda: fcntl.lockf(0, fcntl.LOCK_SH))
attempt("lock", lambda: fcntl.flock(0, fcntl.LOCK_EX))
attempt("flags of an open file", lambda: fcntl.ioctl(0, 0x40086602, struct.pack("l", 0x40)))
attempt("remove", lambda: Path(secret).unlink())
attempt("link", lambda: os.symlink(secret, folder / "link"))
attempt("tcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("pair", socket.socketpair)
attempt("fork", lambda: os.fork() or os._exit(0))
attempt("signal", lambda: os.kill(parent, 0))
libraries = [len(Path(os.__file__).read_bytes()) > 0, b"\\x80".decode("cp1250"), os.kill(os.getpid(), 0)]
print(json.dumps([missing, done, libraries]), flush=True)
attempt("exec", lambda: os.execv(sys.executable, [sys.executable, "-c", "print('another program')"]))
"""
FILES = {"read", "list", "write", "remove", "link"}
NETWORK = {"tcp", "udp", "unix", "pair"}
PROGRAMS = {"fork", "exec", "signal"}
BESIDE_CONTENT = {
    *("mode", "mode of an open file", "owner", "times", "attribute", "shorten"),
    *("priority", "processors", "signals of a pipe"),
    *("lease", "lock of a range", "lock", "flags of an open file"),
}


@pytest.fixture
def instance(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "secret_key").write_bytes(b"the key of the instance")
    return folder


def escapes(folder: Path, prepare: str = "") -> tuple[list[str], set[str], list[object]]:
    """Return what a confined child says is missing, what it could do, and whether it reads its libraries."""
    code = ESCAPES.replace("PREPARE", prepare)
    command = [sys.executable, "-I", "-c", code, str(folder / "secret_key"), str(folder)]
    given = folder.parent / "given"
    given.write_bytes(b"an untrusted file")
    with given.open("rb") as file:
        said = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False, timeout=60)
    assert said.stdout, said.stderr
    first, *rest = said.stdout.splitlines()
    missing, done, libraries = json.loads(first)
    return missing, {*done, *(["exec"] if rest else [])}, libraries


def test_a_confined_child_reaches_nothing_but_its_libraries(instance):
    missing, done, libraries = escapes(instance)
    assert missing == list(child_process.unconfined())
    could = {confinement.FILES: FILES, confinement.NETWORK: NETWORK, confinement.PROGRAMS: PROGRAMS}
    for name, attempts in could.items():
        if name not in missing:
            assert not done & attempts
    if not missing:
        assert not done & BESIDE_CONTENT
    assert libraries == [True, "€", None]
    if confinement.FILES not in missing:
        assert (instance / "secret_key").read_bytes() == b"the key of the instance"


def test_without_landlock_and_seccomp_the_child_says_what_is_open(instance):
    prepare = (
        "confinement.landlock_version = lambda _: 0; confinement._MACHINES = {};"
        " confinement._become_nobody = lambda: False"
    )
    missing, done, libraries = escapes(instance, prepare)
    assert missing == [confinement.FILES, confinement.NETWORK, confinement.PROGRAMS]
    assert {"read", "tcp", "exec", "signal", "mode", "times", "priority", "signals of a pipe", "lease", "lock"} <= done
    assert libraries == [True, "€", None]


BECOME = """
import os, sys
from pathlib import Path
from muniment import confinement

os.access = lambda *_, **__: IS_READABLE
is_nobody = confinement._become_nobody()
try:
    read = Path(sys.argv[1]).read_bytes()
except PermissionError:
    read = b""
print(is_nobody, os.getuid(), os.getgid(), sorted(os.getgroups()) if is_nobody else [], read.decode())
"""


@pytest.mark.parametrize("is_readable", [True, False])
def test_without_landlock_a_child_of_root_becomes_another_user_if_that_one_reads_the_libraries(instance, is_readable):
    secret = instance / "secret_key"
    secret.chmod(0o600)
    code = BECOME.replace("IS_READABLE", str(is_readable))
    said = subprocess.run(
        [sys.executable, "-I", "-c", code, str(secret)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    if os.geteuid() == 0 and is_readable:
        assert said == f"True {confinement.NOBODY} {confinement.NOBODY} [] \n"
    else:
        assert said == f"False {os.getuid()} {os.getgid()} [] the key of the instance\n"


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ((), "processes that read untrusted files reach no other file, no network and no program"),
        (("files",), "also reach other files (the kernel has no Landlock"),
        (("network", "programs"), "also reach the network and programs (no seccomp"),
        (("files", "network", "programs"), "also reach other files (the kernel has no Landlock"),
    ],
)
def test_doctor_says_what_children_still_reach(monkeypatch, missing, says):
    monkeypatch.setattr(child_process, "unconfined", lambda: missing)
    finding = confinement_finding()
    assert says in finding.says
    assert finding.mark == ("WARN" if missing else "OK")


def judge(machine: confinement.Machine, number: int, arguments: tuple[int, ...] = (), audit: int | None = None) -> str:
    """Return what the filter of a machine decides about a call, by running its program as the kernel does."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, machine.audit if audit is None else audit, 0, *values)
    program = [struct.unpack("=HBBI", step) for step in steps_of(confinement.call_filter(machine, 4_711))]
    at = held = 0
    for _ in range(len(program)):
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x06:
            return {0x7FFF0000: "allow", 0x80000000: "kill", 0x50001: "refuse", 0x50026: "unknown"}[value]
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
        at += if_true if holds else if_false
    raise AssertionError("the program does not end")


def steps_of(program: bytes) -> list[bytes]:
    return [program[at : at + 8] for at in range(0, len(program), 8)]


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_filter_of_each_machine_refuses_what_leads_out(name):
    machine = confinement._MACHINES[name]
    read = {"x86_64": 0, "aarch64": 63}[name]
    assert judge(machine, read) == "allow"
    assert judge(machine, read, audit=0x40000003) == "kill"
    assert judge(machine, read | 0x40000000) == "refuse"
    assert {judge(machine, number) for number in machine.refused} == {"refuse"}
    assert judge(machine, machine.clone3) == "unknown"
    assert judge(machine, machine.clone, (0x00010000 | 0x100,)) == "allow"
    assert judge(machine, machine.clone, (17,)) == "refuse"
    for number in machine.signals:
        assert judge(machine, number, (4_711,)) == "allow"
        assert judge(machine, number, (4_712,)) == "refuse"
    for command in (5, 6, 7, 8, 9, 14, 15, 16, 37, 1024, 1026, 1029, 1031):
        assert judge(machine, machine.fcntl, (1, command, 4_712)) == "refuse"
    for command in (0, 1, 2, 3, 4, 1030):
        assert judge(machine, machine.fcntl, (1, command)) == "allow"
    for request in (0x40086602, 0x401C5820, 0x40806685, 0x5400, 0x5402, 0x5412, 0x5452, 0x8901):
        assert judge(machine, machine.ioctl, (0, request)) == "refuse"
    for request in (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x802C542A):
        assert judge(machine, machine.ioctl, (0, request)) == "allow"
    assert judge(machine, machine.prlimit, (0, 9, 0)) == "allow"
    assert judge(machine, machine.prlimit, (0, 9, 1)) == "refuse"
    assert judge(machine, machine.prlimit, (0, 9, 1 << 32)) == "refuse"


def test_every_version_of_landlock_is_asked_for_what_it_knows():
    assert confinement._RIGHTS_OF_FILES == {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
    assert confinement.landlock_version(ctypes.CDLL(None, use_errno=True)) >= -1
