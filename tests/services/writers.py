"""
A process that changes companies as fast as it can, and records when each change was committed.

Run as a script: NUMBER CHANGES EMAIL NOTES SLUG… with the product's settings in the environment. With NUMBER -1 it
makes the account an owner of the companies instead.
"""

import json
import random
import sys
import time
from pathlib import Path


def main() -> None:
    import django

    django.setup()
    from muniment.accounts.models import Account
    from muniment.kernel.actor import COMMAND
    from muniment.registry.company.changes import CompanyChange
    from muniment.registry.company.listings import add_owner, update_company
    from muniment.registry.publishing import publisher
    from muniment.store.database.retry import with_retry

    number, changes, email, notes, *slugs = sys.argv[1:]
    if number == "-1":
        for slug in slugs:
            add_owner(COMMAND, slug, Account.objects.get(email=email).pk)
        return
    actor = Account.objects.get(email=email).actor("cli", "writer")
    chance = random.Random(int(number))
    stood: list[tuple[int, float]] = []

    def hear(edition: int, **_: object) -> None:
        stood.append((edition, time.time()))

    publisher.published.connect(hear)
    with Path(notes).open("w") as out:
        for _ in range(int(changes)):
            slug, website = chance.choice(slugs), f"https://writer-{number}.example/{time.time_ns()}"
            with_retry(update_company, actor, slug, CompanyChange(website=website))
            edition, at = stood[-1]
            out.write(json.dumps({"edition": edition, "at": at, "slug": slug, "website": website}) + "\n")


if __name__ == "__main__":
    main()
