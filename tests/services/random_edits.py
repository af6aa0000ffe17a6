"""
A process that changes every list and some fields of companies at random, and erases a person.

Run as a script: SEED CHANGES EMAIL SLUG… with the product's settings in the environment. Prints the person's name.
"""

import random
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

LISTS: Final = ("positions", "proposals", "capTable", "address")
"""Lists that shrink only if their length is known."""


def main() -> None:
    import django

    django.setup()
    from django.db import connections

    from muniment.accounts.models import Account
    from muniment.kernel.actor import COMMAND
    from muniment.registry.company.changes import CompanyChange
    from muniment.registry.company.listings import add_owner, get_company, update_company
    from muniment.registry.models import Person
    from muniment.registry.people.erasing import erase_person
    from muniment.store.database.retry import with_retry

    seed, changes, email, *slugs = sys.argv[1:]
    account = Account.objects.get(email=email)
    actor, chance = account.actor("cli", "editor"), random.Random(int(seed))

    def some(most: int, make: Callable[[int], Any]) -> list[Any]:
        return [make(number) for number in range(chance.randrange(most + 1))]

    def position(number: int) -> dict[str, Any]:
        return {"title": f"Title {number}", "person": {"name": f"Ina Edited {chance.randrange(40)}"}}

    def proposal(number: int) -> dict[str, Any]:
        status = chance.choice(("active", "passed", "failed"))
        return {"title": f"Proposal {number}", "status": status, "endDate": f"2099-01-{number + 1:02}"}

    def holder(number: int) -> dict[str, Any]:
        tokens = chance.choice(("5", "1,000 OP", "few", "7.25"))
        return {"address": f"0x{number}", "name": f"Holder {number}", "tokens": tokens, "percentage": number}

    def place(number: int) -> dict[str, Any]:
        return {"address_1": f"Quay {number}", "city": f"Town {number}", "country": chance.choice(("PT", "GB", "DE"))}

    kinds: dict[str, Callable[[], Any]] = {
        "description": lambda: f"Edited {chance.random()}.",
        "website": lambda: f"https://edited-{chance.randrange(10**9)}.example",
        "treasury": lambda: chance.choice(("$5", "$1.5M", None)),
        "themes": lambda: some(5, lambda number: f"theme {number} {chance.randrange(9)}"),
        "positions": lambda: some(6, position),
        "proposals": lambda: some(5, proposal),
        "capTable": lambda: some(8, holder),
        "address": lambda: some(3, place),
        "socials": lambda: {"email": f"a{chance.randrange(99)}@edited.example", "tiktok": "@edited"},
    }
    for slug in slugs:
        with_retry(add_owner, COMMAND, slug, account.pk)
    for _ in range(int(changes)):
        names = chance.sample(sorted(kinds), chance.randint(1, 3))
        change = CompanyChange({name: kinds[name]() for name in names})
        slug = chance.choice(slugs)
        bundle = msgspec.json.decode(msgspec.json.encode(get_company(actor, slug).bundle))
        lists = bundle | bundle["company"]
        totals = {name: len(lists.get(name) or ()) for name in LISTS if name in change}
        with_retry(update_company, actor, slug, change, expected_totals=totals)
    person = chance.choice(Person.objects.order_by("pk"))
    with_retry(erase_person, COMMAND, person.slug)
    print(person.name)  # noqa: T201 - the test looks for it
    connections.close_all()


if __name__ == "__main__":
    main()
