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
    found = [data[name] for name in ("secret", "seed") if name in data]
    return [text for text in (*found, *(data.get("migrated_codes") or ())) if isinstance(text, str)]


def _factors() -> Any:
    return Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).order_by("pk")


def _factor_keys(keys: list[str]) -> Iterator[str]:
    for data in _factors().values_list("data", flat=True).iterator(chunk_size=BATCH):
        found = {_opener(keys, text, FACTOR) for text in _sealed_in(data)}
        yield "" if "" in found else max(found, key=keys.index, default=keys[0])


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


def _replaced(data: dict[str, Any], again: dict[str, str]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(each) for each in value]
        return again.get(value, value) if isinstance(value, str) else value

    return {name: one(value) for name, value in data.items()}


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


def _sessions(keys: list[str]) -> Iterator[list[_Opened | None]]:
    """Yield live sessions in batches; None for those that no key opens."""
    after = ""
    while True:
        rows = list(
            Session.objects.filter(session_key__gt=after, expire_date__gt=now()).order_by("session_key")[:BATCH]
        )
        opened = [_opened(row, keys) for row in rows]
        ids = {str(one.content.get(SESSION_KEY, "")) for one in opened if one is not None} - {""}
        accounts = {str(each.pk): each for each in Account.objects.filter(pk__in=ids)}
        yield [one and _with_hash(one, accounts.get(str(one.content.get(SESSION_KEY, ""))), keys) for one in opened]
        if len(rows) < BATCH:
            return
        after = rows[-1].session_key


def _opened(row: Session, keys: list[str]) -> _Opened | None:
    try:
        key, content = unseal_under(keys, row.session_data, SESSION)
    except InvalidToken:
        return None
    return _Opened(row, SessionStore().serializer().loads(content), key, "")


def _with_hash(one: _Opened, account: Account | None, keys: list[str]) -> _Opened:
    stored = one.content.get(HASH_SESSION_KEY)
    if account is None or not stored:
        return one
    hashes = {key: account.session_hash_under(key) for key in keys}
    used = next((key for key, made in hashes.items() if made == stored), one.needs)
    needs = max(one.needs, used, key=keys.index)
    return one._replace(needs=needs, content_hash=hashes[keys[0]] if used != keys[0] and used in hashes else "")


def _session_keys(keys: list[str]) -> Iterator[str]:
    for batch in _sessions(keys):
        yield from ("" if one is None else one.needs for one in batch)


def _reseal_sessions(keys: list[str]) -> int:
    changed = 0
    for batch in _sessions(keys):
        with transaction.atomic():
            for one in batch:
                if one is None or one.needs == keys[0]:
                    continue
                content = {**one.content, HASH_SESSION_KEY: one.content_hash} if one.content_hash else one.content
                sealed = seal_under(keys[0], SessionStore().serializer().dumps(content), SESSION)
                # A request that saves the session at this moment wins; the next pass finds what it saved.
                changed += Session.objects.filter(pk=one.row.pk, session_data=one.row.session_data).update(
                    session_data=sealed
                )
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
