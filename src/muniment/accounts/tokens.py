"""
Personal access tokens: create, list, regenerate, revoke.

The token is returned once, when it is created; only its digest is stored.

Source: decisions, section 4, personal access tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts import revocation, scopes
from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.operations import find_account, require_operator
from muniment.accounts.security import mailing
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.kernel.texts import text_fault
from muniment.kernel.tokens import is_personal, mint_personal, token_digest
from muniment.kernel.wire import UNSET, Unset
from muniment.languages import writing
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import speaking
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of

LIFETIMES_DAYS: Final = (30, 90, 365, None)
DEFAULT_DAYS: Final = 90
MAX_NAME_CHARACTERS: Final = 80
MAX_LIVE: Final = 50
MADE_AN_HOUR: Final = 30
WARNED_BEFORE: Final = timedelta(days=7)
KEPT_AFTER_END: Final = timedelta(days=30)
_BY_HOLDER: Final = "revoked by its holder"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token with its row. The only object that contains the token's text."""

    row: PersonalToken
    text: str

    def __repr__(self) -> str:
        return f"NewToken({self.row.pk})"  # keeps the text out of logs


def create_token(
    actor: Actor,
    name: str,
    *,
    permitted: Iterable[str],
    days: int | None = DEFAULT_DAYS,
    account: Account | None = None,
) -> NewToken:
    """
    Create a token that acts for the actor's account.

    Args:
        days: its lifetime; None means no expiry.
        account: another account, for which only an operator creates a token.

    Raises:
        Forbidden: the actor acts by a token, has to confirm its identity, or is no operator and names an account.
        BadRequest: invalid name, scope or lifetime.
        Conflict: the account has the maximum number of live tokens.
        TooMany: too many tokens were created within the hour.
    """
    if account is None:
        owner = _account(actor)
    else:
        require_operator(actor)
        owner = account
    label, permitted_scopes = _name(name), scopes.chosen(permitted)
    require_confirmed(actor)
    expires_at = _expiry(days)
    if actor.via == "web":
        _hold_to_rate(owner)
    text = mint_personal()
    with transaction.atomic():
        _make_room(owner.pk)
        row = PersonalToken.objects.create(
            account=owner,
            name=label,
            digest=token_digest(text),
            scopes=scopes.written(permitted_scopes),
            lifetime_days=days,
            expires_at=expires_at,
        )
        record(Event.TOKEN_CREATED, account=owner, actor=actor, detail=_detail(row))
    said = gettext_lazy("A personal access token was created for your account.")
    _mail_owner(row, gettext_lazy("A token was created"), said, is_change=True)
    return NewToken(row, text)


def list_tokens(actor: Actor) -> Sequence[PersonalToken]:
    """Return the actor's tokens that are not revoked, newest first; expired ones stay for a month."""
    return list(_kept(actor).order_by("-created_at", "-pk"))


def regenerate_token(actor: Actor, token_id: int) -> NewToken:
    """
    Replace the text of a token and renew its lifetime; the old text stops working at once.

    Raises:
        NotFound: unknown, revoked, or of another account.
        Conflict: it had expired, and the account has the maximum number of live tokens.
    """
    require_confirmed(actor)
    text = mint_personal()
    with transaction.atomic():
        row = _own(actor, token_id)
        if not row.is_live(now()):
            _make_room(row.account_id)
        row.digest = token_digest(text)
        row.expires_at = _expiry(row.lifetime_days)
        row.warned_at = row.last_used_on = None
        row.last_used_by = ""
        row.created_at = now()
        row.save()
        revocation.bump()
        record(Event.TOKEN_REGENERATED, account=row.account_id, actor=actor, detail=_detail(row))
    said = gettext_lazy("A personal access token of your account was regenerated.")
    _mail_owner(row, gettext_lazy("A token was regenerated"), said, is_change=True)
    return NewToken(row, text)


def revoke_token(actor: Actor, token_id: int) -> PersonalToken:
    """Revoke a token everywhere within a second; raise NotFound if it is not a live one of the account."""
    with transaction.atomic():
        row = _own(actor, token_id)
        _end_now(row)
        record(Event.TOKEN_REVOKED, account=row.account_id, actor=actor, detail={"name": row.name})
    return row


def revoke_all(actor: Actor, email: str) -> int:
    """Revoke every token of the account *email*, on an operator's decision; return how many."""
    require_operator(actor)
    with transaction.atomic():
        account = find_account(email)
        rows = list(PersonalToken.objects.select_for_update().filter(account=account, revoked_at=None))
        for row in rows:
            _end_now(row)
            record(Event.TOKEN_REVOKED, account=account, actor=actor, detail={"name": row.name})
    if rows:
        said = gettext("The operator revoked every personal access token of your account. Create new ones if need be.")
        outgoing.send(account.email, gettext("Your tokens were revoked"), said)
    return len(rows)


def revoke_presented(text: str) -> bool:
    """
    Revoke the presented token, and return whether it was a live one.

    Any holder may do this, for example a secret scanner that found it. Do not reveal the result: RFC 7009 requires the
    same response for both.
    """
    if not is_personal(text):
        return False
    with transaction.atomic():
        row = PersonalToken.objects.select_related("account").filter(digest=token_digest(text)).first()
        if row is None or row.revoked_at is not None:
            return False
        _end_now(row)
        record(Event.TOKEN_REVOKED, account=row.account_id, by=None, detail={"name": row.name, "reason": _BY_HOLDER})
    said = gettext_lazy("A token was revoked by its holder. Create a new one if you still need it.")
    _mail_owner(row, gettext_lazy("A token was revoked"), said)
    return True


