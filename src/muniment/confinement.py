"""
Confine a child process that reads untrusted files: what its parsers can be made to do harms nothing else.

A child calls :func:`begin` before it reads its file. It then keeps the files that are open, may read the libraries, and
has no other file, no network and no program: by Landlock and seccomp where the kernel has them, and as another user
where it has no Landlock and the parent is root. Time and memory are limited everywhere.

Run as a program, this module confines itself and prints what could not be confined, for `muniment doctor`.
"""

import contextlib
import ctypes
import json
import os
import platform
import resource
import struct
import sys
from pathlib import Path
from typing import Final, NamedTuple

FILES: Final = "files"
NETWORK: Final = "network"
PROGRAMS: Final = "programs"
NOBODY: Final = 65_534
NO_MEMORY: Final = 77
"""The exit status of a child without memory."""
_LIBRARY_FOLDERS: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
"""Folders of the libraries that Python's own modules are linked with."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ_FILE_AND_FOLDER: Final = 1 << 2 | 1 << 3
_RIGHTS_OF_FILES: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of rights that each version of Landlock knows; later versions know as many as the last."""
_RIGHTS_OF_TCP: Final = 0b11
_SCOPES: Final = 0b11
"""Abstract sockets and signals."""


class Machine(NamedTuple):
    """The numbers that a kind of processor gives to the system calls that a confined process may not make."""

    audit: int
    refused: tuple[int, ...]
    clone: int
    clone3: int
    signals: tuple[int, ...]
    """Allowed to the process itself, which aborts by one."""
    prlimit: int
    fcntl: int
    ioctl: int


