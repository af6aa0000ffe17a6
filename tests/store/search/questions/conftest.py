"""The demo registry as published documents, with a company in a country."""

import json
from pathlib import Path

import pytest
from msgspec import structs

import muniment.demo
from make.published import Publisher, company, framework, person
from muniment.store.reader import Reader

DEMO = Path(muniment.demo.__file__).parent


def lines(name):
    return [json.loads(line) for line in (DEMO / name).read_text().splitlines()]


def published(number, bundle):
    record = {name: value for name, value in bundle["company"].items() if value is not None}
    record = {"type": "", "industry": "", "status": "", "themes": [], **record, "body": None}
    made = company(number, record.pop("id"), **record, raising=False)
    address = record.get("address") or []
    facets = {
        **made.facets,
        "city": tuple(each["city"] for each in address),
        "country": tuple(each["country"] for each in address if each.get("country")),
    }
    return structs.replace(made, facets={name: tuple(filter(None, values)) for name, values in facets.items()})


@pytest.fixture(scope="module")
def demo_reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("questions") / "published.sqlite3"
    publisher = Publisher(path)
    fjord = {"id": "fjordlys", "name": "Fjordlys Verft", "address": [{"city": "Havnsund", "country": "NO"}]}
    bundles = [*lines("companies.jsonl"), {"company": fjord}]
    publisher.publish(
        *(published(number, bundle) for number, bundle in enumerate(bundles, 1)),
        *(person(number, each["slug"], name=each["name"]) for number, each in enumerate(lines("people.jsonl"), 1)),
        *(
            framework(number, each["framework"]["frameworkId"], kind=each["framework"]["kind"])
            for number, each in enumerate(lines("frameworks.jsonl"), 1)
        ),
    )
    reader = Reader(path)
    yield reader
    reader.close()
    publisher.close()
