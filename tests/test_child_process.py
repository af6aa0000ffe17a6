"""A child's answer is bounded while it is read, its time by the clock, and its memory by what the machine has."""

import os
import time
from pathlib import Path

import pytest

from muniment import child_process
from muniment.child_process import SaidTooMuch, limits_of_groups, run

TABLES = "muniment.registry.tables.formats"
GIB = 1 << 30


def read(content: bytes, most: int, *, wall_s: float = 60.0) -> child_process.Ended:
    return run(
        TABLES,
        ("a.csv", "", ""),
        given=content,
        cpu_s=30,
        wall_s=wall_s,
        memory_bytes=GIB,
        max_answer_bytes=most,
    )


def test_an_answer_of_exactly_the_limit_is_taken_and_one_byte_more_is_not():
    content = b"Name\n" + b"Alder\n" * 200_000
    whole = read(content, 1 << 30)
    assert whole.status == 0
    assert len(whole.answer) > child_process._PIECE_BYTES
    assert read(content, len(whole.answer)) == whole
    with pytest.raises(SaidTooMuch):
        read(content, len(whole.answer) - 1)


def test_a_child_without_an_answer_in_time_is_ended():
    began = time.monotonic()
    assert read(b"Name\nAlder\n", 1000, wall_s=0.0) == (child_process.OUT_OF_TIME, b"")
    assert time.monotonic() - began < 30


def test_a_child_is_read_from_a_pipe_with_a_high_number():
    """A process that serves thousands of connections has no low numbers left."""
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < 1_100:
        held.append(os.dup(held[-1]))
    try:
        assert read(b"Name\nAlder\n", 1 << 20).status == 0
    finally:
        for each in held:
            os.close(each)


@pytest.mark.parametrize(
    ("own", "wanted", "given"),
    [
        (16 * GIB, 2 * GIB, 2 * GIB),
        (4 * GIB, 2 * GIB, 2 * GIB),
        (2 * GIB, 2 * GIB, GIB),
        (GIB // 2, 2 * GIB, GIB // 4),
        (GIB // 4, 2 * GIB, GIB // 4),  # less is not enough for Python with a parser
        (GIB // 4, 100 << 20, 100 << 20),
    ],
)
def test_a_child_has_at_most_half_of_the_memory_of_its_machine_or_container(monkeypatch, own, wanted, given):
    monkeypatch.setattr(child_process, "own_memory", lambda: own)
    assert child_process.memory_limit(wanted) == given


def group(root: Path, path: str, name: str, limit: str) -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(limit + "\n")


def test_the_limit_of_memory_is_the_least_of_a_control_group_and_those_above_it(tmp_path):
    group(tmp_path, "system.slice/muniment.service", "memory.max", "max")
    group(tmp_path, "system.slice", "memory.max", "1073741824")
    assert limits_of_groups("0::/system.slice/muniment.service\n", tmp_path) == [1_073_741_824]
    group(tmp_path, "", "memory.max", "536870912")
    assert sorted(limits_of_groups("0::/system.slice/muniment.service\n", tmp_path)) == [536_870_912, 1_073_741_824]
    # A container names a path of the host, which it does not see.
    assert limits_of_groups("0::/docker/0a1b\n", tmp_path) == [536_870_912]
    assert limits_of_groups("0::/\n", tmp_path) == [536_870_912]


def test_the_limit_of_memory_is_found_in_the_first_version_of_control_groups(tmp_path):
    group(tmp_path, "memory/docker/0a1b", "memory.limit_in_bytes", "268435456")
    group(tmp_path, "memory", "memory.limit_in_bytes", "9223372036854771712")
    groups = "9:name=systemd:/\n4:cpu,memory:/docker/0a1b\n3:cpuset:/\n"
    assert min(limits_of_groups(groups, tmp_path)) == 268_435_456
    assert limits_of_groups("4:cpu:/docker/0a1b\nno group\n", tmp_path) == []


def test_a_process_has_a_limit_of_memory():
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < child_process.own_memory() <= machine
