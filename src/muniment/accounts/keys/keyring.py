"""
The keys of this process, and which of them the database uses.

A setting or file lists keys; the database names its current and former keys by fingerprint. A process signs and seals
with the key that the database calls current, whatever the order of its own list, so that nodes with different lists
agree. Source: decision 39.
"""

import logging
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment import config
from muniment.accounts.keys import key_file, sealed
from muniment.accounts.keys.key_file import candidates, fingerprint, is_plain, is_strong, listed, parts
from muniment.accounts.models import SecretKey

log = logging.getLogger(__name__)
CURRENT: Final = SecretKey.State.CURRENT


class WrongKey(Exception):  # noqa: N818 - its message is for the operator
    """The database uses a key that this process lacks. The message says which, and what to do."""

    def __init__(self, lacking: str, own: list[str]) -> None:
        super().__init__(
            f"This database uses the secret key with the fingerprint {lacking}, which this node lacks; it has"
            f" {', '.join(own)}. Set MUNIMENT_SECRET_KEY, or keys/{key_file.NAME} in the data folder, to the key of the"
            " other nodes, then start again. If that key is lost, see muniment keys adopt --replace."
        )
        self.lacking = lacking


def own_keys() -> dict[str, str]:
    """Return every key that this process may mean, by fingerprint; its file is read again."""
    current = config.current()
    if not current.secret_key and key_file.path_of(current).exists():  # a running process makes no new key
        settings.SECRET_KEYS_TEXT = key_file.secret_text(current)
    return {fingerprint(key): key for key in candidates(settings.SECRET_KEYS_TEXT)}


def listed_keys() -> dict[str, str]:
    """Return the keys that the text lists, by fingerprint; it is read as the database knows its keys."""
    own = own_keys()
    known = {each: own[each] for each in SecretKey.objects.values_list("fingerprint", flat=True) if each in own}
    inner = {part for key in known.values() if not is_plain(key) for part in parts(key)}
    found = {fingerprint(key): key for key in listed(settings.SECRET_KEYS_TEXT) if key not in inner}
    return {**{each: key for each, key in found.items() if each in known or is_plain(key) or not known}, **known}


def settle(*, is_new: bool = False) -> None:
    """
    Use the keys that the database uses, and record its fingerprint if it has none and ours opens what is sealed.

    Args:
        is_new: the instance was created just now, so its first key is ours.

    Raises:
        WrongKey: the database uses a key that this process lacks.
    """
    if not SecretKey.objects.filter(state=CURRENT).exists():
        _record_first(is_new=is_new)
    if not follow():
        lacking = SecretKey.objects.get(state=CURRENT).fingerprint
        raise WrongKey(lacking, [fingerprint(key) for key in listed(settings.SECRET_KEYS_TEXT)])


def follow() -> bool:
    """Sign with the key that the database calls current; return whether this process has it."""
    states = dict(SecretKey.objects.values_list("fingerprint", "state"))
    current = next((each for each, state in states.items() if state == CURRENT), "")
    own = own_keys()
    if not current:
        return True
    if current not in own:
        return False
    others = [key for each, key in own.items() if each in states and each != current]
    plain = [key for each, key in listed_keys().items() if is_strong(key) and each != current]
    _use(own[current], list(dict.fromkeys([*others, *plain])))
    return True


def _use(key: str, others: list[str]) -> None:
    """Change Django's keys; at every moment the new and the old one are accepted."""
    if key == settings.SECRET_KEY and others == settings.SECRET_KEY_FALLBACKS:
        return
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY, key, *others]
    settings.SECRET_KEY = key
    settings.SECRET_KEY_FALLBACKS = others


def _record_first(*, is_new: bool) -> None:
    text = settings.SECRET_KEYS_TEXT
    if is_new:
        record_current(fingerprint(listed(text)[0]))
        return
    # Versions without fingerprints knew one key: the whole text.
    found = sealed.survey(dict.fromkeys((text, *candidates(text))))
    if not found:
        log.info("no fingerprint of the secret key is recorded; run: muniment keys adopt")
    elif len(found) == 1 and "" not in found:
        record_current(fingerprint(next(iter(found))))
        log.info("the fingerprint of the secret key is recorded")
    else:
        log.warning(
            "nodes of this database have used different secret keys: not everything that is sealed opens with the key"
            " of this node. Give every node the same MUNIMENT_SECRET_KEY, then run: muniment keys adopt."
            " The next version refuses to start"
        )


def record_current(of: str) -> bool:
    """Record the current key of a database without one; return whether this call did."""
    try:
        with transaction.atomic():
            SecretKey.objects.create(fingerprint=of, state=CURRENT)
    except IntegrityError:  # another node was first
        return False
    return True
