"""
Personal access tokens: made, listed, renewed, revoked, burnt.

The token itself is given once, to the caller who made it; only its digest is kept.

Source: decisions, section 4, personal access tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet

from muniment.accounts import mail, revocation, scopes
from muniment.accounts.models import Account, PersonalToken
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.kernel.texts import text_fault
from muniment.kernel.tokens import is_personal, mint_personal, token_digest
from muniment.kernel.wire import UNSET, Unset

LIFETIMES_DAYS: Final = (30, 90, 365, None)
DEFAULT_DAYS: Final = 90
MAX_NAME_CHARACTERS: Final = 80
MAX_LIVE: Final = 50
MADE_AN_HOUR: Final = 30
WARNED_BEFORE: Final = timedelta(days=7)
KEPT_AFTER_END: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Minted:
    """A token that was just made, with its row. The only place where the text of a token is."""

    row: PersonalToken
    text: str

    def __repr__(self) -> str:
        return f"Minted({self.row.pk})"  # never into a log


def create_token(
    actor: Actor,
    name: str,
    *,
    permitted: Iterable[str],
    days: int | None = DEFAULT_DAYS,
    account: Account | None = None,
) -> Minted:
    """
    Make a token that acts for the actor's account.

    Args:
        permitted: the scopes it holds.
        days: how long it lives; None for ever.
        account: whose token, when an operator makes it at the command line.

    Raises:
        BadRequest: the name, a scope or the lifetime is not one that can be chosen.
        Conflict: the account has as many live tokens as it may.
        TooMany: too many were made within the hour.
    """
    label = _name(name)
    held = scopes.chosen(permitted)
    owner = account if account is not None and actor.role == "operator" else _account(actor)
    lifetime = _lifetime(days)
    if actor.via == "web":
        _hold_to_rate(owner)
    text = mint_personal()
    with transaction.atomic():
        _make_room(owner.pk)
        row = PersonalToken.objects.create(
            account=owner,
            name=label,
            digest=token_digest(text),
            scopes=scopes.written(held),
            lifetime_days=days,
            expires_at=_end(lifetime),
        )
    _tell(row, "A token was made", "A personal access token was made for your account.")
    return Minted(row, text)


def list_tokens(actor: Actor) -> Sequence[PersonalToken]:
    """Give the actor's tokens that were not revoked, newest first; expired ones are among them for a month."""
    return list(_kept(actor).order_by("-created_at", "-pk"))


def regenerate_token(actor: Actor, token_id: int) -> Minted:
    """
    Give a token a new text and a full lifetime; the old text is dead at once.

    Raises:
        NotFound: unknown, revoked, or another's.
        Conflict: it had expired, and the account has as many live tokens as it may.
    """
    text = mint_personal()
    with transaction.atomic():
        row = _own(actor, token_id)
        if not row.is_live(now()):
            _make_room(row.account_id)
        row.digest = token_digest(text)
        row.expires_at = _end(_lifetime(row.lifetime_days))
        row.warned_at = row.last_used_on = None
        row.last_used_by = ""
        row.created_at = now()
        row.save()
        revocation.shrink()
    _tell(row, "A token was renewed", "A personal access token of your account was given a new text.")
    return Minted(row, text)


def revoke_token(actor: Actor, token_id: int) -> PersonalToken:
    """
    End a token, everywhere within a second.

    Raises:
        NotFound: unknown, revoked, or another's.
    """
    with transaction.atomic():
        row = _own(actor, token_id)
        _end_now(row)
    return row


def burn_token(text: str) -> bool:
    """
    End the token that is presented: whoever holds it may do so, for example a scanner that found it.

    Returns:
        Whether it was a live token of ours. Tell nobody: RFC 7009 answers alike.
    """
    if not is_personal(text):
        return False
    with transaction.atomic():
        row = PersonalToken.objects.select_related("account").filter(digest=token_digest(text)).first()
        if row is None or row.revoked_at is not None:
            return False
        _end_now(row)
    _tell(row, "A token was burnt", "Somebody who held this personal access token ended it. Make a new one if needed.")
    return True


