"""The accounts' own part of personal data: addresses, credentials and sessions."""

from collections.abc import Iterator
from datetime import datetime

import msgspec
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session

from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.personal_data.parts import ArchiveEntry, Part
from muniment.accounts.security import retention
from muniment.accounts.security.reading import events_of, own_wire
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _export(account: Account) -> Iterator[ArchiveEntry]:
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


def _delete(account: Account) -> None:
    retention.forget_account(account)
    keys = UserSession.objects.filter(user=account).values("session_key")
    Session.objects.filter(session_key__in=keys).delete()
    for model in (UserSession, EmailAddress, Authenticator, SocialAccount):
        model._default_manager.filter(user=account).delete()  # noqa: SLF001 - Django's public name
    account.tokens.all().delete()


PART = Part(name="accounts", export=_export, delete=_delete)
