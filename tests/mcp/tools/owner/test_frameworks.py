"""An agent that is connected to the owner-scoped server alone finds the framework to run."""

import jsonschema
import pytest

from make import reports as make
from make.accounts import account
from make.published import Publisher, framework
from muniment.accounts import tokens
from muniment.registry.models import Framework as FrameworkRow
from muniment.store.published import with_checksum
from muniment.store.reader import Reader
from services.manage import manage
from services.mcp import modern

pytestmark = pytest.mark.django_db
OPENED = (b'"isOpen":false', b'"isOpen":true')


@pytest.fixture
def reader(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(framework(1, "river-score"), framework(2, "ember-grants", kind="program"))
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()
    publisher.close()


@pytest.fixture
def token():
    return tokens.create_token(account("owner@harbour.example").actor("web"), "laptop", permitted=["reports:read"]).text


def test_frameworks_are_found_as_on_the_public_server(reader, token):
    with manage(reader=reader) as server:
        listed = server.call(token, "list_frameworks", kind="program")
        assert [each["frameworkId"] for each in listed["data"]] == ["ember-grants"]
        assert server.data(token, "get_framework", frameworkId="river-score")["frameworkId"] == "river-score"
        missing = server.error(token, "get_framework", frameworkId="river-scor")
        assert "Did you mean river-score (Framework 1)?" in missing["hint"]
        found = {each["name"]: each for each in server.ask(token, modern("tools/list")).result["tools"]}
        jsonschema.validate(listed, found["list_frameworks"]["outputSchema"])


def test_a_framework_that_can_be_run_has_the_price_of_a_run(tmp_path, token, settings):
    settings.RUN_COST = 10
    cheap, plain = make.framework(1), make.framework(1)
    FrameworkRow.objects.filter(slug=cheap).update(run_cost=7)
    publisher = Publisher(tmp_path / "priced.sqlite3")
    publisher.publish(framework(1, cheap), framework(2, plain), framework(3, "not-authored"))
    rows = publisher.connection.execute("SELECT position, CAST(item AS BLOB) FROM published_item_framework").fetchall()
    for position, item in rows:
        opened = with_checksum(item[1:-4].replace(*OPENED))
        publisher.connection.execute(
            "UPDATE published_item_framework SET item = ? WHERE position = ?", (opened, position)
        )
    reader = Reader(tmp_path / "priced.sqlite3")
    with manage(reader=reader) as server:
        listed = {each["frameworkId"]: each.get("cost") for each in server.call(token, "list_frameworks")["data"]}
        assert listed == {cheap: 7, plain: 10, "not-authored": None}
        named = server.call(token, "list_frameworks", fields=["cost"])["data"]
        assert {each["frameworkId"]: each.get("cost") for each in named} == listed
        assert not any("cost" in each for each in server.call(token, "list_frameworks", fields=["company"])["data"])
    reader.close()
    publisher.close()


def test_while_the_registry_cannot_be_read_the_answer_says_so(token):
    with manage() as server:
        assert "cannot be read" in server.error(token, "list_frameworks")["message"]
