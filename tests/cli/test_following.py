"""The command that merges another registry, as processes."""

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from services.ports import wait_until
from services.prepared import demo_registry
from services.product import COMMAND, Product, environment, run

pytestmark = pytest.mark.sqlite


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    with Product(demo_registry(tmp_path_factory.mktemp("merged") / "origin"), exports_interval_s="1") as product:
        product.wait_ready()
        yield product


def companies(data):
    with closing(sqlite3.connect(data / "muniment.sqlite3", timeout=30)) as file:
        return dict(file.execute("SELECT slug, description FROM registry_company"))


def test_a_registry_is_merged_once_and_followed_until_the_command_is_ended(origin, tmp_path):
    data = tmp_path / "data"
    first = run("import", "--follow", origin.url, "--once", data=data)
    theirs = {item["id"] for item in origin.get("/api/v1/companies?pageSize=100").json()["data"]}
    assert companies(data).keys() == theirs
    assert f"Reading the exports of {origin.url}." in first.stderr
    again = run("import", "--follow", origin.url, "--once", data=data)
    assert "Reading" not in again.stderr
    assert origin.url in run("import", "--list", data=data).stdout
    slug = min(theirs)
    with Path(os.devnull).open("rb") as nothing, (tmp_path / "log").open("wb") as log:
        following = subprocess.Popen(
            [*COMMAND, "import", "--follow", origin.url], env=environment(data), stdin=nothing, stderr=log
        )
        try:
            changed = tmp_path / "companies.jsonl"
            changed.write_text(
                json.dumps({"company": {"id": slug, "name": "Renamed", "description": "Changed there."}})
            )
            run("import", str(changed), "--overwrite", data=origin.data)
            wait_until(lambda: companies(data)[slug] == "Changed there.", within_s=60, what="the change here")
        finally:
            following.send_signal(signal.SIGTERM)
            code = following.wait(60)
    assert code == 0, (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--follow", "https://a.example", "--list"], "Give one of PATH, --list, --undo and --follow."),
        (["--list", "--once"], "--kind, --once and --restart belong to --follow."),
        (["--follow", "https://a.example", "--kind", "dao"], "'dao' is not one of"),
        (["--follow", "ftp://a.example"], "http"),
        (["--follow", "https://a.example", "--draft"], "--draft"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(tmp_path, arguments, said):
    refused = run("import", *arguments, data=tmp_path / "data", check=False)
    assert refused.returncode != 0
    assert said in refused.stderr
