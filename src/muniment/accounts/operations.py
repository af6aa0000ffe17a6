"""Account operations without a browser: create, list, set the role."""

from collections.abc import Iterable

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of

ROLES = ("owner", "reviewer", "operator")


def create_account(actor: Actor, email: str, password: str | None = None, *, role: str = "owner") -> Account:
    """
    Create an account with a verified address.

    Args:
        password: None creates an account that signs in by code or passkey.

    Raises:
        BadRequest: the address or the role is invalid, or the password is weak.
        Conflict: the address already has an account.
    """
    require_operator(actor)
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadRequest(
            Phrase("{email!r} is not an email address.", email=email[:100]), "Use the form name@example.org."
        ) from None
    _check_role(role)
    if password is not None:
        try:
            validate_password(password, Account(email=address))
        except ValidationError as error:
            hint = "Choose at least ten characters that are hard to guess."
            raise BadRequest(" ".join(error.messages), hint) from None
    with transaction.atomic():
        if Account.objects.filter(email=address).exists():
            raise Conflict(
                Phrase("{address} already has an account.", address=address), "Use user role to change its role."
            )
        account = Account.objects.create_user(address, password, role=role)
        EmailAddress.objects.create(user=account, email=address, verified=True, primary=True)
        record(Event.ACCOUNT_CREATED, account=account, actor=actor, detail={"role": role})
    return account


def set_role(actor: Actor, email: str, role: str) -> Account:
    """Set the role of another account; raise BadRequest or NotFound if one is unknown, Conflict for the actor's own."""
    require_operator(actor)
    _check_role(role)
    with transaction.atomic():
        account = find_account(email)
        _refuse_own(actor, account)
        was, account.role = account.role, role
        account.save(update_fields=["role"])
        if was != role:
            record(Event.ROLE_CHANGED, account=account, actor=actor, detail={"was": was, "role": role})
    return account


def remove_factors(actor: Actor, email: str) -> int:
    """
    Remove every second factor and passkey of the account *email*, which lost them; return how many.

    Its owner is told by mail. The password, or an emailed code, then signs in.
    """
    require_operator(actor)
    with transaction.atomic():
        account = find_account(email)
        count: int = Authenticator.objects.filter(user=account).delete()[0]
        if count:
            record(Event.FACTOR_REMOVED, account=account, actor=actor, detail={"count": count})
    if count:
        with in_language_of(account):
            told = gettext(
                "The operator removed all second factors and passkeys of your account. Set them up again soon."
            )
            link = places.link(gettext("Set up second factors"), "/accounts/2fa/")
            outgoing.send(account.email, gettext("Your second factors were removed"), f"{told}\n\n{link}\n")
    return count


def set_active(actor: Actor, email: str, *, active: bool) -> Account:
    """
    Disable the account *email*, or enable it again; its sessions and tokens stop working within a second.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such account.
        Conflict: it is the actor's own.
    """
    require_operator(actor)
    with transaction.atomic():
        account = find_account(email)
        _refuse_own(actor, account)
        if account.is_active != active:
            account.is_active = active
            account.save(update_fields=["is_active"])
            record(Event.ACCOUNT_ENABLED if active else Event.ACCOUNT_DISABLED, account=account, actor=actor)
    return account


def end_sessions(actor: Actor, email: str) -> int:
    """Sign the account *email* out of every browser; return how many sessions ended."""
    require_operator(actor)
    with transaction.atomic():
        account = find_account(email)
        sessions = list(UserSession.objects.filter(user=account))
        for session in sessions:
            session.end()
        if sessions:
            record(Event.SESSIONS_ENDED, account=account, actor=actor, detail={"sessions": len(sessions)})
    return len(sessions)


def search_accounts(
    actor: Actor, words: str = "", *, role: str = "", state: str = "", page: int = 1, page_size: int = 25
) -> Page[Account]:
    """
    List accounts by address.

    Args:
        words: part of an address or a name.
        state: active or disabled; both by default.
    """
    require_operator(actor)
    found = Account.objects.filter(deleted_at=None)
    if words:
        found = found.filter(Q(email__icontains=words) | Q(name__icontains=words))
    if role:
        found = found.filter(role=role)
    if state:
        found = found.filter(is_active=state == "active")
    return Page.of(found.order_by("email"), page, page_size)


def get_account(actor: Actor, number: int) -> Account:
    """Return the account with *number*, or raise NotFound."""
    require_operator(actor)
    account = Account.objects.filter(pk=number, deleted_at=None).first()
    if account is None:
        raise NotFound(Phrase("Account {number} not found.", number=number), "It may have been deleted.")
    return account


def list_accounts(actor: Actor) -> Iterable[Account]:
    require_operator(actor)
    return Account.objects.filter(deleted_at=None).order_by("email")


def find_account(email: str) -> Account:
    """Return the account with the address *email*, or raise NotFound."""
    account = Account.objects.filter(email=email.strip().lower(), deleted_at=None).first()
    if account is None:
        raise NotFound(Phrase("Account {email} not found.", email=email[:100]), "List accounts with user list.")
    return account


def has_verified_email(account: Account) -> bool:
    """Return whether the account received a code at its address."""
    found: bool = EmailAddress.objects.filter(user=account, email__iexact=account.email, verified=True).exists()
    return found


def account_of(actor: Actor) -> Account:
    """Return the account that *actor* acts for; raise Forbidden if not signed in."""
    account = Account.objects.filter(pk=actor.account_id).first() if actor.account_id is not None else None
    if account is None:
        raise Forbidden("This requires an account.", "Sign in first.")
    return account


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise BadRequest(
            Phrase("Unknown role: {role}.", role=role[:40]), Phrase("Use one of: {roles}.", roles=", ".join(ROLES))
        )


def _refuse_own(actor: Actor, account: Account) -> None:
    """Keep an operator from locking themselves out: with them, the last operator could go."""
    if actor.account_id == account.pk:
        raise Conflict("This is your own account.", "Ask another operator.")


def require_operator(actor: Actor) -> None:
    if actor.role != "operator":
        raise Forbidden("Only an operator can do this.", "Ask the operator of this registry.")
