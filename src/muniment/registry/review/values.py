"""
List the stored values that break a rule: they came before the rule, and stay until an edit touches them.

Source: decisions, section 5, values.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

import msgspec
from django.conf import settings

from muniment.kernel.json import JSONMapping
from muniment.registry.models import Company, Person
from muniment.registry.publishing.documents import company_line, company_object, company_views
from muniment.schema.company import bundle_breaches
from muniment.schema.kinds import picture_fault
from muniment.schema.validation import Fault

CHUNK: Final = 200
MAX_BROKEN: Final = 20
"""Maximum number of broken values of one listing that are returned."""


def broken_values(bundle: JSONMapping) -> list[Fault]:
    """Return the first values of a listing, in wire form, that break a rule."""
    plain = msgspec.json.decode(msgspec.json.encode(bundle))
    breaches = chain(settings.SCHEMA.bundle.breaches(plain, ()), bundle_breaches(plain))
    faults = []
    for breach in islice(breaches, MAX_BROKEN):
        fault = breach.fault
        faults.append(fault._replace(field=fault.field.removeprefix("company.")))
    return faults


def all_broken_values() -> Iterator[tuple[str, Fault]]:
    """Yield the values that break a rule, of every listing in any state and of every person, with their addresses."""
    keys = iter(list(Company.objects.order_by("slug").values_list("pk", flat=True)))
    while chunk := list(islice(keys, CHUNK)):
        for view in company_views(chunk).values():
            line = company_line(view, company_object(view, settings.SCHEMA), settings.SCHEMA)
            for fault in broken_values(line):
                yield f"companies/{view.columns['slug']}", fault
    record = settings.SCHEMA.person
    for person in Person.objects.order_by("slug").iterator(chunk_size=CHUNK):
        members = {**record.exact(vars(person)), **(person.extra or {})}
        for breach in record.breaches(members, ()):
            yield f"people/{person.slug}", breach.fault
        picture = members.get("picture")  # a member that no field declares
        if isinstance(picture, str) and picture.strip():
            reason = picture_fault(picture)
            if reason:
                yield f"people/{person.slug}", Fault("picture", reason)
