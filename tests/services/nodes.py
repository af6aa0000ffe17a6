"""Several nodes of one instance on PostgreSQL, each with its own folder and port."""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from services.ports import wait_until
from services.product import DEMO, Product, environment, run

EMAIL = "owner@harbour.example"
KEY = "a key that all nodes of these tests share"


class Nodes:
    """
    *count* nodes over the database at *url*, with the demo registry and an owner of all its companies.

    Args:
        arguments: of each ``serve``.
        settings: further settings of all.
    """

    def __init__(self, folder: Path, url: str, count: int, *arguments: str, **settings: str) -> None:
        self.folder = folder
        self.settings = {"database_url": url, "secret_key": KEY, **settings}
        run("import", str(DEMO), data=folder / "maker", **self.settings)
        run("user", "create", EMAIL, "--no-password", data=folder / "maker", **self.settings)
        self.each = [Product(folder / f"node-{number}", *arguments, **self.settings) for number in range(count)]
        self.slugs: list[str] = []

    @property
    def ports(self) -> list[int]:
        return [node.port for node in self.each]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(*arguments, data=self.folder / "maker", **self.settings)

    def write(self, writers: int, changes: int) -> list["subprocess.Popen[bytes]"]:
        """Start *writers* processes that make *changes* changes each."""
        return [self._writer(number, changes) for number in range(writers)]

    def _writer(self, number: int, changes: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "services.writers", str(number), str(changes), EMAIL, str(self._notes(number))]
            + self.slugs,
            env={
                **environment(self.folder / "maker", **self.settings),
                "DJANGO_SETTINGS_MODULE": "muniment.settings",
                "PYTHONPATH": str(Path(__file__).parents[1]),
            },
        )

    def _notes(self, number: int) -> Path:
        return self.folder / f"notes-{number}.jsonl"

    def notes(self, writers: int) -> list[dict[str, Any]]:
        """Return what the writers noted, ordered by edition."""
        found = [json.loads(line) for number in range(writers) for line in self._notes(number).read_text().splitlines()]
        return sorted(found, key=lambda note: note["edition"])

    def wait_level(self, edition: int, *, within_s: float = 30) -> None:
        """Wait until every node shows *edition*."""
        wait_until(
            lambda: all(shown(node) == edition for node in self.each), within_s=within_s, what=f"all at {edition}"
        )

    def __enter__(self) -> Self:
        try:
            return self._begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _begin(self) -> Self:
        for node in self.each:
            node.start(within_s=60)
        for node in self.each:
            node.wait_ready(within_s=90)
        self.slugs = [item["id"] for item in self.each[0].data_of("/api/v1/companies?pageSize=100")]
        assert self._writer(-1, 0).wait(60) == 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.each:
            node.__exit__(None, None, None)


def shown(node: Product) -> int:
    """Return the lowest edition shown by the processes of a node."""
    return min(int(answer.headers["x-muniment-edition"]) for answer in node.get_of_each("/api/v1/stats"))


def feed(node: Product) -> list[dict[str, Any]]:
    """Return the whole change feed of a node."""
    entries: list[dict[str, Any]] = []
    after = 0
    while True:
        page = node.get(f"/api/v1/changes?after={after}").json()
        if not page["data"]:
            return entries
        entries += page["data"]
        after = page["nextAfter"]


def everything(node: Product) -> dict[str, bytes]:
    """Return every public response of a node by address."""
    answers: dict[str, bytes] = {}
    for path in (
        "companies?pageSize=100",
        "people?pageSize=100",
        "companies?sort=name&pageSize=100",
        "stats",
        "frameworks",
    ):
        answers[path] = node.get(f"/api/v1/{path}").body
    for kind, key in (("companies", "id"), ("people", "slug"), ("frameworks", "frameworkId")):
        listing = answers["frameworks" if kind == "frameworks" else f"{kind}?pageSize=100"]
        for item in json.loads(listing)["data"]:
            answers[f"{kind}/{item[key]}"] = node.get(f"/api/v1/{kind}/{quote(item[key])}").body
    return answers
