"""Forms and pages of a registry that declares its vocabulary and its sections."""

import pytest
from django.conf import settings
from django.test import Client

from make.declared import declared
from make.published import Publisher, company
from muniment.mcp.tools.form_options import form_options
from muniment.schema.company import INDUSTRIES
from muniment.store.reader import Reader
from muniment.web.form_pages import Token, TokenStep
from muniment.web.forms import Basics
from muniment.web.requests import page_cache


def test_forms_and_tools_suggest_the_declared_values():
    with declared(vocabulary={"types": ["Workshop", "School"]}):
        assert form_options(settings.SCHEMA)["type"] == ["Workshop", "School"]
        assert form_options(settings.SCHEMA)["industry"] == list(INDUSTRIES)
        assert "Workshop" in str(Basics()["type"])
    assert "Workshop" not in str(Basics()["type"])


def test_forms_do_not_ask_for_sections_that_are_off():
    whole = {each.name for each in Token({}, TokenStep).editors}
    assert {"pools", "proposals", "capTable", "fundingRounds"} == whole
    with declared(sections={"token": False, "proposals": False, "cap_table": False}):
        page = Token({}, TokenStep)
        assert [each.name for each in page.editors] == ["fundingRounds"]
        assert page.form is not None
        assert page.form.fields == {}
        assert "symbol" not in Basics().fields
        filled = TokenStep({}, initial={})
        assert filled.is_valid()
        assert filled.to_wire() == {}
    assert "symbol" in Basics().fields


@pytest.mark.django_db
def test_pages_do_not_show_sections_that_are_off(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    proposals = [{"title": "Plant more trees", "status": "passed"}]
    publisher.publish(company(1, "harbour", symbol="HARB", proposals=proposals))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    try:
        assert "Plant more trees" in Client().get("/companies/harbour").content.decode()
        with declared(sections={"token": False, "proposals": False}):
            page = Client().get("/companies/harbour").content.decode()
            assert "Plant more trees" not in page
            assert "HARB" not in page.replace("harbour", "")
    finally:
        page_cache.use(None)
        reader.close()
        publisher.close()
