"""
Everything that the registry stores about an account: one archive of it, and its deletion.

Each feature contributes its part when it is loaded, so that nothing of a new feature is forgotten in one of the two.
"""

import logging
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any, Final, NamedTuple

import msgspec
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils.translation import gettext

from muniment.accounts import revocation
from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.operations import account_of, find_account, require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import events_of, forget_account, own_wire, record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict, Forbidden
from muniment.kernel.wire import timestamp
from muniment.languages import writing
from muniment.languages.speaking import known, speaking
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of

FORMAT: Final = "muniment.account/1"


class ArchiveEntry(NamedTuple):
    """A file of the archive: a value, written as JSON, or the pieces of a file."""

    path: str
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    The data about accounts that one feature stores.

    Args:
        name: the name of the feature.
        export: yields the files of its part of the archive.
        delete: deletes what is the account's own, in the transaction of the deletion; what belongs to others stays.
    """

    name: str
    export: Callable[[Account], Iterator[ArchiveEntry]]
    delete: Callable[[Account], None]


_parts: Final[dict[str, Part]] = {}
"""The parts of all features by name, in the order of their layers."""


def register(part: Part) -> None:
    _parts[part.name] = part


def names() -> list[str]:
    return list(_parts)


def write_archive(account: Account, file: IO[bytes]) -> None:
    """Write everything about *account* into *file*, a ZIP archive with a JSON file for each kind of thing."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        heading = {"format": FORMAT, "madeAt": timestamp(now()), "account": account.email, "parts": names()}
        _write(archive, ArchiveEntry("archive.json", heading))
        for part in _parts.values():
            for entry in part.export(account):
                _write(archive, entry)


def delete(account: Account) -> None:
    """Delete what is the account's own, upper layers first, in the caller's transaction."""
    for part in reversed(_parts.values()):
        part.delete(account)


def _write(archive: zipfile.ZipFile, entry: ArchiveEntry) -> None:
    with archive.open(entry.path, "w", force_zip64=True) as out:
        if isinstance(entry.content, Iterator):
            for piece in entry.content:
                out.write(piece)
        else:
            out.write(msgspec.json.format(msgspec.json.encode(entry.content), indent=2))


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _export_account(account: Account) -> Iterator[ArchiveEntry]:
    addresses = EmailAddress.objects.filter(user=account).order_by("pk").values("email", "verified", "primary")
    yield ArchiveEntry(
        "account.json",
        {
            "number": account.pk,
            "email": account.email,
            "name": account.name,
            "role": account.role,
            "language": account.language or None,
            "joinedAt": timestamp(account.joined_at),
            "lastSignInAt": _moment(account.last_login),
            "deleteAt": _moment(account.delete_at),
            "emailAddresses": list(addresses),
            "secondFactors": [
                {"type": each.type, "createdAt": _moment(each.created_at), "lastUsedAt": _moment(each.last_used_at)}
                for each in Authenticator.objects.filter(user=account).order_by("pk")
            ],
            "identities": [
                {"provider": each.provider, "uid": each.uid, "data": each.extra_data}
                for each in SocialAccount.objects.filter(user=account).order_by("pk")
            ],
        },
    )
    yield ArchiveEntry("tokens.json", [_token(each) for each in account.tokens.order_by("pk")])
    sessions = UserSession.objects.filter(user=account).order_by("pk")
    yield ArchiveEntry(
        "sessions.json",
        [
            {
                "browser": each.user_agent,
                "ipAddress": each.ip,
                "createdAt": timestamp(each.created_at),
                "lastSeenAt": timestamp(each.last_seen_at),
            }
            for each in sessions
        ],
    )
    yield ArchiveEntry("security-log.json", _events(account))


def _events(account: Account) -> Iterator[bytes]:
    """Yield the security log as a JSON array, line by line: it can be long."""
    yield b"["
    separator = b"\n"
    for event in events_of(account).iterator():
        yield separator + msgspec.json.encode(own_wire(event))
        separator = b",\n"
    yield b"\n]\n"


def _token(row: PersonalToken) -> JSONObject:
    return {
        "name": row.name,
        "scopes": row.scopes,
        "createdAt": timestamp(row.created_at),
        "expiresAt": _moment(row.expires_at),
        "lastUsedOn": row.last_used_on,
        "lastUsedBy": row.last_used_by,
        "revokedAt": _moment(row.revoked_at),
    }


