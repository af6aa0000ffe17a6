"""What is done to accounts without a browser: make, list, give a role."""

from collections.abc import Iterable

from allauth.account.models import EmailAddress
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound

ROLES = ("owner", "reviewer", "operator")


def create_account(actor: Actor, email: str, password: str | None = None, *, role: str = "owner") -> Account:
    """
    Make an account whose address counts as verified.

    Args:
        password: None makes an account that signs in by code or passkey.

    Raises:
        BadRequest: no address, a weak password or an unknown role.
        Conflict: there is an account of this address.
    """
    _operator(actor)
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadRequest(f"{email[:100]!r} is no email address.", "Write it as name@example.org.") from None
    _known(role)
    if password is not None:
        try:
            validate_password(password, Account(email=address))
        except ValidationError as error:
            raise BadRequest(" ".join(error.messages), "Choose at least ten characters that nobody guesses.") from None
    with transaction.atomic():
        if Account.objects.filter(email=address).exists():
            raise Conflict(f"{address} has an account already.", "Use user role to change what it may do.")
        account = Account.objects.create_user(address, password, role=role)
        EmailAddress.objects.create(user=account, email=address, verified=True, primary=True)
    return account


def set_role(actor: Actor, email: str, role: str) -> Account:
    """
    Give the account at *email* another role.

    Raises:
        BadRequest: an unknown role.
        NotFound: there is no such account.
    """
    _operator(actor)
    _known(role)
    with transaction.atomic():
        account = find_account(email)
        account.role = role
        account.save(update_fields=["role"])
    return account


def list_accounts(actor: Actor) -> Iterable[Account]:
    """Give every account, by address."""
    _operator(actor)
    return Account.objects.order_by("email")


def find_account(email: str) -> Account:
    """
    Find an account by its address.

    Raises:
        NotFound: there is none.
    """
    account = Account.objects.filter(email=email.strip().lower()).first()
    if account is None:
        raise NotFound(f"There is no account {email[:100]}.", "List them with user list.")
    return account


def account_of(actor: Actor) -> Account:
    """
    Give the account that *actor* acts for.

    Raises:
        Forbidden: nobody is signed in.
    """
    account = Account.objects.filter(pk=actor.account_id).first() if actor.account_id is not None else None
    if account is None:
        raise Forbidden("This needs an account.", "Sign in first.")
    return account


def _known(role: str) -> None:
    if role not in ROLES:
        raise BadRequest(f"There is no role {role[:40]}.", f"It is one of: {', '.join(ROLES)}.")


def _operator(actor: Actor) -> None:
    if actor.role != "operator":
        raise Forbidden("Only an operator does this.", "Ask the operator of this registry.")
