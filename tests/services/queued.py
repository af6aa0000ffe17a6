"""Put listings into the review queue of this process's instance. Run as a script: how many, and whose."""

import sys


def main() -> None:
    import django

    django.setup()
    from muniment.accounts.models import Account
    from muniment.registry.company.changes import CompanyChange
    from muniment.registry.company.listings import MAX_DRAFTS, create_company
    from muniment.registry.review.workflow import submit_company

    number, email = int(sys.argv[1]), sys.argv[2]
    accounts = [Account.objects.get(email=email)]
    for each in range(number):
        if each and each % MAX_DRAFTS == 0:
            accounts.append(Account.objects.create_user(f"owner{each}@fishery.example"))
        actor = accounts[-1].actor("web")
        values = {
            "name": f"Fishery {each:02}",
            "type": "cooperative",
            "website": f"https://fishery{each}.example",
            "description": "Boats and nets held in common by the people of one harbour.",
        }
        submit_company(actor, create_company(actor, CompanyChange(values)).slug)


if __name__ == "__main__":
    main()
