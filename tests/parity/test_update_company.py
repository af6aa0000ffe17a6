"""A listing changed on the pages, by the command and by the operation comes to the same facts and the same refusals."""

import json
from html import unescape

import pytest
from click.testing import CliRunner

from make.accounts import account, signed_in
from muniment.cli import main
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import Company
from muniment.registry.review import workflow
from muniment.web.forms import plain

pytestmark = pytest.mark.django_db
BASE = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}
CHANGE = {
    "description": "Tidal power for nine towns.",
    "body": "# What we run\n\nSix turbines.",
    "themes": ["tidal", "energy"],
    "treasury": "$1.2M",
}


@pytest.fixture
def owner():
    return account()


def listing(owner, slug):
    listings.create_company(owner.actor("web"), CompanyChange(BASE), slug=slug)
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(COMMAND, slug)
    return slug


def facts(slug):
    bundle = plain(listings.get_company(COMMAND, slug).bundle)
    company = {key: value for key, value in bundle["company"].items() if key not in {"id", "updatedAt", "reviewedAt"}}
    return {**bundle, "company": company}


def through_the_page(owner, slug, change):
    form = {**change, "themes": ", ".join(change.get("themes", ())), "teamSize": ""}
    return signed_in(owner).post(f"/manage/companies/{slug}/edit/about", form)


def through_the_command(tmp_path, slug, change):
    listed = Company.objects.get(slug=slug).listed_on.isoformat()
    (tmp_path / "companies.jsonl").write_text(
        json.dumps({"company": {"id": slug, "listedAt": listed, **BASE, **change}})
    )
    return CliRunner().invoke(main, ["import", "--overwrite", str(tmp_path)])


def test_the_same_change_comes_to_the_same_facts(owner, tmp_path):
    page, command, operation = (listing(owner, slug) for slug in ("by-page", "by-command", "by-operation"))
    assert through_the_page(owner, page, CHANGE).status_code == 302
    assert through_the_command(tmp_path, command, CHANGE).exit_code == 0
    listings.update_company(owner.actor("token", "an app"), operation, CompanyChange(CHANGE))
    assert facts(page) == facts(command) == facts(operation)
    assert facts(page)["company"]["treasury"] == "$1.2M"


@pytest.mark.parametrize("change", [{"treasury": "plenty"}, {"treasury": "$1.2X"}], ids=str)
def test_the_same_fault_is_refused_with_the_same_words(owner, tmp_path, change):
    page, command, operation = (listing(owner, slug) for slug in ("by-page", "by-command", "by-operation"))
    with pytest.raises(BadFields) as refusal:
        listings.update_company(owner.actor("token", "an app"), operation, CompanyChange(change))
    reason = refusal.value.faults[0].reason
    answer = through_the_page(owner, page, {"description": "Tides.", "body": "", **change})
    assert answer.status_code == 422
    assert reason[1:] in unescape(answer.content.decode())
    told = through_the_command(tmp_path, command, change)
    assert (told.exit_code, reason in told.output) == (1, True), told.output
    assert "treasury" not in facts(page)["company"]
