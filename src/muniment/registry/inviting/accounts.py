"""
Invite a person by mail: with the link, the person creates an account also where sign-up is closed.

The link proves the address, works once and for 7 days, and stops working when its sender is no operator any more.
"""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.operations import ROLES, account_of, create_account, require_operator, set_role
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, LimitReached, NotFound
from muniment.kernel.tokens import token_digest
from muniment.languages import writing
from muniment.mail import outgoing
from muniment.registry.company.listings import make_owner
from muniment.registry.models import Company
from muniment.registry.models.review import AccountInvitation
from muniment.registry_toml import applied

VALID_FOR: Final = timedelta(days=7)
KEPT_FOR: Final = timedelta(days=90)
"""The time that an ended invitation stays in the list; the audit log has it longer."""
MAX_OPEN: Final = 500


def invite_person(actor: Actor, email: str, *, role: str = "owner", own: str = "", base_url: str) -> AccountInvitation:
    """
    Mail a link with which *email* gets an account with *role*; an open invitation of that address is replaced.

    Args:
        own: the slug of a listing that the person will own.

    Raises:
        Forbidden: the actor is not an operator, or has to confirm its identity first.
        BadRequest: the address or the role is invalid.
        NotFound: there is no such listing.
        Conflict: the address has an account, or people sign in only at providers.
        LimitReached: too many invitations are open.
    """
    require_operator(actor)
    require_confirmed(actor)
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        fault = gettext("%(email)s is not an email address.") % {"email": repr(email[:100])}
        raise BadRequest(fault, gettext("Use the form name@example.org.")) from None
    if role not in ROLES:
        fault = gettext("Unknown role: %(role)s.") % {"role": role[:40]}
        raise BadRequest(fault, gettext("Use one of: %(roles)s.") % {"roles": ", ".join(ROLES)})
    _require_own_sign_in()
    company = _company(own)
    with transaction.atomic():
        if Account.objects.filter(email=address).exists():
            raise Conflict(
                gettext("%(email)s already has an account.") % {"email": address},
                gettext("Change its role on its page. An owner of a listing can invite it as a co-owner."),
            )
        AccountInvitation.objects.filter(_open(), email=address).update(revoked_at=now())
        if AccountInvitation.objects.filter(_open()).count() >= MAX_OPEN:
            fault = gettext("%(number)d invitations are open.") % {"number": MAX_OPEN}
            raise LimitReached(fault, gettext("Revoke some, or wait until they are accepted or expire."))
        token = secrets.token_urlsafe(32)
        made = AccountInvitation.objects.create(
            email=address,
            role=role,
            company=company,
            token_digest=token_digest(token),
            invited_by_id=actor.account_id,
            expires_at=now() + VALID_FOR,
        )
        _record(Event.PERSON_INVITED, actor, made)
        _send(made, token, base_url)
    return made


def resend_invitation(actor: Actor, number: int, *, base_url: str) -> AccountInvitation:
    """
    Mail a new link of an invitation, which works for 7 days from now; the former link no longer works.

    Raises:
        Forbidden: the actor is not an operator, or has to confirm its identity first.
        NotFound: there is no such invitation.
        Conflict: it was accepted or revoked, or the address has an account by now.
    """
    require_operator(actor)
    require_confirmed(actor)
    _require_own_sign_in()
    with transaction.atomic():
        found = _locked(number)
        if found.accepted_at or found.revoked_at or has_account(found):
            raise _ended()
        token = secrets.token_urlsafe(32)
        found.token_digest, found.expires_at = token_digest(token), now() + VALID_FOR
        found.invited_by_id = actor.account_id
        found.save()
        _record(Event.PERSON_INVITED, actor, found)
        _send(found, token, base_url)
    return found


def revoke_invitation(actor: Actor, number: int) -> AccountInvitation:
    """
    End an invitation: its link no longer works.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such invitation.
        Conflict: it was accepted or revoked.
    """
    require_operator(actor)
    with transaction.atomic():
        found = _locked(number)
        if found.accepted_at or found.revoked_at:
            raise _ended()
        found.revoked_at = now()
        found.save()
        _record(Event.INVITATION_REVOKED, actor, found)
    return found


