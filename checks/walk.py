"""
Show which files two requests pass on their way: how many a reader must open to follow them.

    python checks/walk.py [--max-files update=N detail=N] [--max-changes update=N detail=N]

``update`` is a change of one field by the owner tool update_my_company, from the tool server to the published file.
``detail`` is a REST request for a company whose response is not cached. Both run in this process, in the tests' own
servers on a small registry of their own, after one request of their kind: what only the first one does is not counted.

For each walk it prints the files of src in the order in which the walk reaches them, with how often the walk enters
each from another file (changes of file) and how many of its functions and calls it runs. Exits with 1 if a walk is over
a limit. `make check` names the limits: lower them when a walk gets shorter.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "muniment") + os.sep
WALKS = ("update", "detail")

sys.path.insert(0, str(ROOT / "tests"))


class Walk:
    """The calls of our own functions, in the order in which they begin, in every thread that starts after `listen`."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []
        self._is_recording = False

    def listen(self) -> None:
        """Install the profiler, before the threads of a bridge exist; it records nothing yet."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls that are made meanwhile."""
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if self._is_recording and event == "call" and code.co_filename.startswith(SOURCE):
            self.calls.append(code)

    @property
    def files(self) -> list[str]:
        """Return the file of each call."""
        return [code.co_filename.removeprefix(SOURCE) for code in self.calls]

    def changes(self) -> list[str]:
        """Return the files in the order of the walk, without the calls that stay in the file of the call before."""
        files = self.files
        return [file for index, file in enumerate(files) if index == 0 or files[index - 1] != file]

    def functions(self) -> set[CodeType]:
        """Return the functions; a comprehension, generator expression or lambda is a part of the one around it."""
        return {code for code in self.calls if not code.co_name.startswith("<")}

    def show(self, name: str) -> None:
        """Print the walk."""
        files, changes, functions = self.files, self.changes(), self.functions()
        folders = {str(Path(file).parent) for file in files}
        print(
            f"{name}: {len(set(files))} files in {len(folders)} folders, {len(functions)} functions, "
            f"{len(files)} calls, {len(changes)} changes of file"
        )
        print("  entered  functions  calls")
        for file in dict.fromkeys(files):
            own_functions = [code for code in functions if code.co_filename == SOURCE + file]
            print(f"  {changes.count(file):7}  {len(own_functions):9}  {files.count(file):5}  {file}")


def record(request: Callable[[int], object]) -> Walk:
    """Return the walk of *request*, which is called with 0 to prepare and with 1 to be recorded."""
    walk = Walk()
    walk.listen()
    try:
        request(0)
        with walk.recording():
            request(1)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] # None ends it, as in sys
    return walk


def update_walk() -> Walk:
    """Return the walk of an owner's change of one field by tool."""
    from make import registry
    from muniment.accounts.tokens import create_token
    from muniment.kernel.actor import SCOPES
    from services.manage import manage
    from services.mcp import modern

    owner = registry.owner()
    company = registry.published(owner)
    token = create_token(owner, "walk", permitted=SCOPES).text
    with manage() as server:

        def update(number: int) -> None:
            arguments = {"slug": company.slug, "changes": {"description": f"A harbour, in edition {number}."}}
            answer = server.ask(token, modern("tools/call", {"name": "update_my_company", "arguments": arguments}))
            if answer.result["structuredContent"]["data"]["applied"] != ["description"]:
                raise RuntimeError(f"The change was not applied: {answer}")

        return record(update)


def detail_walk(folder: Path) -> Walk:
    """Return the walk of a REST request for a company that is not cached."""
    from make.published import company
    from make.rest import Rest

    rest = Rest(folder)
    rest.publish(company(1), company(2))

    def ask(number: int) -> None:
        answer = rest.ask(f"/api/v1/companies/company-{number + 1}")
        if answer.status != 200:
            raise RuntimeError(f"The company was not found: {answer}")

    walk = record(ask)
    rest.close()
    return walk


def limit(text: str) -> tuple[str, int]:
    """Read ``walk=number``."""
    name, _, number = text.partition("=")
    if name not in WALKS or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(WALKS)} with '=' and a number.")
    return name, int(number)


def main() -> int:
    """Print both walks and compare them with the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-files", type=limit, nargs="+", default=[], metavar="WALK=N")
    parser.add_argument("--max-changes", type=limit, nargs="+", default=[], metavar="WALK=N")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"MUNIMENT_DATA": folder, "MUNIMENT_RATE_LIMIT": "off"}
        walks = walks_in(Path(folder))
    faults = 0
    for name, walk in walks.items():
        walk.show(name)
        measured = {"files": len(set(walk.files)), "changes of file": len(walk.changes())}
        for unit, limits in (("files", given.max_files), ("changes of file", given.max_changes)):
            most = dict(limits).get(name)
            if most is not None and measured[unit] > most:
                faults += 1
                print(f"{name}: {measured[unit]} {unit}, and at most {most} are allowed", file=sys.stderr)
    return 1 if faults else 0


def walks_in(folder: Path) -> dict[str, Walk]:
    """Record both walks, with their data in *folder*."""
    from muniment import cli  # the data folder is known only now

    cli.use_django()
    from django.db import connections

    from muniment.store.database.migrations import migrate

    migrate()
    (folder / "rest").mkdir()
    walks = {"update": update_walk(), "detail": detail_walk(folder / "rest")}
    connections.close_all()
    return walks


if __name__ == "__main__":
    sys.exit(main())