def warn_of_expiry(at: datetime | Unset = UNSET) -> int:
    """Mail the owners of tokens that end within a week, once each; gives how many were told."""
    moment = now() if isinstance(at, Unset) else at
    due = PersonalToken.objects.select_related("account").filter(
        revoked_at=None, warned_at=None, expires_at__gt=moment, expires_at__lte=moment + WARNED_BEFORE
    )
    told = 0
    for row in list(due):
        # The row is taken before the mail goes, so that two processes do not both send it.
        if PersonalToken.objects.filter(pk=row.pk, warned_at=None).update(warned_at=moment):
            day = row.expires_at.strftime("%-d %B %Y") if row.expires_at else ""
            _tell(row, "A token ends soon", f"A personal access token of your account ends on {day}.")
            told += 1
    return told


def sweep_tokens() -> int:
    """Delete the rows of tokens that ended a month ago."""
    before = now() - KEPT_AFTER_END
    return PersonalToken.objects.filter(Q(revoked_at__lt=before) | Q(expires_at__lt=before)).delete()[0]


def _account(actor: Actor) -> Account:
    if actor.via not in {"web", "command"} or actor.account_id is None:
        raise Forbidden("A token is made by the person signed in, never by another token.", "Open /manage/tokens.")
    return Account.objects.get(pk=actor.account_id)


def _live(account_id: int) -> QuerySet[PersonalToken]:
    return PersonalToken.objects.filter(account_id=account_id, revoked_at=None).filter(
        Q(expires_at=None) | Q(expires_at__gt=now())
    )


def _make_room(account_id: int) -> None:
    Account.objects.select_for_update().get(pk=account_id)  # two at once are counted one after the other
    if _live(account_id).count() >= MAX_LIVE:
        raise Conflict(f"There are {MAX_LIVE} tokens already.", "Revoke one that is no longer used.")


def _kept(actor: Actor) -> QuerySet[PersonalToken]:
    if actor.account_id is None:
        return PersonalToken.objects.none()
    return PersonalToken.objects.filter(account_id=actor.account_id, revoked_at=None)


def _own(actor: Actor, token_id: int) -> PersonalToken:
    if actor.via not in {"web", "command"}:
        raise Forbidden("Tokens are kept by the person signed in, never by another token.", "Open /manage/tokens.")
    row = _kept(actor).select_related("account").select_for_update(of=("self",)).filter(pk=token_id).first()
    if row is None:
        raise NotFound("You have no such token.", "The page /manage/tokens lists yours.")
    return row


def _end_now(row: PersonalToken) -> None:
    row.revoked_at = now()
    row.save(update_fields=["revoked_at"])
    revocation.shrink()


def _name(name: str) -> str:
    label = " ".join(name.split())
    if not label or len(label) > MAX_NAME_CHARACTERS or text_fault(label) or not label.isprintable():
        raise BadRequest(
            f"A token's name is a line of 1 to {MAX_NAME_CHARACTERS} characters.",
            "Name it after where it will be used, such as laptop.",
        )
    return label


def _lifetime(days: int | None) -> timedelta | None:
    if days not in LIFETIMES_DAYS:
        raise BadRequest(f"A token does not live {days} days.", "Choose 30, 90 or 365 days, or no end.")
    return None if days is None else timedelta(days=days)


def _end(lifetime: timedelta | None) -> datetime | None:
    return None if lifetime is None else now() + lifetime


def _hold_to_rate(owner: Account) -> None:
    key = f"tokens-made:{owner.pk}:{now():%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > MADE_AN_HOUR:
        raise TooMany(
            f"{MADE_AN_HOUR} tokens were made within this hour.", "Wait until the next hour.", retry_after_s=3_600
        )


def _tell(row: PersonalToken, subject: str, text: str) -> None:
    lines = [
        text,
        "",
        f"Name: {row.name}",
        f"It may: {row.scopes.replace(' ', ', ')}",
        f"It ends: {row.expires_at:%-d %B %Y}" if row.expires_at else "It has no end.",
        "",
        "Every token is listed at /manage/tokens, where it can be revoked or renewed.",
    ]
    mail.send(row.account.email, subject, "\n".join(lines))