# The calls that are refused, in this order:
# socket, socketpair, io_uring_setup;
# fork, vfork, execve, execveat (arm64 has the last two alone);
# ptrace, process_vm_readv, process_vm_writev, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_open, pidfd_send_signal,
# pidfd_getfd; setrlimit;
# mount, unshare, setns, bpf, userfaultfd, perf_event_open, add_key, request_key, keyctl, shmget, msgget, semget,
# mq_open;
# truncate; chmod, fchmod, fchmodat, fchmodat2, chown, fchown, lchown, fchownat; utime, utimes, futimesat, utimensat,
# setxattr, lsetxattr, fsetxattr, setxattrat, removexattr, lremovexattr, fremovexattr, removexattrat, file_setattr:
# Landlock hides what is in a file, not its mode, owner and times, and truncate from its third version on;
# setpriority, sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr, ioprio_set;
# flock; sync, syncfs, which write what every other process has changed.
_MACHINES: Final = {
    "x86_64": Machine(
        audit=0xC000003E,
        refused=(
            *(41, 53, 425),
            *(57, 58, 59, 322),
            *(101, 310, 311, 200, 129, 297, 434, 424, 438),
            160,
            *(165, 272, 308, 321, 323, 298, 248, 249, 250, 29, 68, 64, 240),
            *(76, 90, 91, 268, 452, 92, 93, 94, 260),
            *(132, 235, 261, 280, 188, 189, 190, 463, 197, 198, 199, 466, 469),
            *(141, 142, 144, 203, 314, 251),
            *(73, 162, 306),
        ),
        clone=56,
        clone3=435,
        signals=(62, 234),
        prlimit=302,
        fcntl=72,
        ioctl=16,
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        refused=(
            *(198, 199, 425),
            *(221, 281),
            *(117, 270, 271, 130, 138, 240, 434, 424, 438),
            164,
            *(40, 97, 268, 280, 282, 241, 217, 218, 219, 194, 186, 190, 180),
            *(45, 52, 53, 452, 55, 54),
            *(88, 5, 6, 7, 463, 14, 15, 16, 466, 469),
            *(140, 118, 119, 122, 274, 30),
            *(32, 81, 267),
        ),
        clone=220,
        clone3=435,
        signals=(129, 131),
        prlimit=261,
        fcntl=25,
        ioctl=29,
    ),
}
_X32_BIT: Final = 0x40000000
_CLONE_THREAD: Final = 0x00010000
_OF_DESCRIPTORS: Final = (0, 1, 2, 3, 4, 1030)
"""
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL and F_DUPFD_CLOEXEC, the commands of fcntl that libraries need.

Others reach the file itself and other processes: a lease makes every process that opens the file wait for 45 s, a lock
makes others wait too, and any process can be made the owner of signals.
"""
_OF_LOCKS: Final = (5, 6)
"""F_GETLK and F_SETLK, which do not wait: a reader of a write-ahead log marks the part that it reads."""
_OF_STREAMS: Final = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x802C542A)
"""
TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX and TCGETS2, the requests of ioctl that libraries need.

Others change attributes of the file also where it is open for reading alone, some for good.
"""
_EPERM, _ENOSYS = 1, 38
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""The places of these in what a filter is given; each argument has eight bytes."""


def begin() -> list[str]:
    """Limit and confine this process, which `child_process.run` has started, and return its arguments."""
    cpu_s, memory_bytes, *arguments = sys.argv[1:]
    limit(int(cpu_s), int(memory_bytes))
    confine()
    return arguments


def limit(cpu_s: int, memory_bytes: int) -> None:
    """Set the limits: of CPU time, unless it is 0, and of memory; no file can be written and no process started."""
    if cpu_s:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def confine(*, locks: bool = False) -> list[str]:
    """
    Return which of files, network and programs stay open after giving them up, as far as the kernel allows.

    Args:
        locks: whether it may lock parts of the files that it has open, as a reader of a database does.
    """
    if sys.platform != "linux":
        return [FILES, NETWORK, PROGRAMS]
    with contextlib.suppress(OSError):  # if the machine runs out of memory, this process ends before the parent
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    hides_files = _restrict_files(libc) or _become_nobody()
    _drop_capabilities(libc)
    has_filter = _filter_calls(libc, locks=locks)
    missing = [] if hides_files else [FILES]
    return missing if has_filter else [*missing, NETWORK, PROGRAMS]


def readable_folders() -> list[str]:
    """Return the folders and archives that hold the libraries."""
    package = str(Path(__file__).parent)
    folders = [*sys.path, package, f"{sys.base_prefix}/lib", *_LIBRARY_FOLDERS]
    return [each for each in folders if each and Path(each).exists()]


def _restrict_files(libc: ctypes.CDLL) -> bool:
    """Restrict this process to reading the libraries, by Landlock; return whether the kernel has it."""
    version = landlock_version(libc)
    if version < 1:
        return False
    rights = (1 << _RIGHTS_OF_FILES[min(version, 5)]) - 1
    handled = struct.pack("=QQQ", rights, _RIGHTS_OF_TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    # An older kernel knows the first members only.
    size_bytes = 8
    if version >= 4:
        size_bytes = 16
    if version >= 6:
        size_bytes = 24
    rules = libc.syscall(_LANDLOCK_CREATE, handled, size_bytes, 0)
    if rules < 0:
        return False
    try:
        for folder in readable_folders():
            opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            allowed = _READ_FILE_AND_FOLDER if Path(folder).is_dir() else 1 << 2
            libc.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", allowed, opened), 0)
            os.close(opened)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def landlock_version(libc: ctypes.CDLL) -> int:
    """Return the version of Landlock in this kernel; below 1 if it has none, or has turned it off."""
    found: int = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    return found


def _become_nobody() -> bool:
    """Become a user that owns no file, if this process is root; return whether it did and still reads the libraries."""
    if os.geteuid() != 0:
        return False
    os.seteuid(NOBODY)
    can_read = all(os.access(each, os.R_OK, effective_ids=True) for each in (os.__file__, __file__))
    os.seteuid(0)
    if not can_read:
        return False
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    return True


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop what root may do beyond its files."""
    libc.capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def _filter_calls(libc: ctypes.CDLL, *, locks: bool) -> bool:
    """Refuse the calls that reach the network, programs and other processes, by seccomp; return whether it holds."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or sys.maxsize < 1 << 32:
        return False
    program = call_filter(machine, os.getpid(), locks=locks)
    instructions = ctypes.create_string_buffer(program, len(program))
    # A struct of the number of instructions and, aligned, their address.
    given = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(given), 0, 0) == 0)


def call_filter(machine: Machine, pid: int, *, locks: bool = False) -> bytes:
    """Return the program that judges each system call of the process *pid*."""
    refuse = (_RETURN, 0, 0, _ERROR | _EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    # The two numbers after an instruction are how many others are passed over if it holds, and if it does not.
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        refuse,
        (_EQUAL, 0, 1, machine.clone3),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),  # the C library then uses clone, whose flags can be read
    ]
    for number in machine.refused:
        steps += [(_EQUAL, 0, 1, number), refuse]
    steps += [(_EQUAL, 0, 4, machine.clone), (_LOAD, 0, 0, _ARGUMENTS), (_HAS_BITS, 0, 1, _CLONE_THREAD), allow, refuse]
    for number in machine.signals:
        steps += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, _ARGUMENTS), (_EQUAL, 0, 1, pid), allow, refuse]
    of_files = (*_OF_DESCRIPTORS, *_OF_LOCKS) if locks else _OF_DESCRIPTORS
    for number, commands in ((machine.fcntl, of_files), (machine.ioctl, _OF_STREAMS)):
        steps += [(_EQUAL, 0, len(commands) + 3, number), (_LOAD, 0, 0, _ARGUMENTS + 8)]
        steps += [(_EQUAL, len(commands) - at, 0, command) for at, command in enumerate(commands)]
        steps += [refuse, allow]
    new_limit = _ARGUMENTS + 16
    steps += [(_EQUAL, 0, 6, machine.prlimit), (_LOAD, 0, 0, new_limit), (_EQUAL, 0, 3, 0)]
    steps += [(_LOAD, 0, 0, new_limit + 4), (_EQUAL, 0, 1, 0), allow, refuse, allow]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _main() -> None:
    limit(5, 512 << 20)
    sys.stdout.write(json.dumps(confine()))


if __name__ == "__main__":
    _main()