def list_invitations(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[AccountInvitation]:
    """List invitations, the newest first."""
    require_operator(actor)
    found = AccountInvitation.objects.select_related("company", "invited_by").order_by("-invited_at", "-pk")
    return Page.of(found, page, page_size)


def find_invitation(token: str) -> AccountInvitation:
    """Return the invitation of a link; raise NotFound if it was used, revoked, has expired, or its sender may not."""
    found = AccountInvitation.objects.select_related("company", "invited_by")
    invitation = found.filter(_open(), token_digest=token_digest(token[:200])).first()
    if invitation is None or not _may_invite(invitation.invited_by) or config.current().sign_in == "providers":
        raise _unknown()
    return invitation


def accept_as_new(token: str, password: str) -> Account:
    """
    Create the account of an invitation; its address counts as verified, because the link was mailed there.

    Args:
        password: empty for an account that signs in by emailed codes.

    Raises:
        NotFound: the link does not work, or no longer.
        BadRequest: the password is weak.
        Conflict: the address has an account by now; sign in with it to accept.
    """

    def make(invitation: AccountInvitation) -> Account:
        if has_account(invitation):
            said = gettext("%(email)s already has an account.") % {"email": invitation.email}
            raise Conflict(said, gettext("Sign in, and open the link of the invitation again."))
        return create_account(SYSTEM, invitation.email, password or None, role=invitation.role)

    return _accept(token, make)


def accept_as(actor: Actor, token: str) -> Account:
    """
    Accept an invitation with the account that has its address; its role is never lowered.

    Raises:
        NotFound: the link does not work, or no longer.
        Forbidden: the account has no verified address that was invited, or has to confirm its identity first.
    """
    require_confirmed(actor)

    def take(invitation: AccountInvitation) -> Account:
        account = account_of(actor)
        if not is_invited(account, invitation):
            said = gettext("This invitation is for %(email)s.") % {"email": invitation.email}
            raise Forbidden(said, gettext("Sign out, and open the link again."))
        if ROLES.index(invitation.role) > ROLES.index(account.role):
            set_role(SYSTEM, account.email, invitation.role)
        return account

    return _accept(token, take)


def has_account(invitation: AccountInvitation) -> bool:
    """Return whether the invited address has an account, which was created after the invitation."""
    return Account.objects.filter(email=invitation.email).exists()


def is_invited(account: Account, invitation: AccountInvitation) -> bool:
    """Return whether the address of an invitation is a verified one of the account, now."""
    return bool(EmailAddress.objects.filter(user=account, email__iexact=invitation.email, verified=True).exists())


def forget_ended() -> int:
    """Delete invitations that ended 90 days ago."""
    long_ago = now() - KEPT_FOR
    removed, _ = AccountInvitation.objects.filter(expires_at__lt=long_ago).delete()
    return removed


def _accept(token: str, account_for: Callable[[AccountInvitation], Account]) -> Account:
    with transaction.atomic():
        AccountInvitation.objects.select_for_update().filter(token_digest=token_digest(token[:200])).first()
        invitation = find_invitation(token)  # the holder of the lock before may have changed it
        account = account_for(invitation)
        invitation.accepted_at, invitation.accepted_by = now(), account
        invitation.save()
        detail = {"role": invitation.role, "email": invitation.email}
        record(Event.INVITATION_ACCEPTED, account=account, detail=detail, by=account.pk)
        if invitation.company is not None:
            make_owner(account.actor("web"), invitation.company, account.pk)
    account.refresh_from_db()
    return account


def _open() -> Q:
    return Q(accepted_at=None, revoked_at=None, expires_at__gt=now())


def _may_invite(sender: Account | None) -> bool:
    return sender is None or (sender.is_active and sender.role == Account.Role.OPERATOR)


def _require_own_sign_in() -> None:
    if config.current().sign_in == "providers":
        raise Conflict(
            gettext("People sign in only at identity providers here, which decide who has an account."),
            gettext(
                "Give the person access there. Map a group to the role, or change the role on the account's page"
                " after the first sign-in."
            ),
        )


def _company(slug: str) -> Company | None:
    slug = slug.strip()
    if not slug:
        return None
    found = Company.objects.filter(slug=slug).first()
    if found is None:
        said = gettext("There is no listing with the slug %(slug)s.") % {"slug": slug[:100]}
        raise NotFound(said, gettext("The slug is the last part of the address of its page."))
    return found


def _locked(number: int) -> AccountInvitation:
    found = AccountInvitation.objects.select_for_update(of=("self",)).select_related("company").filter(pk=number)
    invitation = found.first()
    if invitation is None:
        raise NotFound(gettext("Invitation not found."), gettext("It may have been deleted."))
    return invitation


def _ended() -> Conflict:
    return Conflict(
        gettext("This invitation was accepted or revoked, or the address already has an account."),
        gettext("Invite the person again if need be."),
    )


def _unknown() -> NotFound:
    return NotFound(
        gettext("This invitation was used or revoked, or has expired."),
        gettext("Ask the operator of this registry for a new one."),
    )


def _record(event: Event, actor: Actor, invitation: AccountInvitation) -> None:
    subject = f"companies/{invitation.company.slug}" if invitation.company else ""
    record(event, actor=actor, subject=subject, detail={"email": invitation.email, "role": invitation.role})


def _send(invitation: AccountInvitation, token: str, base_url: str) -> None:
    registry = applied.registry_name()
    if invitation.company is not None:
        said = gettext("You are invited to %(registry)s, to keep the listing of %(name)s up to date.") % {
            "registry": registry,
            "name": outgoing.without_links(invitation.company.name),
        }
    else:
        said = gettext("You are invited to create an account at %(registry)s.") % {"registry": registry}
    roles = {
        "reviewer": gettext("As a reviewer, you decide what is published."),
        "operator": gettext("As an operator, you run the registry."),
    }
    sentences = " ".join(filter(None, (said, roles.get(invitation.role, ""))))
    closing = gettext(
        "The link works once, until %(day)s. If you didn't expect this invitation, ignore it: without you, no account"
        " is created."
    ) % {"day": writing.day(invitation.expires_at)}
    link = f"{gettext('View invitation')}: {base_url}/invitations/{token}"
    text = f"{sentences}\n\n{link}\n\n{closing}\n"
    subject = gettext("Invitation to %(registry)s") % {"registry": registry}
    outgoing.send(invitation.email, subject, text, kind="invitation", expires_at=invitation.expires_at)
