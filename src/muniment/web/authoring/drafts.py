"""A listing as its public page will show it: with the changes that wait for a reviewer, and with unsaved ones."""

from collections.abc import Mapping

from django.conf import settings

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.company.listings import OwnedCompany
from muniment.schema.company_parts import count_people
from muniment.schema.validation import Validation
from muniment.web.forms import plain
from muniment.web.presenters.company import rounds_of

_NO_CHANGES: Mapping[str, JSONMapping] = {}


def as_published(mine: OwnedCompany, unsaved: Mapping[str, JSONMapping] = _NO_CHANGES) -> JSONObject:
    """
    Return the bundle that the public page of a listing would get.

    Args:
        unsaved: further changes, before and after by the name of the field, as the dry run of an update returns them.
    """
    bundle: JSONObject = plain(mine.bundle)
    changes = {**mine.pending_changes, **{name: each["after"] for name, each in unsaved.items()}}
    facts = bundle["company"]
    for name, value in changes.items():
        target = bundle if name in bundle and name != "company" else facts
        target[name] = _shown(name, value)
    if bundle.get("positions"):
        facts["teamSize"] = count_people(bundle["positions"])
    rounds = [_public_round(each) for each in bundle.get("fundingRounds") or ()]
    bundle["fundingRounds"] = rounds
    facts["raising"] = any(each["state"] == "open" for each in rounds_of(bundle))
    bundle["company"] = {name: value for name, value in facts.items() if value not in (None, "")}
    return bundle


def _shown(name: str, value: object) -> object:
    """Return the value of a change as published answers show it; a treasury is rounded there."""
    if name != "treasury" or value is None:
        return value
    kind = settings.SCHEMA.company.by_name[name].kind
    return kind.show(kind.read(value, (name,), Validation(change=True)))


def _public_round(row: JSONObject) -> JSONObject:
    hidden = {"name", "target"} if row.get("public") is False else set()
    return {name: value for name, value in row.items() if name not in hidden}
