"""The check of walks counts the files that a request passes, and refuses a walk over its limits."""

import sys
import threading
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[2] / "checks"
MODULES = {
    "first.py": "def begin(go_on):\n    [each for each in 'ab']\n    go_on()\n",
    "second.py": "def go_on():\n    pass\n",
}


@pytest.fixture
def walk(monkeypatch):
    monkeypatch.syspath_prepend(str(CHECKS))
    import walk

    return walk


@pytest.fixture
def begin(walk, tmp_path, monkeypatch):
    """A function of one file that calls one of another, twice."""
    monkeypatch.setattr(walk, "SOURCE", f"{tmp_path}/")
    names = {}
    for name, text in MODULES.items():
        exec(compile(text, f"{tmp_path}/{name}", "exec"), names)
    return lambda: (names["begin"](names["go_on"]), names["begin"](names["go_on"]))


def test_a_walk_tells_its_files_functions_and_changes_of_file(walk, begin, capsys):
    walked = walk.record(lambda _: begin())
    assert walked.changes() == ["first.py", "second.py", "first.py", "second.py"]
    assert len(walked.files) == 6, "a comprehension is a call"
    assert {code.co_name for code in walked.functions()} == {"begin", "go_on"}
    walked.show("begin")
    told = capsys.readouterr().out
    assert told.startswith("begin: 2 files in 1 folders, 2 functions, 6 calls, 4 changes of file")
    assert told.index("first.py") < told.index("second.py")


def test_a_walk_continues_in_another_thread(walk, begin):
    def request(_):
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()

    assert walk.record(request).changes() == ["first.py", "second.py", "first.py", "second.py"]
    assert sys.getprofile() is None


def test_a_walk_over_its_limit_fails(walk, begin, monkeypatch, capsys):
    monkeypatch.setattr(walk, "walks_in", lambda _: {"update": walk.record(lambda _: begin())})
    monkeypatch.setattr("os.environ", {})
    for most, complaint in ((2, ""), (1, "update: 2 files, and at most 1 are allowed\n")):
        monkeypatch.setattr(sys, "argv", ["walk.py", "--max-files", f"update={most}", "detail=1"])
        assert walk.main() == bool(complaint)
        assert capsys.readouterr().err == complaint


@pytest.mark.parametrize("text", ["update", "update=", "update=-1", "other=3"])
def test_a_limit_names_a_walk_and_a_number(walk, monkeypatch, text):
    monkeypatch.setattr(sys, "argv", ["walk.py", "--max-changes", text])
    with pytest.raises(SystemExit):
        walk.main()
