"""The demo's accounts: an owner with listings in several states, and a reviewer with items to decide."""

import json
import secrets
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from django.db import transaction

from muniment.accounts.models import Account
from muniment.accounts.operations import create_account
from muniment.accounts.tokens import create_token, list_tokens, regenerate_token
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.mail import delivery, outgoing
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company, make_owner, update_company
from muniment.registry.exchange.importer import Summary, import_registry
from muniment.registry.models import Company, Framework, Person, State
from muniment.registry.review.claims import suggest_edit
from muniment.registry.review.workflow import submit_company
from muniment.store.database.migrations import migration_lock

DEMO: Final = Path(__file__).parents[1] / "demo"
OWNER: Final = "owner@demo.example"
OWNED = 2
"""The number of published listings that the demo's owner has."""
TOKEN_NAME = "demo"  # noqa: S105 - the token's name, not a secret


class RealRegistry(Exception):  # noqa: N818 - its message is for the operator
    """The instance has data that are not the demo's."""


class SignIn(NamedTuple):
    """A sign-in that the demo prints."""

    role: str
    email: str
    password: str
    token: str
    """The token for the owner-scoped tool server; only the owner has one."""


def load_demo(*, renews: bool) -> tuple[Summary | None, list[SignIn]]:
    """
    Load the demo registry if there is no registry, and its accounts; wait if another process does.

    Args:
        renews: whether to give the accounts fresh passwords and a fresh token.

    Returns:
        What was imported, and the sign-ins if they were renewed.

    Raises:
        RealRegistry: the instance was never used with the demo, and has data; nothing was changed.
    """
    with migration_lock():
        if _is_real():
            raise RealRegistry(
                "This instance has a registry or accounts of its own, and the demo adds accounts whose passwords it"
                " prints. Start it without --demo, or name another folder with --data FOLDER."
            )
        summary = None if Company.objects.exists() else import_registry(DEMO)
        sign_ins = demo_sign_ins() if renews else []
    delivery.echo = partial(print, end="", flush=True)
    return summary, sign_ins


def _is_real() -> bool:
    """Return whether there are accounts but no demo accounts, or no account and listings that the demo lacks."""
    if Account.objects.exists():
        return not Account.objects.filter(email=OWNER).exists()
    ours = [json.loads(line)["company"]["id"] for line in (DEMO / "companies.jsonl").read_text().splitlines()]
    if Company.objects.exists():  # another process of this start may have loaded the demo
        return Company.objects.exclude(slug__in=ours).exists()
    return Person.objects.exists() or Framework.objects.exists()


def demo_sign_ins() -> list[SignIn]:
    """Create missing demo accounts; set new passwords, and a new token for the owner."""
    sign_ins = []
    with transaction.atomic():
        for role in ("owner", "reviewer"):
            email, password = f"{role}@demo.example", secrets.token_urlsafe(9)
            account = Account.objects.filter(email=email).first()
            fresh = account is None
            account = account or create_account(COMMAND, email, role=role)
            account.set_password(password)
            account.save(update_fields=["password"])
            token = _token(account) if role == "owner" else ""
            sign_ins.append(SignIn(role, email, password, token))
            if fresh and role == "owner":
                _add_listings(account)
        for each in sign_ins:
            outgoing.forget(each.email)  # what this set-up would tell them by mail is printed
    return sign_ins


def _token(owner: Account) -> str:
    actor = owner.actor("command", "demo")
    existing = next((row for row in list_tokens(actor) if row.name == TOKEN_NAME), None)
    if existing is not None:
        return regenerate_token(actor, existing.pk).text
    return create_token(actor, TOKEN_NAME, permitted=SCOPES).text


def _add_listings(owner: Account) -> None:
    """Create the owner's published listings, a draft, a submission and a pending change."""
    actor = owner.actor("command", "demo")
    public = list(Company.objects.filter(state=State.PUBLISHED).order_by("pk")[: OWNED + 1])
    for company in public[:OWNED]:
        make_owner(actor, company, owner.pk)
    create_company(actor, CompanyChange(name="Slackwater Ferry", type="cooperative", status="upcoming"))
    submitted = create_company(
        actor,
        CompanyChange(
            name="Brine and Bramble",
            type="cooperative",
            industry="Agriculture",
            website="https://brine-and-bramble.example",
            description="Salt-marsh farmers who share a cold store, a van and a stall in four towns.",
        ),
    )
    submit_company(actor, submitted.slug)
    if public:
        update_company(actor, public[0].slug, CompanyChange(name=f"{public[0].name} United"))
    if len(public) > OWNED:
        change = CompanyChange(description=f"{public[OWNED].description} Founded by its members.")
        suggest_edit(actor, public[OWNED].slug, change, "It says so on their own page.")
