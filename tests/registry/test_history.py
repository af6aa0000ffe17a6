"""History entries: values by the names of the wire, null where there is none."""

from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.registry import history


def test_columns_have_the_names_and_the_form_of_the_wire():
    assert history.wire_values({"team_size": 7, "treasury_minor": 123_456}, settings.SCHEMA.company) == {
        "teamSize": 7,
        "treasury": "$1234.56",
    }
    assert history.wire_values({"run_cost": 5, "name": "", "closed": False}) == {
        "runCost": 5,
        "name": None,
        "closed": False,
    }


def test_an_entry_names_the_credential_of_its_actor():
    actor = Actor(account_id=7, role="owner", via="token", credential="laptop")
    made = history.entry(actor, "updated", before={"a": 1}, after={"a": 2}, note="Why.")
    assert (made.account_id, made.via, made.credential, made.pk) == (7, "token", "laptop", None)
    assert (made.action, made.before, made.after, made.note) == ("updated", {"a": 1}, {"a": 2}, "Why.")
