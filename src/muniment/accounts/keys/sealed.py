"""Everything that is sealed under a secret key: count it by key, and seal it again under the current one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet

from muniment.accounts.keys.kept import PURPOSE as KEPT
from muniment.accounts.models import Account, KeptSecret
from muniment.accounts.sessions import PURPOSE as SESSION
from muniment.accounts.sessions import SessionStore
from muniment.encryption import seal_under, unseal_under
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.mail import outgoing

FACTOR: Final = "second factor"
BATCH: Final = 200


class Kind(NamedTuple):
    """
    One kind of sealed rows.

    Args:
        words: its name for the operator, in the plural.
        keys_of: yields the key that each row needs; "" if none of the given keys opens it.
        reseal: seals rows again under the first of the given keys, and returns how many it changed.
    """

    words: str
    keys_of: Callable[[list[str]], Iterator[str]]
    reseal: Callable[[list[str]], int]


def survey(keys: Iterable[str]) -> Counter[str]:
    """Return how many sealed rows need each of *keys*; "" counts those that none of them opens."""
    own = list(keys)
    return Counter(key for kind in KINDS for key in kind.keys_of(own))


def _opener(keys: list[str], sealed: str, purpose: str) -> str:
    try:
        return unseal_under(keys, sealed, purpose)[0]
    except InvalidToken:
        return ""


def _sealed_in(data: dict[str, Any]) -> list[str]:
    """Return the sealed texts of an authenticator; a passkey has none."""
    codes = data.get("migrated_codes") or []
    values = [data.get("secret"), data.get("seed"), *codes]
    return [value for value in values if isinstance(value, str)]


def _factors() -> Any:
    return Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).order_by("pk")


def _factor_keys(keys: list[str]) -> Iterator[str]:
    for data in _factors().values_list("data", flat=True).iterator(chunk_size=BATCH):
        openers = {_opener(keys, text, FACTOR) for text in _sealed_in(data)}
        if "" in openers:
            yield ""
        else:
            yield max(openers, key=keys.index, default=keys[0])  # the oldest, which must stay for it


def _reseal_factors(keys: list[str]) -> int:
    changed, after = 0, 0
    while True:
        with transaction.atomic():
            batch = list(_factors().filter(pk__gt=after).select_for_update()[:BATCH])
            for factor in batch:
                again = {text: _again(keys, text, FACTOR) for text in _sealed_in(factor.data)}
                if any(new != old for old, new in again.items()):
                    factor.data = _replaced(factor.data, again)
                    factor.save(update_fields=["data"])
                    changed += 1
        if len(batch) < BATCH:
            return changed
        after = batch[-1].pk


def _replaced(value: Any, again: dict[str, str]) -> Any:
    """Return *value* with each sealed text replaced by its new form in *again*."""
    if isinstance(value, dict):
        return {name: _replaced(member, again) for name, member in value.items()}
    if isinstance(value, list):
        return [_replaced(member, again) for member in value]
    return again.get(value, value) if isinstance(value, str) else value


def _again(keys: list[str], sealed: str, purpose: str) -> str:
    """Return *sealed* under the first key; as it is if that key or none of them opens it."""
    try:
        key, content = unseal_under(keys, sealed, purpose)
    except InvalidToken:
        return sealed
    return sealed if key == keys[0] else seal_under(keys[0], content, purpose)


class _Opened(NamedTuple):
    """
    A live session.

    Args:
        needs: the key that opens it, or by which it proves that the account's password is still the same.
        content_hash: that proof under the first key, if it is under another; "" if nothing is to be replaced.
    """

    row: Session
    content: dict[str, Any]
    needs: str
    content_hash: str

    @property
    def account_id(self) -> str:
        """Return the account that is signed in, as sessions store it; "" for a visitor."""
        return str(self.content.get(SESSION_KEY, ""))


def _sessions(keys: list[str]) -> Iterator[list[_Opened | None]]:
    """Yield live sessions in batches; None for those that no key opens."""
    live = Session.objects.filter(expire_date__gt=now()).order_by("session_key")
    after = ""
    while True:
        rows = list(live.filter(session_key__gt=after)[:BATCH])
        opened = [_opened(row, keys) for row in rows]
        accounts = _accounts_of(opened)
        batch: list[_Opened | None] = []
        for session in opened:
            batch.append(_with_hash(session, accounts.get(session.account_id), keys) if session else None)
        yield batch
        if len(rows) < BATCH:
            return
        after = rows[-1].session_key


def _accounts_of(opened: list[_Opened | None]) -> dict[str, Account]:
    ids = {session.account_id for session in opened if session is not None}
    ids.discard("")  # visitors
    return {str(account.pk): account for account in Account.objects.filter(pk__in=ids)}


def _opened(row: Session, keys: list[str]) -> _Opened | None:
    try:
        key, content = unseal_under(keys, row.session_data, SESSION)
    except InvalidToken:
        return None
    return _Opened(row, SessionStore().serializer().loads(content), key, "")


def _with_hash(session: _Opened, account: Account | None, keys: list[str]) -> _Opened:
    stored_hash = session.content.get(HASH_SESSION_KEY)
    if account is None or not stored_hash:
        return session
    hashes = {key: account.session_hash_under(key) for key in keys}
    hash_key = next((key for key in keys if hashes[key] == stored_hash), "")
    if not hash_key:
        return session  # the password has changed since: the session has ended, and must not get a valid proof
    content_hash = "" if hash_key == keys[0] else hashes[keys[0]]
    return session._replace(needs=max(session.needs, hash_key, key=keys.index), content_hash=content_hash)


def _session_keys(keys: list[str]) -> Iterator[str]:
    for batch in _sessions(keys):
        for session in batch:
            yield "" if session is None else session.needs


def _reseal_sessions(keys: list[str]) -> int:
    changed = 0
    for batch in _sessions(keys):
        with transaction.atomic():
            for session in batch:
                if session is None or session.needs == keys[0]:
                    continue
                content = dict(session.content)
                if session.content_hash:
                    content[HASH_SESSION_KEY] = session.content_hash
                sealed = seal_under(keys[0], SessionStore().serializer().dumps(content), SESSION)
                # A request that saves the session at this moment wins; the next pass finds what it saved.
                unchanged = Session.objects.filter(pk=session.row.pk, session_data=session.row.session_data)
                changed += unchanged.update(session_data=sealed)
    return changed


def _kept_keys(keys: list[str]) -> Iterator[str]:
    for sealed in KeptSecret.objects.values_list("sealed", flat=True):
        yield _opener(keys, sealed, KEPT)


def _reseal_kept(keys: list[str]) -> int:
    changed = 0
    with transaction.atomic():
        for row in KeptSecret.objects.select_for_update().order_by("name"):
            again = _again(keys, row.sealed, KEPT)
            if again != row.sealed:
                changed += KeptSecret.objects.filter(pk=row.pk).update(sealed=again)
    return changed


def _mail() -> Any:
    return Job.objects.filter(kind=outgoing.KIND, finished_at=None).order_by("pk")


def _mail_keys(keys: list[str]) -> Iterator[str]:
    for payload in _mail().values_list("payload", flat=True).iterator(chunk_size=BATCH):
        yield _opener(keys, payload["sealed"], outgoing.PURPOSE)


def _reseal_mail(keys: list[str]) -> int:
    changed = 0
    for pk in list(_mail().values_list("pk", flat=True)):
        with transaction.atomic():
            job = _mail().select_for_update().filter(pk=pk).first()  # it may have been sent meanwhile
            again = _again(keys, job.payload["sealed"], outgoing.PURPOSE) if job else ""
            if job and again != job.payload["sealed"]:
                changed += Job.objects.filter(pk=pk).update(payload={**job.payload, "sealed": again})
    return changed


def of_column(words: str, rows: Callable[[], QuerySet[Any]], column: str, purpose: str) -> Kind:
    """Return the kind of a text column that is sealed in each of *rows*."""

    def keys_of(keys: list[str]) -> Iterator[str]:
        for text in rows().values_list(column, flat=True).iterator(chunk_size=BATCH):
            yield _opener(keys, text, purpose)

    def reseal(keys: list[str]) -> int:
        changed = 0
        for pk, text in rows().values_list("pk", column).iterator(chunk_size=BATCH):
            again = _again(keys, text, purpose)
            if again != text:
                changed += rows().filter(pk=pk, **{column: text}).update(**{column: again})
        return changed

    return Kind(words, keys_of, reseal)


KINDS: Final = [
    Kind("second factors", _factor_keys, _reseal_factors),
    Kind("sessions", _session_keys, _reseal_sessions),
    Kind("kept secrets", _kept_keys, _reseal_kept),
    Kind("waiting messages", _mail_keys, _reseal_mail),
]
"""Apps above this one add what they seal."""


def opens(key: str, sealed: str, purpose: str) -> bool:
    return bool(_opener([key], sealed, purpose))