def warn_of_expiry(at: datetime | Unset = UNSET) -> int:
    """Mail the owners of tokens that expire within a week, once each; return how many were mailed."""
    moment = now() if isinstance(at, Unset) else at
    due = PersonalToken.objects.select_related("account").filter(
        revoked_at=None, warned_at=None, expires_at__gt=moment, expires_at__lte=moment + WARNED_BEFORE
    )
    told = 0
    for row in list(due):
        # The row is updated before the mail is sent, so that two processes do not both send it.
        if PersonalToken.objects.filter(pk=row.pk, warned_at=None).update(warned_at=moment):
            said = gettext_lazy("A personal access token of your account expires on %(day)s.")
            _mail_owner(row, gettext_lazy("A token expires soon"), said)
            told += 1
    return told


def sweep_tokens() -> int:
    before = now() - KEPT_AFTER_END
    return PersonalToken.objects.filter(Q(revoked_at__lt=before) | Q(expires_at__lt=before)).delete()[0]


def _detail(row: PersonalToken) -> JSONObject:
    with speaking(SOURCE):  # what the log stores is not in the language of one reader
        expires = _day(row)
    return {"name": row.name, "scopes": row.scopes.split(), "expires": expires}


def _account(actor: Actor) -> Account:
    if actor.via not in {"web", "command"} or actor.account_id is None:
        raise Forbidden("A token cannot create tokens; sign in on the website instead.", "Open /manage/tokens.")
    return Account.objects.get(pk=actor.account_id)


def _live(account_id: int) -> QuerySet[PersonalToken]:
    return PersonalToken.objects.filter(account_id=account_id, revoked_at=None).filter(
        Q(expires_at=None) | Q(expires_at__gt=now())
    )


def live_names(account_id: int) -> list[str]:
    """Return the names of the tokens of an account that work now."""
    return list(_live(account_id).order_by("-created_at", "-pk").values_list("name", flat=True))


def _make_room(account_id: int) -> None:
    Account.objects.select_for_update().get(pk=account_id)  # serializes concurrent counts
    if _live(account_id).count() >= MAX_LIVE:
        raise Conflict(
            Phrase("The account already has {limit} tokens.", limit=MAX_LIVE), "Revoke one that you no longer use."
        )


def _kept(actor: Actor) -> QuerySet[PersonalToken]:
    if actor.account_id is None:
        return PersonalToken.objects.none()
    return PersonalToken.objects.filter(account_id=actor.account_id, revoked_at=None)


def _own(actor: Actor, token_id: int) -> PersonalToken:
    if actor.via not in {"web", "command"}:
        raise Forbidden("A token cannot manage tokens; sign in on the website instead.", "Open /manage/tokens.")
    row = _kept(actor).select_related("account").select_for_update(of=("self",)).filter(pk=token_id).first()
    if row is None:
        raise NotFound("Token not found.", "Your tokens are at /manage/tokens.")
    return row


def _end_now(row: PersonalToken) -> None:
    row.revoked_at = now()
    row.save(update_fields=["revoked_at"])
    revocation.bump()


def _name(name: str) -> str:
    label = " ".join(name.split())
    if not label or len(label) > MAX_NAME_CHARACTERS or text_fault(label) or not label.isprintable():
        raise BadRequest(
            Phrase("The name of a token must be one line of 1 to {limit} characters.", limit=MAX_NAME_CHARACTERS),
            "Name it after the place where you use it, such as laptop.",
        )
    return label


def _expiry(days: int | None) -> datetime | None:
    if days not in LIFETIMES_DAYS:
        raise BadRequest(
            Phrase("A lifetime of {days} days is not allowed.", days=days), "Choose 30, 90 or 365 days, or no expiry."
        )
    return None if days is None else now() + timedelta(days=days)


def _hold_to_rate(owner: Account) -> None:
    key = f"tokens-made:{owner.pk}:{now():%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > MADE_AN_HOUR:
        raise TooMany(
            Phrase("{limit} tokens were created within this hour.", limit=MADE_AN_HOUR),
            "Wait until the next hour.",
            retry_after_s=3_600,
        )


def _day(row: PersonalToken) -> str:
    return writing.day(row.expires_at) if row.expires_at else gettext("never")


def _mail_owner(row: PersonalToken, subject: Promise, text: Promise, *, is_change: bool = False) -> None:
    with in_language_of(row.account):
        lines = [
            str(text) % {"day": _day(row)},
            "",
            gettext("Name: %(name)s") % {"name": row.name},
            gettext("Expires: %(day)s") % {"day": _day(row)},
            "",
            gettext("It can:"),
            "",
            *(f"- {scopes.WORDS[scope]}" for scope in row.scopes.split() if scope in scopes.WORDS),
            "",
        ]
        label = gettext("Review your tokens")
        if is_change:
            asked = gettext("If you didn't do this, revoke the token and change your password.")
            lines += mailing.ways_to_review(row.account.email, label, asked)
        else:
            lines.append(places.link(label, "/manage/tokens"))
        outgoing.send(row.account.email, str(subject), "\n".join(lines))
