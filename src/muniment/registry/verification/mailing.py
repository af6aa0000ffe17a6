"""Mail of domain proofs: codes to addresses at a domain, and warnings to the accounts that proved it."""

from datetime import timedelta
from typing import Final
from urllib.parse import quote

from django.utils.translation import gettext, gettext_noop

from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry.models import DomainProof

_CODE: Final = gettext_noop(
    "%(account)s asks to verify that %(domain)s belongs to this listing:\n\n%(listing)s\n\n"
    "To confirm it, enter this code at %(page)s while signed in to that account:\n\n%(code)s\n\n"
    "The code expires in %(valid)s. If you did not expect this message, ignore it and do not pass the code on.\n"
)
_WARNINGS: Final = {
    "failing": (
        gettext_noop("%(domain)s: verification failed"),
        gettext_noop(
            "We could not find your proof of %(domain)s again: %(finding)s\n\n"
            "The domain is shown as verified for 14 more days. Restore the proof before then:\n\n%(page)s\n"
        ),
    ),
    "code sent": (
        gettext_noop("%(domain)s: confirm it again"),
        gettext_noop(
            "We sent a new code to %(address)s, because a verified domain is confirmed every 90 days.\n\n"
            "The domain is shown as verified for 14 more days. Enter the code before then:\n\n%(page)s\n"
        ),
    ),
    "hidden": (
        gettext_noop("%(domain)s: no longer verified"),
        gettext_noop(
            "We could not find your proof of %(domain)s for 14 days, so the domain is no longer shown as verified:"
            " %(finding)s\n\nVerify it again:\n\n%(page)s\n"
        ),
    ),
}


def send_code(proof: DomainProof, code: str, valid_for: timedelta) -> None:
    """Send a code to the address of a proof."""
    days = valid_for.days
    with in_language_of(proof.account):
        values = {
            **_values(proof),
            "account": proof.account.email,
            "listing": places.place(f"/companies/{quote(proof.company.slug)}"),
            "code": code,
            "valid": gettext("%(days)d days") % {"days": days} if days else gettext("one hour"),
        }
        subject = gettext("Code to verify %(domain)s") % values
        outgoing.send(proof.address, subject, gettext(_CODE) % values, kind="code", expires_at=proof.code_expires_at)


def warn(proof: DomainProof, what: str) -> None:
    """Notify the account that its proof fails, needs a new code, or is hidden."""
    subject, text = _WARNINGS[what]
    values = _values(proof)
    if proof.account.is_active:
        with in_language_of(proof.account):
            outgoing.send(proof.account.email, gettext(subject) % values, gettext(text) % values)


def _values(proof: DomainProof) -> dict[str, str]:
    return {
        "domain": proof.domain,
        "address": proof.address,
        "finding": proof.finding,
        "page": places.place(f"/companies/{quote(proof.company.slug)}/domain"),
    }