def _delete_own_rows(account: Account) -> None:
    forget_account(account)
    keys = UserSession.objects.filter(user=account).values("session_key")
    Session.objects.filter(session_key__in=keys).delete()
    for model in (UserSession, EmailAddress, Authenticator, SocialAccount):
        model._default_manager.filter(user=account).delete()  # noqa: SLF001 - Django's public name
    account.tokens.all().delete()


ACCOUNT_PART = Part(name="accounts", export=_export_account, delete=_delete_own_rows)

GRACE: Final = timedelta(days=14)
log = logging.getLogger(__name__)


def request_deletion(actor: Actor) -> Account:
    """
    Schedule the deletion of the actor's account in 14 days, unless it is scheduled already, and tell the owner by mail.

    Raises:
        Forbidden: the actor is not signed in on the website (no token or app can delete an account), or has to confirm
            its identity first.
        Conflict: it is the only operator.
    """
    require_confirmed(actor)
    with transaction.atomic():
        account = _own_account(actor)
        _require_another_operator(account)
        if account.delete_at is None:
            account.delete_at = now() + GRACE
            account.save(update_fields=["delete_at"])
            record(Event.DELETION_REQUESTED, account=account, actor=actor)
            with in_language_of(account):
                _tell(account, gettext("Your account will be deleted"), _scheduled(account.delete_at))
    return account


def cancel_deletion(actor: Actor) -> Account:
    """
    Keep the actor's account.

    Raises:
        Forbidden: the actor is not signed in on the website.
    """
    with transaction.atomic():
        account = _own_account(actor)
        if account.delete_at is not None:
            account.delete_at = None
            account.save(update_fields=["delete_at"])
            record(Event.DELETION_CANCELED, account=account, actor=actor)
            with in_language_of(account):
                _tell(account, gettext("Your account stays"), gettext("The deletion of your account was canceled."))
    return account


def delete_account(actor: Actor, email: str) -> None:
    """
    Delete the account *email* at once.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such account.
        Conflict: it is the only operator.
    """
    require_operator(actor)
    with transaction.atomic():
        account = Account.objects.select_for_update().get(pk=find_account(email).pk)
        _require_another_operator(account)
        _delete_now(actor, account)


def delete_due_accounts(*, at: datetime | None = None) -> int:
    """Delete the accounts whose days of grace are over, and return how many were deleted."""
    deleted = 0
    moment = at or now()
    for pk in list(Account.objects.filter(delete_at__lte=moment).values_list("pk", flat=True)):
        with transaction.atomic():
            account = Account.objects.select_for_update().filter(pk=pk, delete_at__lte=moment).first()
            if account is None:
                continue  # canceled in the meantime
            try:
                _require_another_operator(account)
            except Conflict:
                log.warning("account not deleted: it is the only operator", extra={"account": pk})
                continue
            _delete_now(SYSTEM, account)
            deleted += 1
    return deleted


def _own_account(actor: Actor) -> Account:
    if actor.via != "web":
        raise Forbidden("Only its owner can delete an account, on the website.", "Sign in and open /accounts/data/.")
    return Account.objects.select_for_update().get(pk=account_of(actor).pk)


def _require_another_operator(account: Account) -> None:
    if account.role != Account.Role.OPERATOR:
        return
    others = Account.objects.filter(role=Account.Role.OPERATOR, is_active=True).exclude(pk=account.pk)
    if not others.exists():
        raise Conflict("This is the only operator.", "Make another account operator first: muniment user role.")


def _delete_now(actor: Actor, account: Account) -> None:
    """Delete the account's data in every feature, and leave an empty row under its number."""
    email, language = account.email, account.language
    delete(account)
    account.email = f"former-{account.pk}{outgoing.NO_MAIL}"
    account.name, account.role, account.is_active, account.language = "", Account.Role.OWNER, False, ""
    account.set_unusable_password()
    account.last_login = account.delete_at = None
    account.joined_at = account.deleted_at = now()
    account.save()
    revocation.bump()
    record(Event.ACCOUNT_DELETED, account=account, actor=actor)
    outgoing.forget(email)
    with speaking(known(language)):
        subject, text = gettext("Your account was deleted"), gettext("Your account and its data were deleted.")
        outgoing.send(email, subject, f"{text}\n", kind=outgoing.FAREWELL)


def _scheduled(delete_at: datetime) -> str:
    said = gettext("Your account will be deleted on %(day)s. Until then, you can keep it.")
    link = places.link(gettext("Keep your account"), "/accounts/data/")
    return f"{said % {'day': writing.day(delete_at)}}\n\n{link}"


def _tell(account: Account, subject: str, text: str) -> None:
    outgoing.send(account.email, subject, f"{text}\n")
