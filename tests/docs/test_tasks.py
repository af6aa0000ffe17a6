"""docs/OPERATIONS.md names where each task of an operator is done: every command and every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from django.urls import Resolver404, resolve

from muniment.cli.command import main

TEXT = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text()
NAMED = set(re.findall(r"`([^`]+)`", TEXT))


def commands(command: click.Command, name: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for part, each in command.commands.items():
            yield from commands(each, f"{name} {part}")
    elif not command.hidden:
        yield name


def test_every_command_is_named_in_the_table_of_tasks():
    known = {full for name, each in main.all().items() for full in commands(each, f"muniment {name}")}
    named = {each for each in NAMED if each.startswith("muniment ")}
    assert sorted(known - named) == []
    unknown = {each for each in named if " ".join(word for word in each.split() if word.islower()) not in known}
    assert {each for each in unknown if "--" not in each and not re.search("[A-Z]", each)} == set()


@pytest.mark.parametrize("address", sorted(each for each in NAMED if re.fullmatch(r"/[a-z/]+", each)))
def test_every_page_that_is_named_exists(address):
    for path in (address, f"{address}/"):
        try:
            resolve(path, "muniment.web.urls")
        except Resolver404:
            continue
        return
    pytest.fail(f"no page has the address {address}")
