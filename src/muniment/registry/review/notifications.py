"""What owners and petitioners are mailed when something is decided. Sent after the commit; it never undoes anything."""

from typing import Final

from django.conf import settings

from muniment.accounts import mail
from muniment.registry.models import Company, Petition

_SAID: Final = {
    "submitted": "{name} is with the reviewers now. You will be mailed when they have decided.",
    "approved": "{name} is published.",
    "changes requested": "A reviewer asks for changes on {name} before it can be published.",
    "rejected": "A reviewer has refused {name}.",
    "unlisted": "A reviewer has taken {name} out of everything public.",
    "relisted": "{name} is public again.",
    "change approved": "The changes of {name} that waited are published.",
    "change refused": "A reviewer has refused the changes of {name} that waited.",
}
_ASKED: Final = {
    "claim": "Your claim of the listing {name} is {decision}.",
    "profile": "Your claim of the profile {name} is {decision}.",
    "suggestion": "Your suggested edit of {name} is {decision}.",
}


def tell_owners(company: Company, step: str, note: str) -> None:
    """Mail every owner of *company* what happened to it."""
    said = _SAID.get(step, "{name}: " + step).format(name=company.name)
    text = f"{said}\n{_noted(note)}\n{settings.BASE_URL}/manage/companies/{company.slug}\n"
    for owner in company.owners.filter(is_active=True):
        mail.send(owner.email, f"{company.name}: {step}", text)


def tell_petitioner(petition: Petition) -> None:
    """Mail whoever asked how it was decided."""
    name = str(petition.company or petition.person)
    said = _ASKED[petition.kind].format(name=name, decision=petition.decision)
    text = f"{said}\n{_noted(petition.note)}\n{settings.BASE_URL}/manage\n"
    mail.send(petition.account.email, f"{name}: {petition.decision}", text)


def _noted(note: str) -> str:
    return f"\nThe reviewer's note:\n{note}\n" if note.strip() else ""
